//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Explicit multipath from the end host (seed 003:715-855): a packet to a
 * prefix gets one IPv4 header per relay of the path its flow is on, all from
 * one template in one pass. Two look-ups, however many headers: the prefix,
 * and the flow.
 *
 * iplb_tx runs where packets leave for the fabric; iplb_relay where packets
 * come from the fabric, at relays and receivers.
 */
#include "checksum.h"

enum {
	RELAYS = 8,   /* of a path */
	CHOICES = 64, /* paths of a prefix, one bit each */
	SLOTS = 1024, /* by which weights are rounded */
	IPH = 20,
	NO_PATH = 0xffffffff,
};

/* Probes of liveness: skb->mark of those that leave (no path is chosen for
 * them), and what begins their payload. The port is BFD's echo (RFC 5881). */
enum {
	PROBE_MARK = 0x5b1b0001,
	PROBE_MAGIC = 0x69706c62,
	PROBE_PORT = 3785,
};

/* How a flow gets its path; the order is that of the names in iplb.go. */
enum mode { HASH, FLOW, FLOWLET, ROUND_ROBIN };

/* What became of a packet; the order is that of the names in counters.go. */
enum outcome {
	SPREAD,     /* left by a path */
	NATIVE,     /* no path is up: left as it was */
	TOO_BIG,    /* headers do not fit into the interface's MTU: left as it was */
	REFUSED,    /* the kernel could not add headers: left as it was */
	RELAYED,    /* a header was taken off */
	SOURCE,     /* dropped: from no sender of the fabric */
	CHECKSUM,   /* dropped: outer header damaged */
	FRAGMENT,   /* dropped: fragments of tunnel packets are never sent */
	MALFORMED,  /* dropped: options, wrong lengths, or no IPv4 inside */
	NESTED,     /* dropped: more headers for this node than a path has */
	OUTSIDE,    /* dropped: what is inside is not for the fabric */
	CONGESTED,  /* dropped: marked on its way, but its sender knows no marks (RFC 6040) */
	ECHOED,     /* a probe of this host came back */
	FORGED,     /* dropped: looks like a probe, but this host did not send it */
	OUTCOMES,
};

struct prefix {
	__u32 bits;
	__be32 address;
};

/* The paths to a prefix. Replaced as a whole: packets see the old or the new. */
struct set {
	struct prefix name; /* the first of those that lead here */
	__u32 mode;
	__u32 count;
	__u64 gap;   /* ns without a packet after which a flowlet may move */
	__u64 alive; /* paths that are up */
	__u32 paths[CHOICES];
	__u8 slots[SLOTS]; /* index of a path; each has its weight's part of them */
};

/* All headers of a path, outermost first, with length, tos and checksum 0. */
struct path {
	__u32 up;
	__u32 count; /* of headers */
	__u8 headers[RELAYS][IPH]; /* bytes: bit fields have no Go type */
};

struct flow_key {
	__be32 source, target;
	__u32 ports;
	__u32 protocol;
};

struct flow {
	__u32 path;
	__u32 set;
	__u64 packets, bytes;
	__u64 last; /* ns */
};

struct counts {
	__u64 packets, bytes;
};

/* The last probe of a path that came back. */
struct probe {
	__u64 secret; /* of this path's probes, drawn by the agent */
	__u64 at;     /* ns */
	__u32 heard;  /* its number; they are sent in order from 1 */
	__u32 unused;
};

/* What a probe carries behind its UDP header, in the byte order of the host,
 * which is the only one to read it. */
struct probe_text {
	__u32 magic, path;
	__u64 secret;
	__u32 number, unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, struct prefix);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 14);
	__type(key, __u32);
	__type(value, struct set);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} sets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct path);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct counts);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} loads SEC(".maps");

