//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A learning switch of layer 2 (IEEE 802.1Q-2018, clause 8) at the ingress of
 * its ports. Known frames go straight to the far end of the port they leave
 * by, as if the switch had sent them; no frame meets the namespace's stack.
 * Frames between addresses that were seen lately need not even come to the
 * ports: they are sent on where a link hands them to the switch (chain.h).
 */
#include "checksum.h"
#include "port_ref.h"

#define MAX_PORTS 256
#define MAX_GUESSES 1024
#define MAX_ADDRESSES 16384
#define WORDS (MAX_PORTS / 64)
#define CACHE_BITS 5
#define CACHE_SIZE (1 << CACHE_BITS)
#define NS_PER_S 1000000000ULL
#define BURST (NS_PER_S / 10) /* of floods: what a tenth of a second may bring */
#define REFRESH (NS_PER_S / 4) /* an entry is not written more often */
#define SWEEP NS_PER_S	       /* between two searches for aged entries */

/* Linux 5.17; libbpf's list here ends before. */
static long (*bpf_loop)(__u32 n, void *each, void *context, __u64 flags) = (void *)181;

/* Why a frame was dropped. */
enum drop {
	DROP_BLOCKED,	 /* port is unknown, or blocked because it closes a loop */
	DROP_MALFORMED, /* too short, sender is no station, or a bridge's own protocol */
	DROP_MOVED,	 /* sender is a planned station of another port */
	DROP_SAME_PORT,	 /* receiver is at the port the frame came by */
	DROP_ISOLATED,	 /* the two ports may not speak */
	DROP_BROADCAST_LIMIT, /* above the port's limit */
	DROP_UNKNOWN_LIMIT,	 /* above the port's limit */
	DROPS,
};

struct port {
	__u32 index;	 /* of the device; 0: no port */
	__u32 blocked;	 /* carries nothing */
	__u32 addresses; /* most that are learned */
	__u32 broadcast; /* frames in a second */
	__u32 unknown;
	__u32 slot;	 /* in the fabric; 0: not known */
	__u64 to[WORDS]; /* ports it may send to */
};

struct state {
	__u32 learned; /* addresses of this port in fdb */
	__u32 pad;
	__u64 broadcast; /* when the next may come (GCRA, ITU-T I.371), ns */
	__u64 unknown;
};

/* Where an address is. Planned ones neither age nor move. */
struct entry {
	__u64 seen; /* coarse ns since the machine started */
	__u32 port;
	__u16 planned;
	__u16 counted; /* 1 + port whose count this is in, 0: none */
	__u8 address[4]; /* of a planned one */
	__u32 pad;
};

struct station {
	__u8 planned[6];
	__u8 now[6]; /* what it says of itself */
	__u16 port;
	__u16 claimed; /* another port says it has the address */
};

/* A station's link-local address, from its planned Ethernet address (EUI-64). */
struct station6 {
	struct station is;
	__u32 router; /* it says so of itself */
};

struct count {
	__u64 packets, bytes; /* taken and sent on */
	__u64 chained; /* of these, frames that did not have to come in */
	__u64 floods, answers;
	__u64 unlearned; /* sender not learned: port or table is full */
	__u64 drops[DROPS];
	enum drop causes[0]; /* names the indexes of drops for Go */
};

struct setting {
	__u64 ageing; /* ns */
	__u64 swept;  /* when last */
	__u64 changed; /* when last an address was somewhere else than before, ns */
	__u32 ports;  /* 1 + the highest */
	__u32 pad;
};

/* Where addresses were found last, on one processor: good until one moves, for
 * REFRESH at most. */
struct cached_address {
	__u64 address;
	__u64 since; /* setting.changed before it was looked up */
	__u64 fresh; /* until when the entry need not be written again */
	__u64 until; /* it is where it is */
	__u32 port;
	__u32 pad;
};

struct fdb_cache {
	struct cached_address at[CACHE_SIZE];
};

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct setting, 1, 0) settings SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, __u32, 2 * MAX_PORTS, 0) numbers SEC(".maps"); /* of ports, by device */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u32, MAX_GUESSES, 0) guesses SEC(".maps"); /* the same, by its lowest bits */
MAP(BPF_MAP_TYPE_ARRAY, __u32, struct port, MAX_PORTS, 0) ports SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, __u32, struct state, MAX_PORTS, 0) states SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct count, MAX_PORTS, 0) counters SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u64, struct entry, MAX_ADDRESSES, BPF_F_NO_PREALLOC) fdb SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __be32, struct station, MAX_ADDRESSES, BPF_F_NO_PREALLOC) stations SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, struct in6_addr, struct station6, MAX_ADDRESSES, BPF_F_NO_PREALLOC) stations6 SEC(".maps");

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct fdb_cache, 1, 0) fdb_cache SEC(".maps");

