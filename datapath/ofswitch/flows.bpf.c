//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The cache of flows of an OpenFlow switch: a program on each port that does to
 * packets what the switch's process did to others like them. A flow is found by
 * the bits of a packet's key that matter, under one mask after the other. What
 * is in no flow goes to the process, by a device that it listens on.
 *
 * The process reads and writes flows and masks in place. It ends a flow by
 * setting its serial number to 0, and waits until no processor runs this program
 * that has begun before (running): then nothing uses the flow any more.
 */
#include "checksum.h"
#include "contract.h"
#include "maps.h"

/* Linux 5.17; libbpf's list here ends before. */
static long (*bpf_loop)(__u32 n, void *each, void *context, __u64 flags) = (void *)181;

#define WORDS 9 /* of a key */
#define SMALL 5 /* words that most masks have bits in */
#define MAX_MASKS 64
#define MAX_STEPS 20
#define MAX_FLOWS 65536
#define BUCKETS 32768
#define WAYS 8 /* flows of a bucket; of 65,536 some ten find theirs full */
#define MAX_CPUS 1024
#define MAX_METERS 1024 /* the process says how many there are */
#define MAX_BANDS 8
#define TICKS 16 /* of a nanosecond */
#define TRIES 8 /* of several processors at one bucket */
#define STRAIGHT 16 /* of so many steps one goes by the port's device */
#define CONTROLLERS 8 /* of control in band */
#define PULL 128 /* bytes that hold all headers that are looked at, or written */
#define BPF_F_MMAPABLE (1U << 10)

/* Bits of a shape, as openflow/pipeline has them. */
enum shape {
	SHAPE_8021AD = 1 << 2,
	SHAPE_DEI = 1 << 3,
	SHAPE_NETWORK = 1 << 4,
	SHAPE_PORTS = 1 << 5,
};

enum step_kind { STEP_OUTPUT, STEP_PEER, STEP_EDIT, STEP_PUSH, STEP_POP, STEP_METER };
/* Which byte of a number says where a header begins: the lowest one is 0. */
enum base { BASE_ETHERNET = 0, BASE_NETWORK = 8, BASE_PORTS = 16 };
enum how {
	SUM_IPV4 = 1,	/* the sum of the IPv4 header covers it */
	SUM_PSEUDO = 2, /* the sum above IP: the addresses are in it */
	SUM_PORTS = 4,	/* the sum above IP: what is changed is in it */
	RELATIVE = 8,	/* the value is added to what is there; the highest */
};

struct step {
	__u8 kind;
	__u8 base;
	__u8 how;
	__u8 offset;
	__u32 mask;  /* bits that are written, as they lie in memory; of an output: the queue's class;
		      * of a meter: bytes that a packet has more than at first */
	__u32 value; /* these; a device; a tag: type << 16 | identifier and priority; a meter */
};

/* What most packets need of a flow: two lines of a cache, of which the first is only read. */
struct flow {
	__u64 serial; /* 0: none */
	__u64 words[SMALL]; /* of the key, under its mask */
	__u8 mask;
	__u8 steps;
	__u8 plain; /* 1 + the kind of its output, if that is all but for changes of words before it */
	__u8 least_ttl;
	__u16 least_len;
	__u8 sum_at; /* where above IP the checksum is */
	__u8 udp;
	__u32 device, class; /* of that output */
	__u64 used;   /* coarse ns since the machine started */
	__u64 packets, bytes;
	__u64 cut; /* packets less frames */
	__u64 more[WORDS - SMALL]; /* words of the key */
};

/* The rest of it. */
struct rest {
	struct step step[MAX_STEPS];
	__u64 lost_packets, lost_bytes, lost_cut; /* of packets, bytes and cut, to the meter */
};

/* Flows whose hashes have some bits in common; a line of a cache. */
struct bucket {
	__u32 tag[WAYS]; /* of other bits of the hash; 0: none */
	__u32 slot[WAYS];
};