/* A flood of new flows pushes out the ones longest unused, and no more. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, struct flow_key);
	__type(value, struct flow);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct probe);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} probes SEC(".maps");

/* Next turn of round robin. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} turns SEC(".maps");

/* Addresses at which this node takes headers off. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __be32);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} locals SEC(".maps");

/* Outer source addresses of the fabric's senders. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, struct prefix);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} senders SEC(".maps");

/* Where packets may go when their headers are off. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, struct prefix);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} inside SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OUTCOMES);
	__type(key, __u32);
	__type(value, __u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} outcomes SEC(".maps");

static __always_inline int became(enum outcome what, int verdict)
{
	__u32 key = what;
	__u64 *n = bpf_map_lookup_elem(&outcomes, &key);

	if (n)
		(*n)++;
	return verdict;
}

/* ---- choosing ---- */

/* Keyed by odd constants of splitmix64: not symmetric, and small differences of
 * addresses and ports reach all bits. */
static __always_inline __u32 hash_of(const struct flow_key *k)
{
	__u64 h = ((__u64)k->source << 32 | k->target) * 0xbf58476d1ce4e5b9ULL;

	h ^= h >> 29;
	h += ((__u64)k->ports << 8 | k->protocol) * 0x94d049bb133111ebULL;
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15ULL;
	return h >> 32;
}

static __always_inline struct path *path_of(__u32 id) { return bpf_map_lookup_elem(&paths, &id); }

static __always_inline bool is_up(__u32 id)
{
	const struct path *p = path_of(id);

	return p && p->up;
}

/* Index of the lowest bit of a number that has one. */
static __always_inline __u32 lowest(__u64 x)
{
	__u32 n = 0;

	if (!(__u32)x) {
		n += 32;
		x >>= 32;
	}
	if (!(x & 0xffff)) {
		n += 16;
		x >>= 16;
	}
	if (!(x & 0xff)) {
		n += 8;
		x >>= 8;
	}
	if (!(x & 0xf)) {
		n += 4;
		x >>= 4;
	}
	if (!(x & 3)) {
		n += 2;
		x >>= 2;
	}
	return n + !(x & 1);
}

/* The path of a slot; where that is down, another one that is up, by other bits
 * of the number, so that all the others share its flows. NO_PATH: none is up. */
static __always_inline __u32 choose(const struct set *s, __u32 number)
{
	__u32 at = s->slots[number & (SLOTS - 1)] & (CHOICES - 1);
	__u64 later;

	if (unlikely(!(s->alive >> at & 1))) {
		if (!s->alive)
			return NO_PATH;
		at = number >> 10 & (CHOICES - 1);
		later = s->alive >> at;
		at = (later ? at + lowest(later) : lowest(s->alive)) & (CHOICES - 1);
	}
	return s->paths[at];
}

/* Turns go through the slots in steps that visit all of them. */
static __always_inline __u32 next_turn(void)
{
	__u32 zero = 0, *turn = bpf_map_lookup_elem(&turns, &zero);

	return turn ? __sync_fetch_and_add(turn, 1) : 0;
}

/* The path of a flow that the table knows, unless it must or may leave it. */
static __always_inline bool stays(const struct set *s, __u32 set, const struct flow *f, __u64 now)
{
	if (f->set != set || !is_up(f->path))
		return false;
	return s->mode != FLOWLET || now - f->last <= s->gap;
}

static __always_inline __u32 select(const struct set *s, __u32 set, const struct flow_key *k, __u32 bytes, __u32 packets)
{
	struct flow fresh = {}, *f;
	__u64 now;

	if (s->mode == HASH)
		return choose(s, hash_of(k));
	now = bpf_ktime_get_ns();
	f = bpf_map_lookup_elem(&flows, k);
	if (f && stays(s, set, f, now)) {
		__sync_fetch_and_add(&f->packets, packets);
		__sync_fetch_and_add(&f->bytes, bytes);
		f->last = now;
		return f->path;
	}
	if (s->mode == ROUND_ROBIN)
		fresh.path = choose(s, next_turn());
	else
		fresh.path = choose(s, s->mode == FLOWLET ? bpf_get_prandom_u32() : hash_of(k));
	fresh.set = set;
	fresh.packets = packets + (f ? f->packets : 0);
	fresh.bytes = bytes + (f ? f->bytes : 0);
	fresh.last = now;
	if (fresh.path != NO_PATH)
		bpf_map_update_elem(&flows, k, &fresh, BPF_ANY);
	return fresh.path;
}