struct frame {
	struct __sk_buff *skb;
	struct setting *set;
	struct port *port;
	struct count *count;
	struct fdb_cache *cache;
	__u64 now; /* coarse */
	__u64 since;
	__u32 in;
};

static __always_inline int drop(struct frame *f, enum drop cause)
{
	return DROP(f->count, cause);
}

static __always_inline __u64 mac_key(const __u8 *mac)
{
	return *(const __u32 *)mac | (__u64)*(const __u16 *)(mac + 4) << 32;
}

static __always_inline bool may_send(const struct port *from, __u32 to)
{
	return to < MAX_PORTS && (from->to[to / 64 % WORDS] >> (to % 64) & 1);
}

/* One more frame of a kind that is limited; false: it comes too early. Two
 * processors at once may let one frame more through. */
static __always_inline bool limit(__u64 *when, __u32 rate)
{
	__u64 now = bpf_ktime_get_ns(), next = *when;

	if (!rate)
		return false;
	if (next < now)
		next = now;
	next += NS_PER_S / rate;
	if (next > now + BURST + NS_PER_S / rate)
		return false;
	*when = next;
	return true;
}

static void uncount(__u16 *counted)
{
	__u32 key = *counted - 1;
	struct state *s;

	if (*counted && (s = bpf_map_lookup_elem(&states, &key)) && s->learned)
		__sync_fetch_and_add(&s->learned, -1);
	*counted = 0;
}

static bool aged(const struct entry *e, __u64 now, __u64 ageing)
{
	return !e->planned && now > e->seen + ageing;
}

struct old {
	__u64 now, ageing;
};

static long sweep_one(void *map, __u64 *key, struct entry *e, struct old *old)
{
	bool gone = aged(e, old->now, old->ageing);

	if (gone || e->planned)
		uncount(&e->counted);
	if (gone)
		bpf_map_delete_elem(map, key);
	return 0;
}

/* Makes room when there is none; searching costs, so not all the time. */
static __always_inline void sweep(struct setting *set, __u64 now)
{
	struct old old = { .now = now, .ageing = set->ageing };

	if (now < set->swept + SWEEP)
		return;
	set->swept = now;
	bpf_for_each_map_elem(&fdb, sweep_one, &old, 0);
}

/* The row of an address in the cache (Fibonacci hashing). */
static __always_inline struct cached_address *cached(struct frame *f, __u64 address)
{
	return &f->cache->at[(__u32)(address >> 16) * 0x9e3779b1U >> (32 - CACHE_BITS)];
}

static __always_inline bool is_fresh(const struct frame *f, const struct cached_address *r, __u64 address)
{
	return r->address == address && r->since == f->since && f->now <= r->until;
}

static __always_inline void remember(const struct frame *f, struct cached_address *r, __u64 address, const struct entry *e)
{
	__u64 aged = e->seen + f->set->ageing, until = f->now + REFRESH;

	r->address = address;
	r->since = f->since;
	r->fresh = e->seen + REFRESH;
	r->until = e->planned || until < aged ? until : aged;
	r->port = e->port;
}

/* Learns the sender; false: it is somebody else's planned station. */
static __always_inline bool learn(struct frame *f, __u64 source)
{
	struct cached_address *r = cached(f, source);
	__u64 now = f->now;
	struct entry *e;
	struct state *s;

	if (likely(is_fresh(f, r, source) && r->port == f->in && now <= r->fresh))
		return true;
	e = bpf_map_lookup_elem(&fdb, &source);
	if (likely(e && e->port == f->in)) {
		if (now > e->seen + REFRESH)
			e->seen = now;
		remember(f, r, source, e);
		return true;
	}
	if (e && e->planned)
		return false;
	s = bpf_map_lookup_elem(&states, &f->in);
	if (!s)
		return true;
	if (s->learned >= f->port->addresses) {
		if (f->count)
			f->count->unlearned++;
		sweep(f->set, now);
		return true;
	}
	if (e) { /* it moved */
		uncount(&e->counted);
		e->port = f->in;
		e->seen = now;
		f->set->changed = bpf_ktime_get_ns();
		e->counted = f->in + 1;
		__sync_fetch_and_add(&s->learned, 1);
		return true;
	}
	struct entry fresh = { .seen = now, .port = f->in, .counted = f->in + 1 };

	if (bpf_map_update_elem(&fdb, &source, &fresh, BPF_NOEXIST) == 0)
		__sync_fetch_and_add(&s->learned, 1);
	else if (f->count)
		f->count->unlearned++;
	return true;
}