/* A meter, as openflow/pipeline has it (MeterState, MeterRule): first what it has
 * counted and when its buckets are full again, which the process changes too. */
struct meter_band {
	__u64 full, packets, bytes;
};

struct meter_rule {
	__u64 rate, depth;
	__u32 used;
	__u8 drops, remark;
	__u16 pad;
};

struct meter {
	__u64 packets, bytes;
	struct meter_band band[MAX_BANDS];
	__u64 holds, waiting; /* what it would drop is for the process; so is all else, behind that */
	struct meter_rule rule[MAX_BANDS];
	__u64 of_packets; /* its rates are of packets, not of bits */
};

struct mask {
	__u64 words[WORDS];
	__u32 used; /* number of flows */
	__u32 large; /* it has bits in more than the first SMALL words */
};

struct setting {
	__u32 masks; /* 1 + the highest in use */
	__u32 upcall; /* device that leads to the process */
	__u64 odd; /* frames whose headers no flow tells of */
	__u64 control[CONTROLLERS][2]; /* addresses of controllers in band; of IPv4: 0 first */
	__u64 controls; /* how many there are */
	struct mask mask[MAX_MASKS];
	enum step_kind kinds[0]; /* these three for Go */
	enum base bases[0];
	enum how hows[0];
};

/* Of a processor; in a cache line of its own. */
struct run {
	__u64 odd_inside; /* counts beginnings and ends */
	__u64 pad[7];
};

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct setting, 1, BPF_F_MMAPABLE) settings SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, __u32, struct flow, MAX_FLOWS, BPF_F_MMAPABLE) flows SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, __u32, struct run, MAX_CPUS, BPF_F_MMAPABLE) running SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, __u32, struct rest, MAX_FLOWS, BPF_F_MMAPABLE) rests SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, __u32, struct bucket, BUCKETS, BPF_F_MMAPABLE) buckets SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, __u32, struct meter, MAX_METERS, BPF_F_MMAPABLE) meters SEC(".maps");

struct packet {
	struct __sk_buff *skb;
	struct setting *set;
	struct flow *flow;
	struct rest *rest;
	__u64 words[WORDS];
	__u32 tags, l3, l4;
	__u32 slot; /* of the flow */
	__u32 next; /* step */
	__u32 ttl;
	__u32 len;
	__u32 segments;
	__u32 device; /* to leave by at the end */
	__u32 peer;
};

static __always_inline bool is_vlan(__be16 kind)
{
	return kind == bpf_htons(ETH_P_8021Q) || kind == bpf_htons(ETH_P_8021AD);
}

/* Reads ports, or type and code. */
static __always_inline bool transport(struct packet *p, void *at, void *end, __u8 protocol, bool v6, __u32 *shape)
{
	__u32 need = protocol == IPPROTO_TCP ? 20 : protocol == IPPROTO_UDP ? 8 : 12;
	const __u8 *b = at;

	if (has_ports(protocol)) {
		if (at + need > end || at + 4 > end)
			return true;
		p->words[3] |= (__u64)bpf_ntohs(*(__be16 *)at) << 16 | (__u64)bpf_ntohs(*(__be16 *)(at + 2)) << 32;
	} else if (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6) {
		if (at + 4 > end)
			return true;
		if (v6 && protocol == IPPROTO_ICMPV6 && (b[0] == 135 || b[0] == 136))
			return false;
		p->words[3] |= (__u64)b[0] << 16 | (__u64)b[1] << 32;
	} else {
		return true;
	}
	*shape |= SHAPE_PORTS;
	return true;
}