/* ---- sending ---- */

/* Fragments of a datagram have one flow: only whole datagrams tell ports. */
static __always_inline void read_flow(struct __sk_buff *skb, struct flow_key *k, const struct iphdr *ip)
{
	bool ports = ip->ihl == 5 && !ip4_is_fragment(ip) && has_ports(ip->protocol);

	k->source = ip->saddr;
	k->target = ip->daddr;
	k->protocol = ip->protocol;
	k->ports = 0;
	if (ports)
		bpf_skb_load_bytes(skb, ETH_HLEN + IPH, &k->ports, 4);
}

/* Puts the headers of a path in front of a packet. */
static __always_inline int encapsulate(struct __sk_buff *skb, const struct path *p, __u8 tos, __u32 length)
{
	__u32 count = p->count, room;
	void *data;

	if (!count) /* the fabric's own way */
		return became(SPREAD, TCX_NEXT);
	if (count > RELAYS)
		return became(NATIVE, TCX_NEXT);
	room = count * IPH;
	if (!skb->gso_size && bpf_check_mtu(skb, 0, &(__u32){ 0 }, room, 0))
		return became(TOO_BIG, TCX_NEXT);
	if (bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_FIXED_GSO))
		return became(REFUSED, TCX_NEXT);
#pragma unroll
	for (int i = 0; i < RELAYS; i++) {
		struct iphdr h;
		__u32 at = ETH_HLEN + i * IPH;

		if (i >= count)
			break;
		h = *(const struct iphdr *)p->headers[i];
		h.tos = tos;
		h.tot_len = bpf_htons(length + room - i * IPH);
		h.check = ip4_checksum(&h);
		data = reach(skb, at + IPH);
		if (!data)
			return became(REFUSED, TCX_DROP); /* half written */
		*(struct iphdr *)(data + at) = h;
	}
	return became(SPREAD, TCX_NEXT);
}

SEC("tc")
int iplb_tx(struct __sk_buff *skb)
{
	const void *data;
	struct prefix to = { .bits = 32 };
	struct flow_key key;
	struct counts *load;
	struct set *s;
	struct path *p;
	__u32 *set, path, segments, length;
	__u8 tos;

	if (skb->protocol != bpf_htons(ETH_P_IP) || skb->mark == PROBE_MARK)
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH);
	if (!data)
		return TCX_NEXT;
	const struct iphdr *ip = data + ETH_HLEN;

	to.address = ip->daddr;
	tos = ip->tos;
	/* A short frame may be padded; what is to be segmented has its length elsewhere. */
	length = skb->gso_size ? skb->len - ETH_HLEN : bpf_ntohs(ip->tot_len);
	if (length > skb->len - ETH_HLEN || length < IPH)
		return TCX_NEXT;
	set = bpf_map_lookup_elem(&prefixes, &to);
	if (!set)
		return TCX_NEXT;
	s = bpf_map_lookup_elem(&sets, set);
	if (!s)
		return became(NATIVE, TCX_NEXT);
	read_flow(skb, &key, ip);
	segments = segments_of(skb);
	path = select(s, *set, &key, skb->len, segments);
	p = path_of(path);
	if (!p || !p->up)
		return became(NATIVE, TCX_NEXT);
	load = bpf_map_lookup_elem(&loads, &path);
	if (load) {
		load->packets += segments;
		load->bytes += skb->len;
	}
	return encapsulate(skb, p, tos, length);
}

/* ---- relaying ---- */

static __always_inline bool allowed(void *map, __be32 address)
{
	struct prefix p = { .bits = 32, .address = address };

	return bpf_map_lookup_elem(map, &p) != NULL;
}

/* Checks one header for this node; OUTCOMES: it is sound. */
static __always_inline enum outcome inspect(const struct iphdr *ip, __u32 left)
{
	if (ip->version != 4 || ip->ihl != 5)
		return MALFORMED;
	if (!ip4_intact(ip))
		return CHECKSUM;
	if (ip4_is_fragment(ip))
		return FRAGMENT;
	if (bpf_ntohs(ip->tot_len) > left || bpf_ntohs(ip->tot_len) < 2 * IPH)
		return MALFORMED;
	if (!allowed(&senders, ip->saddr))
		return SOURCE;
	return OUTCOMES;
}