static __always_inline void count(struct frame *f)
{
	COUNT(f->count, 1, f->skb->len);
}

static long flood_one(__u32 i, struct frame *f)
{
	struct port *to = bpf_map_lookup_elem(&ports, &i);

	if (to && to->index && !to->blocked && i != f->in && may_send(f->port, i))
		bpf_clone_redirect(f->skb, to->index, 0);
	return 0;
}

/* Copies go through the queues of their ports' devices, which have none. */
static __always_inline int flood(struct frame *f)
{
	__u32 used = f->set->ports;

	count(f);
	if (f->count)
		f->count->floods++;
	bpf_loop(used < MAX_PORTS ? used : MAX_PORTS, flood_one, f, 0);
	return TCX_DROP;
}

static __always_inline int limited_flood(struct frame *f, bool group)
{
	struct state *s = bpf_map_lookup_elem(&states, &f->in);

	if (!s)
		return drop(f, DROP_BLOCKED);
	if (group)
		return limit(&s->broadcast, f->port->broadcast) ? flood(f) : drop(f, DROP_BROADCAST_LIMIT);
	return limit(&s->unknown, f->port->unknown) ? flood(f) : drop(f, DROP_UNKNOWN_LIMIT);
}

/* What a station says of its own address, and others of it. */
static __always_inline void listen(const struct frame *f, struct station *s, const __u8 *mac)
{
	if (s->port != f->in) {
		s->claimed = 1;
		return;
	}
	s->claimed = 0;
	if (mac && !mac_equal(s->now, mac))
		mac_copy(s->now, mac);
}

/* Whether the switch may answer for a station: 0, and -1 if the question is to
 * be sent on as any other, else the verdict. */
static __always_inline int answerable(struct frame *f, const struct station *s)
{
	__u32 port = s->port;
	struct port *to;

	if (s->claimed || port == f->in)
		return -1;
	to = bpf_map_lookup_elem(&ports, &port);
	if (!to || !to->index)
		return -1;
	return may_send(f->port, port) && may_send(to, f->in) ? 0 : drop(f, DROP_ISOLATED);
}

static __always_inline int send_back(struct frame *f)
{
	if (f->count)
		f->count->answers++;
	return bpf_redirect_peer(f->port->index, 0);
}

/* Answers a question for a planned station's address, so that it does not
 * have to be flooded. Unicast questions, by which a neighbour makes sure that
 * a station lives, go to that station. */
static __always_inline int answer(struct frame *f, struct ethhdr *eth, struct arphdr_eth_ip *arp)
{
	__u32 address = *(__u32 *)arp->ar_tip;
	struct station *s = bpf_map_lookup_elem(&stations, &address);
	int verdict;

	if (!s || *(__u32 *)arp->ar_sip == address)
		return -1;
	verdict = answerable(f, s);
	if (verdict)
		return verdict;
	mac_copy(eth->h_dest, eth->h_source);
	mac_copy(eth->h_source, s->now);
	arp->ar_op = bpf_htons(2);
	mac_copy(arp->ar_tha, arp->ar_sha);
	*(__u32 *)arp->ar_tip = *(__u32 *)arp->ar_sip;
	mac_copy(arp->ar_sha, s->now);
	*(__u32 *)arp->ar_sip = address;
	return send_back(f);
}

/* -1: the frame is to be sent on as any other. */
static __always_inline int resolve(struct frame *f)
{
	struct arphdr_eth_ip *arp;
	struct station *s;
	struct ethhdr *eth;
	__u32 sender;

	eth = reach(f->skb, ETH_HLEN + sizeof(*arp));
	if (!eth)
		return -1;
	arp = (void *)(eth + 1);
	if (eth->h_proto != bpf_htons(ETH_P_ARP) || arp->ar_hrd != bpf_htons(1) || arp->ar_pro != bpf_htons(ETH_P_IP) ||
	    arp->ar_hln != ETH_ALEN || arp->ar_pln != 4 || !mac_equal(arp->ar_sha, eth->h_source))
		return -1;
	sender = *(__u32 *)arp->ar_sip;
	s = sender ? bpf_map_lookup_elem(&stations, &sender) : NULL;
	if (s)
		listen(f, s, arp->ar_sha);
	if (arp->ar_op == bpf_htons(1) && mac_is_group(eth->h_dest))
		return answer(f, eth, arp);
	return -1;
}