static __always_inline bool parse4(struct packet *p, void *data, void *end, __u32 *shape)
{
	struct iphdr *ip = data + p->l3;

	if ((void *)(ip + 1) > end)
		return true;
	*shape |= SHAPE_NETWORK;
	p->ttl = ip->ttl;
	p->words[3] = ip->protocol | (__u64)(ip->tos >> 2) << 8 | (__u64)(ip->tos & 3) << 14;
	p->words[4] = (__u64)bpf_ntohl(ip->saddr) << 32 | bpf_ntohl(ip->daddr);
	if (ip->ihl < 5 || ip->frag_off & bpf_htons(IP_OFFSET))
		return true;
	p->l4 = p->l3 + ip->ihl * 4;
	return transport(p, (void *)ip + ip->ihl * 4, end, ip->protocol, false, shape);
}

static __always_inline bool parse6(struct packet *p, void *data, void *end, __u32 *shape)
{
	struct ipv6hdr *ip = data + p->l3;
	__u32 first;

	if ((void *)(ip + 1) > end)
		return true;
	switch (ip->nexthdr) {
	case 0: case 43: case 44: case 50: case 51: case 59: case 60:
		return false;
	}
	*shape |= SHAPE_NETWORK;
	p->ttl = ip->hop_limit;
	first = bpf_ntohl(*(__be32 *)ip);
	p->words[3] = ip->nexthdr | (__u64)(first >> 22 & 63) << 8 | (__u64)(first >> 20 & 3) << 14;
	p->words[4] = bpf_be64_to_cpu(*(__be64 *)&ip->saddr);
	p->words[5] = bpf_be64_to_cpu(*((__be64 *)&ip->saddr + 1));
	p->words[6] = bpf_be64_to_cpu(*(__be64 *)&ip->daddr);
	p->words[7] = bpf_be64_to_cpu(*((__be64 *)&ip->daddr + 1));
	p->words[8] = (__u64)(first & 0xfffff) << 24;
	p->l4 = p->l3 + 40;
	return transport(p, (void *)(ip + 1), end, ip->nexthdr, true, shape);
}

static __always_inline __u64 mac_of(const __u8 *b)
{
	return (__u64)bpf_ntohs(*(__be16 *)b) << 32 | bpf_ntohl(*(__be32 *)(b + 2));
}

static __always_inline void parse_arp(struct packet *p, void *data, void *end, __u32 *shape)
{
	__u8 *b = data + p->l3;

	if ((void *)b + 28 > end)
		return;
	*shape |= SHAPE_NETWORK;
	p->words[3] = (__u64)bpf_ntohs(*(__be16 *)(b + 6)) << 16;
	p->words[4] = (__u64)bpf_ntohl(*(__be32 *)(b + 14)) << 32 | bpf_ntohl(*(__be32 *)(b + 24));
	p->words[5] = mac_of(b + 8);
	p->words[6] = mac_of(b + 18);
}

static __always_inline void parse_shim(struct packet *p, void *data, void *end, bool mpls, __u32 *shape)
{
	__be32 *shim = data + p->l3;
	__u32 v;

	if ((void *)(shim + 1) > end)
		return;
	*shape |= SHAPE_NETWORK;
	v = bpf_ntohl(*shim);
	p->words[4] = mpls ? v >> 12 | (v >> 9 & 7) << 20 | (v >> 8 & 1) << 23 : v & 0xffffff;
}

/* A service header (RFC 8300), whole and of a known type. */
static __always_inline void parse_nsh(struct packet *p, void *data, void *end, __u32 *shape)
{
	__be32 *h = data + p->l3;
	__u32 first, path, length, kind;

	if ((void *)(h + 2) > end)
		return;
	first = bpf_ntohl(h[0]);
	path = bpf_ntohl(h[1]);
	length = (first >> 16 & 63) * 4;
	kind = first >> 8 & 15;
	if (first >> 30 || p->l3 + length > p->skb->len)
		return;
	if (kind == 1 && length == 24) {
		if ((void *)(h + 6) > end)
			return;
		p->words[4] = (__u64)bpf_ntohl(h[2]) << 32 | bpf_ntohl(h[3]);
		p->words[5] = (__u64)bpf_ntohl(h[4]) << 32 | bpf_ntohl(h[5]);
	} else if (kind != 2 || length < 8) {
		return;
	}
	*shape |= SHAPE_NETWORK;
	p->words[3] = path >> 8 | (__u64)(path & 255) << 24 | (__u64)(first >> 28 & 3) << 32 |
		      (__u64)(first >> 22 & 63) << 40 | (__u64)kind << 48 | (__u64)(first & 255) << 56;
}