/* Passes the mark of congestion on to what was inside (RFC 6040, figure 4). */
static __always_inline bool keep_mark(struct __sk_buff *skb, __u8 outer)
{
	void *data;
	struct iphdr *ip;

	if ((outer & ECN_MASK) != ECN_CE)
		return true;
	data = reach(skb, ETH_HLEN + IPH);
	if (!data)
		return false;
	ip = data + ETH_HLEN;
	if ((ip->tos & ECN_MASK) == ECN_NOT_ECT)
		return false;
	ip4_set_tos(ip, ip->tos | ECN_CE);
	return true;
}

SEC("tc")
int iplb_relay(struct __sk_buff *skb)
{
	__u32 at = ETH_HLEN, count = 0;
	__u8 marks = 0;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TCX_NEXT;
#pragma unroll
	for (int i = 0; i <= RELAYS; i++) {
		const void *data = reach(skb, ETH_HLEN + (i + 1) * IPH);
		const struct iphdr *ip;
		enum outcome why;
		__u32 *local;
		__be32 target;

		if (!data)
			return count ? became(MALFORMED, TCX_DROP) : TCX_NEXT;
		ip = data + ETH_HLEN + i * IPH;
		target = ip->daddr;
		local = ip->protocol == IPPROTO_IPIP ? bpf_map_lookup_elem(&locals, &target) : NULL;
		if (!local) {
			if (!count)
				return TCX_NEXT;
			if (ip->version != 4 || ip->ihl < 5 || bpf_ntohs(ip->tot_len) > skb->len - at || bpf_ntohs(ip->tot_len) < ip->ihl * 4)
				return became(MALFORMED, TCX_DROP);
			if (!allowed(&inside, target))
				return became(OUTSIDE, TCX_DROP);
			break;
		}
		if (i == RELAYS)
			return became(NESTED, TCX_DROP);
		why = inspect(ip, skb->len - at);
		if (why != OUTCOMES)
			return became(why, TCX_DROP);
		if ((ip->tos & ECN_MASK) == ECN_CE)
			marks = ECN_CE;
		count++;
		at += IPH;
	}
	if (bpf_skb_adjust_room(skb, -(int)(count * IPH), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
		return became(REFUSED, TCX_DROP);
	if (!keep_mark(skb, marks))
		return became(CONGESTED, TCX_DROP);
	return became(RELAYED, TCX_NEXT);
}

/* ---- liveness ---- */

/* A probe comes back as the packet that was inside: UDP to this host. Numbers
 * only grow: one that arrives late, or again, says nothing new. */
static __always_inline int hear(const struct probe_text *text)
{
	__u32 path = text->path;
	struct probe *p = bpf_map_lookup_elem(&probes, &path);

	if (!p || p->secret != text->secret)
		return became(FORGED, TCX_DROP);
	if ((__s32)(text->number - p->heard) > 0) {
		p->at = bpf_ktime_get_ns();
		p->heard = text->number;
	}
	return became(ECHOED, TCX_DROP);
}

SEC("tc")
int iplb_echo(struct __sk_buff *skb)
{
	const struct iphdr *ip;
	const struct udphdr *udp;
	const struct probe_text *text;
	const void *data;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH + 8);
	if (!data)
		return TCX_NEXT;
	ip = data + ETH_HLEN;
	udp = data + ETH_HLEN + IPH;
	if (ip->ihl != 5 || ip->protocol != IPPROTO_UDP || ip->saddr != ip->daddr || udp->dest != bpf_htons(PROBE_PORT))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH + 8 + sizeof(*text));
	if (!data)
		return TCX_NEXT;
	text = data + ETH_HLEN + IPH + 8;
	return text->magic == PROBE_MAGIC ? hear(text) : TCX_NEXT;
}

LICENSE;