#define ND_ROUTER 134 /* advertisement */
#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136
#define ND_SOURCE 1 /* options */
#define ND_TARGET 2
#define ND_NONCE 14
#define ND_SHORT 24 /* length without options */

/* Neighbour discovery with one option, as stations send it (RFC 4861, 4.3). */
struct nd {
	struct ipv6hdr ip;
	__u8 type, code;
	__sum16 check;
	__u8 flags, reserved[3];
	struct in6_addr target;
	__u8 option, units; /* of 8 bytes */
	__u8 mac[ETH_ALEN];
} __attribute__((packed, aligned(4)));

/* Sum of addresses, length, protocol and message: 0xffff when it is right. */
static __always_inline __u16 nd_sum(const struct nd *nd, bool option)
{
	__u32 sum = csum_words(&nd->ip.saddr, 16) + csum_words(&nd->type, ND_SHORT / 2) + nd->ip.payload_len +
		    bpf_htons(IPPROTO_ICMPV6);

	return csum_fold(option ? sum + csum_words(&nd->option, 4) : sum);
}

static __always_inline bool unspecified(const struct in6_addr *a)
{
	return !(a->u6_addr32[0] | a->u6_addr32[1] | a->u6_addr32[2] | a->u6_addr32[3]);
}

/* The group at which a station with an address is asked (RFC 4291, 2.7.1). */
static __always_inline bool solicits(const struct in6_addr *group, const struct in6_addr *target)
{
	return group->u6_addr32[0] == bpf_htonl(0xff020000) && !group->u6_addr32[1] && group->u6_addr32[2] == bpf_htonl(1) &&
	       group->u6_addr32[3] == (target->u6_addr32[3] | bpf_htonl(0xff000000));
}

/* A solicitation that the stations would take (RFC 4861, 7.1.1). One without
 * a sender's address asks whether the target's is free (RFC 4862, 5.4); its
 * option may be a nonce (RFC 7527). */
static __always_inline bool nd_asks(const struct nd *nd, const struct ethhdr *eth, bool option)
{
	if (!mac_is_group(eth->h_dest) || !solicits(&nd->ip.daddr, &nd->target))
		return false;
	if (unspecified(&nd->ip.saddr))
		return !option || nd->option == ND_NONCE;
	return option && nd->option == ND_SOURCE && mac_equal(nd->mac, eth->h_source) &&
	       !ip6_equal(&nd->ip.saddr, &nd->target);
}

/* Writes the advertisement over the question (RFC 4861, 7.2.4). */
static __always_inline int nd_answer(struct frame *f, struct nd *nd, const struct station6 *s)
{
	const bool probe = unspecified(&nd->ip.saddr);
	struct nd out = {
		.ip = { .version = 6, .payload_len = bpf_htons(sizeof(out) - sizeof(out.ip)), .nexthdr = IPPROTO_ICMPV6, .hop_limit = 255 },
		.type = ND_ADVERTISEMENT, .option = ND_TARGET, .units = 1,
	};
	struct ethhdr *eth;

	out.target = nd->target;
	out.ip.saddr = nd->target;
	out.ip.daddr = nd->ip.saddr;
	out.flags = 0x20 /* override */ | (probe ? 0 : 0x40 /* solicited */) | (s->router ? 0x80 : 0);
	if (probe) { /* to all: the asker has no address */
		out.ip.daddr.u6_addr32[0] = bpf_htonl(0xff020000);
		out.ip.daddr.u6_addr32[3] = bpf_htonl(1);
	}
	for (int i = 0; i < 3; i++) /* the stack wants aligned access */
		((__u16 *)out.mac)[i] = ((const __u16 *)s->is.now)[i];
	out.check = ~nd_sum(&out, true);
	if (f->skb->len != ETH_HLEN + sizeof(out) && bpf_skb_change_tail(f->skb, ETH_HLEN + sizeof(out), 0))
		return drop(f, DROP_MALFORMED);
	if (bpf_skb_store_bytes(f->skb, ETH_HLEN, &out, sizeof(out), BPF_F_RECOMPUTE_CSUM))
		return drop(f, DROP_MALFORMED);
	eth = reach(f->skb, ETH_HLEN);
	if (!eth)
		return drop(f, DROP_MALFORMED);
	mac_copy(eth->h_dest, eth->h_source);
	if (probe) {
		*(__u16 *)eth->h_dest = bpf_htons(0x3333);
		*(__u32 *)(eth->h_dest + 2) = bpf_htonl(1);
	}
	mac_copy(eth->h_source, s->is.now);
	return send_back(f);
}