/* Reads the key; false: of such headers no flow tells. */
static __always_inline bool parse(struct packet *p)
{
	struct __sk_buff *skb = p->skb;
	void *data = data_of(skb), *end = end_of(skb);
	__u32 shape = 0, tci = 0;
	bool ok = true;
	__be16 kind;

	if (data + PULL > end && skb->len > end - data) {
		bpf_skb_pull_data(skb, skb->len < PULL ? skb->len : PULL);
		data = data_of(skb);
		end = end_of(skb);
	}
	if (data + 22 > end)
		return false;
	p->len = skb->len;
	p->l3 = ETH_HLEN;
	p->ttl = 255;
	kind = *(__be16 *)(data + 12);
	if (skb->vlan_present) {
		p->tags = 1;
		p->len += 4;
		tci = skb->vlan_tci;
		if (skb->vlan_proto == bpf_htons(ETH_P_8021AD))
			shape |= SHAPE_8021AD;
		if (tci & 0x1000)
			shape |= SHAPE_DEI;
		tci |= 0x1000;
		if (is_vlan(kind)) {
			p->tags = 2;
			p->l3 += 4;
			kind = *(__be16 *)(data + 16);
		}
	}
	if (is_vlan(kind))
		return false;
	p->words[1] = (bpf_be64_to_cpu(*(__be64 *)data) & ~0xffffULL) | bpf_ntohs(kind);
	p->words[2] = (bpf_be64_to_cpu(*(__be64 *)(data + 6)) & ~0xffffULL) | tci;
	switch (bpf_ntohs(kind)) {
	case ETH_P_IP:
		ok = parse4(p, data, end, &shape);
		break;
	case ETH_P_IPV6:
		ok = parse6(p, data, end, &shape);
		break;
	case ETH_P_ARP:
		parse_arp(p, data, end, &shape);
		break;
	case 0x8847: case 0x8848:
		parse_shim(p, data, end, true, &shape);
		break;
	case 0x894f:
		parse_nsh(p, data, end, &shape);
		break;
	case 0x88e7:
		parse_shim(p, data, end, false, &shape);
		break;
	}
	p->words[0] = skb->ifindex | (__u64)(shape | p->tags) << 32;
	return ok;
}

/* Odd numbers by which words of a key are multiplied for its hash; hash.go has the same.
 * Products do not wait for one another, as steps of a hash that is fed by words would. */
static const __u64 factors[WORDS] = {
	0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93, 0xa0761d6478bd642f,
	0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3, 0x1d8e4e27c47d124f,
};