/* Who says that they are a router. */
static __always_inline void nd_router(const struct frame *f, const struct in6_addr *who)
{
	struct station6 *s = bpf_map_lookup_elem(&stations6, who);

	if (s && s->is.port == f->in)
		s->router = 1;
}

/* Neighbour discovery; -1: the frame is to be sent on as any other. */
static __noinline int resolve6(struct frame *f)
{
	const __u32 most = ETH_HLEN + sizeof(struct nd), least = most - 8;
	struct ethhdr *eth = reach(f->skb, least);
	struct station6 *s;
	struct nd *nd;
	bool option;
	int verdict;

	if (!eth)
		return -1;
	nd = (void *)(eth + 1);
	if (nd->ip.nexthdr != IPPROTO_ICMPV6 || nd->ip.hop_limit != 255 || nd->ip.version != 6 || nd->code || f->skb->vlan_present)
		return -1;
	if (nd->type == ND_ROUTER) {
		nd_router(f, &nd->ip.saddr);
		return -1;
	}
	option = nd->ip.payload_len == bpf_htons(ND_SHORT + 8);
	if (f->skb->len != (option ? most : least) || (!option && nd->ip.payload_len != bpf_htons(ND_SHORT)) ||
	    (nd->type != ND_SOLICITATION && nd->type != ND_ADVERTISEMENT))
		return -1;
	if (option) {
		eth = reach(f->skb, most);
		if (!eth)
			return -1;
		nd = (void *)(eth + 1);
		if (nd->units != 1 || nd_sum(nd, true) != 0xffff)
			return -1;
	} else if (nd_sum(nd, false) != 0xffff) {
		return -1;
	}
	if (nd->type == ND_ADVERTISEMENT) {
		s = bpf_map_lookup_elem(&stations6, &nd->target);
		if (!s)
			return -1;
		listen(f, &s->is, option && nd->option == ND_TARGET ? nd->mac : NULL);
		if (s->is.port == f->in)
			s->router = nd->flags >> 7;
		return -1;
	}
	s = bpf_map_lookup_elem(&stations6, &nd->ip.saddr);
	if (s)
		listen(f, &s->is, option && nd->option == ND_SOURCE ? nd->mac : NULL);
	s = bpf_map_lookup_elem(&stations6, &nd->target);
	if (!s || !nd_asks(nd, eth, option))
		return -1;
	verdict = answerable(f, &s->is);
	return verdict ? verdict : nd_answer(f, nd, s);
}

/* 01:80:c2:00:00:00 to 0f are for the bridge itself (802.1Q, table 8-1). */
static __always_inline bool for_bridges(__u64 mac) { return (mac & 0xf0ffffffffffULL) == 0x0000c28001ULL; }

static __always_inline int send_known(struct frame *f, __u32 out)
{
	struct port *to = bpf_map_lookup_elem(&ports, &out);

	if (!to || !to->index || to->blocked)
		return drop(f, DROP_BLOCKED);
	if (out == f->in)
		return drop(f, DROP_SAME_PORT);
	if (!may_send(f->port, out))
		return drop(f, DROP_ISOLATED);
	count(f);
	return bpf_redirect_peer(to->index, 0);
}

/* The port of a device. The guess is right unless another device has the same
 * lowest bits; then it says so. */
static __always_inline struct port *port_of(__u32 device, __u32 *in)
{
	__u32 low = device % MAX_GUESSES, *number = bpf_map_lookup_elem(&guesses, &low);
	struct port *p;

	if (!number)
		return NULL;
	*in = *number;
	p = bpf_map_lookup_elem(&ports, in);
	if (likely(p && p->index == device))
		return p;
	number = bpf_map_lookup_elem(&numbers, &device);
	if (!number)
		return NULL;
	*in = *number;
	p = bpf_map_lookup_elem(&ports, in);
	return p && p->index == device ? p : NULL;
}

SEC("tc")
int vswitch(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct frame f = { .skb = skb, .now = bpf_ktime_get_coarse_ns() };
	struct cached_address *r;
	struct entry *e;
	struct ethhdr *eth;
	__u64 to, from;
	int verdict;

	f.port = port_of(skb->ifindex, &f.in);
	if (!f.port)
		return TCX_DROP;
	f.set = bpf_map_lookup_elem(&settings, &zero);
	f.count = bpf_map_lookup_elem(&counters, &f.in);
	f.cache = bpf_map_lookup_elem(&fdb_cache, &zero);
	if (!f.set || !f.cache || f.port->blocked)
		return drop(&f, DROP_BLOCKED);
	f.since = *(volatile __u64 *)&f.set->changed; /* before anything is looked up */
	eth = reach(skb, ETH_HLEN);
	if (!eth)
		return drop(&f, DROP_MALFORMED);
	to = mac_key(eth->h_dest);
	from = mac_key(eth->h_source);
	if (mac_is_group(eth->h_source) || !from || for_bridges(to))
		return drop(&f, DROP_MALFORMED);
	if (!learn(&f, from))
		return drop(&f, DROP_MOVED);
	if (unlikely(skb->protocol == bpf_htons(ETH_P_ARP))) {
		verdict = resolve(&f);
		if (verdict != -1)
			return verdict;
	} else if (unlikely(skb->protocol == bpf_htons(ETH_P_IPV6))) {
		verdict = resolve6(&f);
		if (verdict != -1)
			return verdict;
	}
	if (to & 1)
		return limited_flood(&f, true);
	r = cached(&f, to);
	if (likely(is_fresh(&f, r, to)))
		return send_known(&f, r->port);
	e = bpf_map_lookup_elem(&fdb, &to);
	if (likely(e && !aged(e, f.now, f.set->ageing))) {
		remember(&f, r, to, e);
		return send_known(&f, e->port);
	}
	return limited_flood(&f, false);
}

/* Whether a station may say something of itself that the switch hears. */
static __always_inline bool says(struct __sk_buff *skb)
{
	struct ethhdr *eth;

	if (skb->protocol != bpf_htons(ETH_P_IPV6))
		return skb->protocol == bpf_htons(ETH_P_ARP);
	eth = reach(skb, ETH_HLEN + sizeof(struct ipv6hdr));
	return !eth || ((struct ipv6hdr *)(eth + 1))->nexthdr == IPPROTO_ICMPV6;
}

/* What the program of a port would do with a frame between two stations that
 * it saw lately; all else comes to the port. */
SEC("tc")
int vswitch_chained(struct __sk_buff *skb)
{
	const struct port_ref *p = chained(skb);
	struct cached_address *sender, *receiver;
	struct frame f = { .skb = skb };
	struct port *to;
	struct ethhdr *eth;
	__u32 zero = 0, out;
	__u64 source, target;

	if (unlikely(!p || !is_valid(p, device_at(p))))
		return step_in(skb);
	f.in = p->port;
	f.port = bpf_map_lookup_elem(&ports, &f.in);
	f.set = bpf_map_lookup_elem(&settings, &zero);
	f.count = bpf_map_lookup_elem(&counters, &f.in);
	f.cache = bpf_map_lookup_elem(&fdb_cache, &zero);
	if (!f.port || !f.set || !f.count || !f.cache || f.port->index != p->index || f.port->blocked || says(skb))
		return step_in(skb);
	eth = reach(skb, ETH_HLEN);
	if (!eth)
		return step_in(skb);
	f.since = *(volatile __u64 *)&f.set->changed; /* before anything is looked up */
	f.now = bpf_ktime_get_coarse_ns();
	source = mac_key(eth->h_source);
	target = mac_key(eth->h_dest);
	sender = cached(&f, source);
	receiver = cached(&f, target);
	if (!is_fresh(&f, sender, source) || sender->port != f.in || f.now > sender->fresh || !is_fresh(&f, receiver, target))
		return step_in(skb);
	out = receiver->port;
	to = bpf_map_lookup_elem(&ports, &out);
	if (!to || !to->index || !to->slot || to->blocked || out == f.in || !may_send(f.port, out))
		return step_in(skb);
	count(&f);
	f.count->chained++;
	return leave_by(skb, to->slot);
}

SEC("tc")
int vswitch_port_ref(struct __sk_buff *skb) { return make_port_ref(skb); }

LICENSE;