/* Spreads what products have in their high bits. */
static __always_inline __u64 spread(__u64 hash)
{
	hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* Whether a flow's key is that of a packet under a mask. */
static __always_inline bool is_of(const struct flow *f, const struct packet *p, const struct mask *m)
{
	__u64 differ = 0;

#pragma unroll
	for (int w = 0; w < SMALL; w++)
		differ |= f->words[w] ^ (p->words[w] & m->words[w]);
	if (m->large) {
#pragma unroll
		for (int w = SMALL; w < WORDS; w++)
			differ |= f->more[w - SMALL] ^ (p->words[w] & m->words[w]);
	}
	return !differ;
}

/* Looks for a flow under one mask. */
static long try_mask(__u32 i, struct packet *p)
{
	struct mask *m = &p->set->mask[i & (MAX_MASKS - 1)];
	__u64 hash = i;
	__u32 at, tag;
	struct bucket *b;

	if (!m->used)
		return 0;
#pragma unroll
	for (int w = 0; w < SMALL; w++)
		hash += (p->words[w] & m->words[w]) * factors[w];
	if (m->large) {
#pragma unroll
		for (int w = SMALL; w < WORDS; w++)
			hash += (p->words[w] & m->words[w]) * factors[w];
	}
	hash = spread(hash);
	at = hash % BUCKETS;
	tag = hash >> 32 | 1;
	b = bpf_map_lookup_elem(&buckets, &at);
	if (!b)
		return 0;
#pragma clang loop unroll(disable)
	for (int w = 0; w < WAYS; w++) {
		__u32 slot = b->slot[w];
		struct flow *f;

		if (*(volatile __u32 *)&b->tag[w] != tag)
			continue;
		f = bpf_map_lookup_elem(&flows, &slot);
		if (!f || !*(volatile __u64 *)&f->serial || f->mask != i || !is_of(f, p, m) || p->ttl < f->least_ttl || p->len < f->least_len)
			continue;
		p->flow = f;
		p->slot = slot;
		return 1;
	}
	return 0;
}

/* Folds a sum into 32 bits, as the kernel takes differences. */
static __always_inline __u32 fold_long(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (sum & 0xffffffff) + (sum >> 32);
}

/* Where headers begin, and of what is above IP where the sum is. */
struct layout {
	__u8 network, ports, sum_at, udp;
};

/* By how much sums change: of the IPv4 header, and of what is above IP. */
struct sums {
	__u64 ip, pseudo, ports;
};

static __always_inline void sum_up(struct __sk_buff *skb, struct layout l, const struct sums *by, void *data, void *end)
{
	__u64 zero = l.udp ? BPF_F_MARK_MANGLED_0 : 0;
	__u32 sum = l.ports + l.sum_at;
	struct iphdr *ip = data + l.network;

	if (by->ip && (void *)(ip + 1) <= end)
		ip->check = ~csum_fold((__u32)csum_fold(fold_long(by->ip)) + (__u16)~ip->check);
	if (l.udp && data + sum + 2 <= end && !*(__u16 *)(data + sum))
		return; /* a datagram without a sum stays so */
	if (by->pseudo)
		bpf_l4_csum_replace(skb, sum, 0, fold_long(by->pseudo), BPF_F_PSEUDO_HDR | zero);
	if (by->ports)
		bpf_l4_csum_replace(skb, sum, 0, fold_long(by->ports), zero);
}

/* Changes words of headers, as steps of a flow say from one on. The result is the first
 * that says something else. It is global, as past_meter is, and so are its arguments: a
 * layout is a number. Its loop has few branches, since programs are verified by their ways. */
__noinline int edit(struct __sk_buff *skb, __u32 slot, __u32 first, __u32 layout)
{
	struct layout l = {layout, layout >> 8, layout >> 16, layout >> 24};
	struct rest *rest = bpf_map_lookup_elem(&rests, &slot);
	void *data = data_of(skb), *end = end_of(skb);
	struct sums by = {};
	__u32 i = first;

	if (!rest)
		return MAX_STEPS;
#pragma clang loop unroll(disable)
	for (__u32 n = 0; n < MAX_STEPS; n++, i++) {
		const struct step *s;
		__u32 at, was, is, *word;
		__u64 more;

		asm volatile("" : "+r"(i)); /* so that its bound is seen for each step */
		if (i >= MAX_STEPS)
			break;
		s = &rest->step[i];
		if (s->kind != STEP_EDIT)
			break;
		at = s->offset + (layout << 8 >> s->base & 255);
		word = data + at;
		if ((void *)(word + 1) > end)
			continue;
		was = *word;
		is = (was & ~s->mask) | ((s->value + (was & s->mask) * (s->how / RELATIVE)) & s->mask);
		if (was == is)
			continue;
		*word = is;
		more = (__u64)(__u32)~was + is;
		by.ip += more * (s->how & SUM_IPV4);
		by.pseudo += more * (s->how / SUM_PSEUDO & 1);
		by.ports += more * (s->how / SUM_PORTS & 1);
	}
	sum_up(skb, l, &by, data, end);
	return i;
}

/* Does what steps from one on change. The result is the first that says something else. */
static __always_inline __u32 change(struct packet *p, __u32 first)
{
	return edit(p->skb, p->slot, first, (p->l3 & 255) | (p->l4 & 255) << 8 | p->flow->sum_at << 16 | (__u32)p->flow->udp << 24);
}

/* The outermost tag lies beside the frame, others in it. */
static __always_inline void move(struct packet *p, int by)
{
	p->l3 += by;
	p->l4 += by;
}

/* Raises the drop precedence of an assured forwarding class (RFC 2597), up to 3. */
static __always_inline void remark(struct __sk_buff *skb, __u32 l3, __u8 by)
{
	__u32 was, is, dscp, class, precedence, shift;
	__be16 kind;

	if (bpf_skb_load_bytes(skb, l3 - 2, &kind, 2) || bpf_skb_load_bytes(skb, l3, &was, 4))
		return;
	if (kind != bpf_htons(ETH_P_IP) && kind != bpf_htons(ETH_P_IPV6))
		return;
	shift = kind == bpf_htons(ETH_P_IP) ? 18 : 22;
	dscp = bpf_ntohl(was) >> shift & 63;
	class = dscp >> 3;
	precedence = dscp >> 1 & 3;
	if (class < 1 || class > 4 || !precedence || dscp & 1)
		return;
	precedence = precedence + by < 3 ? precedence + by : 3;
	is = bpf_htonl((bpf_ntohl(was) & ~(63U << shift)) | (class << 3 | precedence << 1) << shift);
	bpf_skb_store_bytes(skb, l3, &is, 4, 0);
	if (kind == bpf_htons(ETH_P_IP))
		bpf_l3_csum_replace(skb, l3 + 10, was, is, 4);
}

/* The time in which a band's rate brings so much. */
static __always_inline __u64 cost_of(const struct meter_rule *r, __u64 units)
{
	return r->rate ? units * (TICKS * 1000000000ULL) / r->rate : 0;
}

/* Whether a bucket that is full at a time has what a packet takes; one that takes more
 * than all that it holds needs a full one, and leaves a debt. */
static __always_inline bool enough(const struct meter_rule *r, __u64 full, __u64 now, __u64 cost)
{
	__u64 later = full > now ? full - now : 0;

	return later + (cost < r->depth ? cost : r->depth) <= r->depth;
}

/* Empties the buckets that have enough of a packet which goes on. */
static __always_inline void take_from(struct meter *m, __u64 now, __u64 units)
{
	for (__u32 i = 0; i < MAX_BANDS; i++) {
		__u64 *full = &m->band[i].full;
		__u64 cost, was;

		if (!m->rule[i].used)
			break;
		cost = cost_of(&m->rule[i], units);
		for (__u32 n = 0; n < TRIES; n++) {
			was = *(volatile __u64 *)full;
			if (!enough(&m->rule[i], was, now, cost))
				break;
			if (__sync_val_compare_and_swap(full, was, (was > now ? was : now) + cost) == was)
				break;
		}
	}
}

/* Whether a packet may go on past a meter, which may give it another class. It is
 * global, so that it is verified once and not for each way to it; of such a function
 * arguments are numbers: two in one, where there are more than registers. */
__noinline int past_meter(struct __sk_buff *skb, __u64 at_and_added, __u64 size_and_segments, __u32 l3)
{
	__u32 at = at_and_added >> 32, len = (__u32)(size_and_segments >> 32) + (__u32)at_and_added;
	__u32 segments = size_and_segments, acts = MAX_BANDS;
	struct meter *m = bpf_map_lookup_elem(&meters, &at);
	__u64 now = bpf_ktime_get_ns() * TICKS, units, best = 0;

	if (!m)
		return 0;
	units = m->of_packets ? segments : (__u64)len * 8;
	__sync_fetch_and_add(&m->packets, segments);
	__sync_fetch_and_add(&m->bytes, len);
	for (__u32 i = 0; i < MAX_BANDS; i++) {
		const struct meter_rule *r = &m->rule[i];

		if (!r->used)
			break;
		if (enough(r, *(volatile __u64 *)&m->band[i].full, now, cost_of(r, units)))
			continue;
		if (acts == MAX_BANDS || r->rate > best) {
			acts = i;
			best = r->rate;
		}
	}
	if (acts < MAX_BANDS) {
		__sync_fetch_and_add(&m->band[acts].packets, segments);
		__sync_fetch_and_add(&m->band[acts].bytes, len);
		if (m->rule[acts].drops)
			return 0;
		remark(skb, l3, m->rule[acts].remark);
	}
	take_from(m, now, units);
	return 1;
}

/* Whether a packet has to wait at a meter, which the process sees to. */
__noinline int must_wait(__u32 at, __u64 size_and_segments)
{
	struct meter *m = bpf_map_lookup_elem(&meters, &at);
	__u64 now, units;

	if (!m || !m->holds)
		return 0;
	if (*(volatile __u64 *)&m->waiting)
		return 1;
	now = bpf_ktime_get_ns() * TICKS;
	units = m->of_packets ? (__u32)size_and_segments : (size_and_segments >> 32) * 8;
	for (__u32 i = 0; i < MAX_BANDS; i++) {
		const struct meter_rule *r = &m->rule[i];

		if (!r->used)
			break;
		if (enough(r, *(volatile __u64 *)&m->band[i].full, now, cost_of(r, units)))
			continue;
		*(volatile __u64 *)&m->waiting = 1;
		return 1;
	}
	return 0;
}

static __always_inline void lose(struct packet *p, struct rest *rest)
{
	__sync_fetch_and_add(&rest->lost_packets, p->segments);
	__sync_fetch_and_add(&rest->lost_bytes, p->len);
	if (unlikely(p->segments > 1))
		__sync_fetch_and_add(&rest->lost_cut, p->segments - 1);
}

/* Does a step, or those that change headers together. */
static long do_step(__u32 unused, struct packet *p)
{
	struct rest *rest = p->rest;
	__u32 i = p->next;
	struct step *s;

	if (!rest || !p->flow || i >= p->flow->steps || i >= MAX_STEPS)
		return 1;
	s = &rest->step[i];
	p->next = i + 1;
	switch (s->kind) {
	case STEP_OUTPUT:
	case STEP_PEER:
		p->skb->priority = s->mask;
		if (i + 1 == p->flow->steps) {
			p->device = s->value;
			p->peer = s->kind == STEP_PEER;
		} else {
			bpf_clone_redirect(p->skb, s->value, 0);
		}
		break;
	case STEP_EDIT:
		p->next = change(p, i);
		break;
	case STEP_PUSH:
		bpf_skb_vlan_push(p->skb, bpf_htons(s->value >> 16), s->value & 0xffff);
		if (p->tags++)
			move(p, 4);
		break;
	case STEP_POP:
		bpf_skb_vlan_pop(p->skb);
		if (--p->tags)
			move(p, -4);
		break;
	case STEP_METER:
		if (past_meter(p->skb, (__u64)s->value << 32 | s->mask, (__u64)p->len << 32 | p->segments, p->l3))
			break;
		lose(p, rest);
		return 1;
	}
	return 0;
}

/* Whether a packet may be control in band: ARP, or TCP from or to a controller's
 * address. The process looks closer. Neighbour discovery is in no flow anyway. */
static __always_inline bool may_be_control(const struct packet *p)
{
	__u64 n = p->set->controls, kind = p->words[1] & 0xffff;

	if (likely(!n))
		return false;
	if (kind == ETH_P_ARP)
		return true;
	if ((p->words[3] & 0xff) != IPPROTO_TCP || (kind != ETH_P_IP && kind != ETH_P_IPV6))
		return false;
#pragma unroll
	for (int i = 0; i < CONTROLLERS; i++) {
		__u64 hi = p->set->control[i][0], lo = p->set->control[i][1];

		if (i >= n)
			break;
		if (kind == ETH_P_IP) {
			if (!hi && (p->words[4] >> 32 == lo || (p->words[4] & 0xffffffff) == lo))
				return true;
		} else if ((p->words[4] == hi && p->words[5] == lo) || (p->words[6] == hi && p->words[7] == lo)) {
			return true;
		}
	}
	return false;
}

/* Hands a frame to the process, which knows the port by the mark. */
static __always_inline int upcall(struct packet *p)
{
	p->skb->mark = p->skb->ifindex;
	return bpf_redirect(p->set->upcall, 0);
}

/* Whether a frame may go straight to the other end of a port's veth. The kernel
 * receives it there before it does anything else, so a frame that switches send
 * round for ever would hold the processor: by a device it waits behind others.
 * The count may begin with anything. */
static __always_inline bool may_go_straight(struct __sk_buff *skb)
{
	__u32 steps = skb->cb[CB_STEPS] + 1;

	skb->cb[CB_STEPS] = steps;
	return steps % STRAIGHT;
}

/* Finds the flow of a packet. */
static __always_inline struct flow *find(struct packet *p)
{
	__u32 masks = *(volatile __u32 *)&p->set->masks;

	bpf_loop(masks < MAX_MASKS ? masks : MAX_MASKS, try_mask, p, 0);
	return p->flow;
}

static __always_inline int take(struct __sk_buff *skb)
{
	struct packet p = { .skb = skb };
	struct flow *f;

	p.set = ROW0(&settings);
	if (!p.set)
		return TCX_DROP;
	if (unlikely(!parse(&p))) {
		__sync_fetch_and_add(&p.set->odd, 1);
		return upcall(&p);
	}
	if (may_be_control(&p))
		return upcall(&p);
	f = find(&p);
	if (!f)
		return upcall(&p);
	p.segments = segments_of(skb);
	if (f->plain) {
		skb->priority = f->class;
		p.device = f->device;
		p.peer = f->plain == STEP_PEER + 1;
	} else {
		p.rest = bpf_map_lookup_elem(&rests, &p.slot);
		if (!p.rest)
			return TCX_DROP;
		if (p.rest->step[0].kind == STEP_METER && must_wait(p.rest->step[0].value, (__u64)p.len << 32 | p.segments))
			return upcall(&p);
	}
	__sync_fetch_and_add(&f->packets, p.segments);
	__sync_fetch_and_add(&f->bytes, p.len);
	if (unlikely(p.segments > 1))
		__sync_fetch_and_add(&f->cut, p.segments - 1);
	f->used = bpf_ktime_get_coarse_ns();
	if (p.rest)
		bpf_loop(MAX_STEPS, do_step, &p, 0);
	else if (f->steps > 1)
		change(&p, 0);
	if (!p.device)
		return TCX_DROP; /* and so it does not matter what was changed last */
	return p.peer && may_go_straight(skb) ? bpf_redirect_peer(p.device, 0) : bpf_redirect(p.device, 0);
}

SEC("tc")
int ofswitch_port(struct __sk_buff *skb)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct run *run = bpf_map_lookup_elem(&running, &cpu);
	int verdict;

	if (!run)
		return TCX_DROP;
	__sync_fetch_and_add(&run->odd_inside, 1); /* it also keeps what follows behind it */
	verdict = take(skb);
	__sync_fetch_and_add(&run->odd_inside, 1);
	return verdict;
}

/* Behind the device that leads to the process: no stack of the host's sees the frames. */
SEC("tc")
int ofswitch_end(struct __sk_buff *skb)
{
	return TCX_DROP;
}

LICENSE;
