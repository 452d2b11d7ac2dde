//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Explicit multipath from the end host (Nakamura, thesis, section 5.3): a packet
 * to a prefix gets one IPv4 header per relay of the path its flow is on, all
 * from one template in one pass. Two look-ups, however many headers: the
 * prefix, and the flow.
 *
 * iplb_tx runs where packets leave for the fabric; iplb_relay where packets
 * come from the fabric, at relays and receivers.
 */
#include "checksum.h"
#include "contract.h"
#include "kernel.h"
#include "maps.h"

/* When packets from the fabric go past the stack. */
enum shortcut { SHORTCUT_FREE, SHORTCUT_ALWAYS, SHORTCUT_NEVER, SHORTCUTS };

enum {
	RELAYS = 8,   /* of a path */
	CHOICES = 64, /* paths of a prefix, one bit each */
	SHARES = 1024, /* by which weights are rounded */
	IPH = 20,
	UDPH = 8,
	GREH = 4,
	IP6H = 40,
	SRH = 8,  /* in front of its segments */
	SID = 16, /* a segment */
	LISTH = 4, /* in front of the addresses of a relay list */
	NO_PATH = 0xffffffff,
	OTHERS = 0xfffffffe, /* in place of a path: the target has no prefix here */
	CACHED_FLOWS = 2048, /* flows of a processor that find their path in one look-up */
	CACHED_ADDRESSES = 1024, /* addresses allowed by a list without a look-up of prefixes */
};

/* The form of a path's relay list on the wire. */
enum form { FORM_IPIP, FORM_GRE, FORM_UDP, FORM_SRV6, FORMS };

/* FORM_UDP is one UDP header, its destination port PORT_RELAY_LIST, checksum 0, and
 * behind it the list of what the packet visits after its present target:
 *
 *   version 1 (4 bits), addresses (4), what is inside (4), visited (4),
 *   port (16), addresses (32 each)
 *
 * WHOLE: an IPv4 packet is inside; the relay that finds all visited takes
 * everything off. TUNNEL: the list was put into a tunnel's packet behind its
 * UDP header; its last address is the packet's own target. The relay that sends
 * it there takes the list out and puts the port back. */
enum { WHOLE, TUNNEL, LIST_VERSION = 1 };

struct list {
	__u8 first;  /* version, addresses */
	__u8 second; /* inside, visited */
	__be16 port;
};

/* How a flow gets its path. */
enum mode { MODE_HASH, MODE_FLOW, MODE_FLOWLET, MODE_ROUND_ROBIN, MODES };

/* What became of a packet. */
enum outcome {
	OUTCOME_SPREAD, /* left by a path */
	OUTCOME_NATIVE, /* no path is up: left as it was */
	OUTCOME_TOO_BIG, /* headers do not fit into the interface's MTU: sender told, or left as it was */
	OUTCOME_REFUSED, /* the kernel could not add headers: left as it was */
	OUTCOME_RELAYED, /* a header was taken off */
	OUTCOME_DROP_SOURCE, /* dropped: from no sender of the fabric */
	OUTCOME_DROP_CHECKSUM, /* dropped: outer header damaged */
	OUTCOME_DROP_FRAGMENT, /* dropped: fragments of tunnel packets are never sent */
	OUTCOME_DROP_MALFORMED, /* dropped: options, wrong lengths, or no IPv4 inside */
	OUTCOME_DROP_NESTED, /* dropped: more headers for this node than a path has */
	OUTCOME_DROP_OUTSIDE, /* dropped: what is inside is not for the fabric */
	OUTCOME_DROP_CONGESTED, /* dropped: marked on its way, but its sender knows no marks (RFC 6040) */
	OUTCOME_ECHOED, /* a probe of this host came back */
	OUTCOME_DROP_FORGED, /* dropped: looks like a probe, but this host did not send it */
	OUTCOME_FORWARDED, /* another's, sent to its next hop past the stack */
	OUTCOMES,
};

struct prefix {
	__u32 bits;
	__be32 address;
};

/* The paths to a prefix. Replaced as a whole: packets see the old or the new. */
struct set {
	struct prefix name; /* the first of those that lead here */
	enum mode mode;
	__u32 count;
	__u64 gap;   /* ns without a packet after which a flowlet may move */
	__u64 alive; /* paths that are up */
	__u32 paths[CHOICES];
	__u8 slots[SHARES]; /* index of a path; each has its weight's part of them */
};

/* All headers of a path, outermost first, with length, tos and checksum 0; of
 * FORM_SRV6 the source and then the segments, 16 bytes each. */
struct path {
	__u32 up;
	__u32 count; /* of relays */
	enum form form;
	__u8 headers[RELAYS][IPH]; /* bytes: bit fields have no Go type */
	__u16 sums[RELAYS]; /* of each header's words, as they lie in memory */
};

struct flow_key {
	__be32 source, target;
	__u32 ports;
	__u32 protocol; /* and above it the number of a tunnel */
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

/* Where a flow went lately, and what it carried since its entry in the flow
 * table was last brought up to date. Sound for one tick and one generation. */
struct cached_flow {
	struct flow_key key;
	__u64 tick;       /* jiffies */
	__u32 generation; /* of the tables */
	__u32 path;
	__u32 packets, tracked;
	__u64 bytes;
};

/* Where a flow goes from here. Sound for one tick. */
struct hop {
	struct flow_key key; /* tos above the protocol */
	__u64 tick;
	__u32 from, to; /* devices */
	__u16 target[3], source[3];
	__u32 mtu;
};

/* What the programs must see at once of what user space changed. */
struct state {
	__u32 generation; /* one more with each change of sets, prefixes, flows */
	__u32 acl_gen;    /* likewise, of senders and allowed_inner; never 0 */
	__u32 tunnels;    /* some have a path of their own */
	enum shortcut shortcut; /* when packets from the fabric go to their next hop past the stack */
	__u32 wires_gso;  /* all wires carry large packets, since they are within this kernel */
	__u32 unused;
	__u64 locals[64]; /* a bit for each address of this node, by near() */
	enum outcome outcomes[0]; /* names them for Go */
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

MAP(BPF_MAP_TYPE_LPM_TRIE, struct prefix, __u32, 1 << 16, BPF_F_NO_PREALLOC) prefixes SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, __u32, struct set, 1 << 14, BPF_F_NO_PREALLOC) sets SEC(".maps");

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct path, 8192, 0) paths SEC(".maps");

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct counts, 8192, 0) loads SEC(".maps");

/* A flood of new flows pushes out the ones longest unused, and no more. */
MAP(BPF_MAP_TYPE_LRU_HASH, struct flow_key, struct flow, 1 << 16, 0) flows SEC(".maps");

/* The path of a tunnel, by its number (VXLAN), whatever its target. */
MAP(BPF_MAP_TYPE_HASH, __u32, __u32, 8192, BPF_F_NO_PREALLOC) tunnels SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, __u32, struct probe, 8192, BPF_F_NO_PREALLOC) probes SEC(".maps");

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct cached_flow, CACHED_FLOWS, 0) flow_cache SEC(".maps");

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct hop, CACHED_FLOWS, 0) hops SEC(".maps");

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct state, 1, 0) states SEC(".maps");

/* Addresses that were found in senders (the first CACHED_ADDRESSES) and in
 * allowed_inner: address, and above it acl_gen at that time. */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u64, 2 * CACHED_ADDRESSES, 0) acl_cache SEC(".maps");

/* Next turn of round robin. */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u32, 1, 0) turns SEC(".maps");

/* Addresses at which this node takes headers off. */
MAP(BPF_MAP_TYPE_HASH, __be32, __u32, 256, 0) locals SEC(".maps");

/* Outer source addresses of the fabric's senders. */
MAP(BPF_MAP_TYPE_LPM_TRIE, struct prefix, __u32, 1 << 16, BPF_F_NO_PREALLOC) senders SEC(".maps");

/* Where packets may go when their headers are off. */
MAP(BPF_MAP_TYPE_LPM_TRIE, struct prefix, __u32, 1 << 16, BPF_F_NO_PREALLOC) allowed_inner SEC(".maps");

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, OUTCOMES, 0) outcomes SEC(".maps");

static __always_inline int became(enum outcome what, int verdict)
{
	__u32 key = what;
	__u64 *n = bpf_map_lookup_elem(&outcomes, &key);

	if (n)
		(*n)++;
	return verdict;
}

static __always_inline struct state *state_of(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&states, &zero);
}

/* Not IPv4, or of a VLAN, which is a network of its own. */
static __always_inline bool is_foreign(const struct __sk_buff *skb)
{
	return skb->protocol != bpf_htons(ETH_P_IP) || skb->vlan_present;
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

/* The path of a slot; where that is down, that of another slot by other bits of
 * the number, and after some of those in vain any path that is up, so that all
 * the others share its flows, by weight. Turns are small numbers, whose bits are
 * mixed. NO_PATH: none is up. */
static __always_inline __u32 choose(const struct set *s, __u32 number)
{
	__u32 at = s->slots[number & (SHARES - 1)] & (CHOICES - 1);
	__u64 later;

	if (unlikely(!(s->alive >> at & 1))) {
		if (!s->alive)
			return NO_PATH;
#pragma unroll
		for (int i = 0; i < 4; i++) {
			number = (number + 1) * 0x9e3779b1u;
			at = s->slots[number >> 22 & (SHARES - 1)] & (CHOICES - 1);
			if (s->alive >> at & 1)
				return s->paths[at];
		}
		at = number >> 16 & (CHOICES - 1);
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
	return s->mode != MODE_FLOWLET || now - f->last <= s->gap;
}

/* Not atomic: two processors rarely send one flow at once, and then the loss of
 * a packet in a count changes nothing. */
static __always_inline void count_flow(struct flow *f, __u64 now, __u32 bytes, __u32 packets)
{
	f->packets += packets;
	f->bytes += bytes;
	f->last = now;
}

static __always_inline __u32 select(const struct set *s, __u32 set, const struct flow_key *k, __u32 hash, __u32 bytes, __u32 packets)
{
	struct flow fresh = {}, *f;
	__u64 now;

	if (s->mode == MODE_HASH)
		return choose(s, hash);
	now = s->mode == MODE_FLOWLET ? bpf_ktime_get_ns() : bpf_ktime_get_coarse_ns(); /* else for ageing only */
	f = bpf_map_lookup_elem(&flows, k);
	if (f && stays(s, set, f, now)) {
		count_flow(f, now, bytes, packets);
		return f->path;
	}
	if (s->mode == MODE_ROUND_ROBIN)
		fresh.path = choose(s, next_turn());
	else
		fresh.path = choose(s, s->mode == MODE_FLOWLET ? bpf_get_prandom_u32() : hash);
	fresh.set = set;
	fresh.packets = packets + (f ? f->packets : 0);
	fresh.bytes = bytes + (f ? f->bytes : 0);
	fresh.last = now;
	if (fresh.path != NO_PATH)
		bpf_map_update_elem(&flows, k, &fresh, BPF_ANY);
	return fresh.path;
}

/* Brings the flow table up to date. */
static __always_inline void settle(struct cached_flow *l)
{
	struct flow *f;

	if (!l->packets)
		return;
	if (l->tracked) {
		f = bpf_map_lookup_elem(&flows, &l->key);
		if (f)
			count_flow(f, bpf_ktime_get_coarse_ns(), l->bytes, l->packets);
	}
	l->packets = 0;
	l->bytes = 0;
}

static __always_inline bool same_flow(const struct flow_key *a, const struct flow_key *b)
{
	return a->source == b->source && a->target == b->target && a->ports == b->ports && a->protocol == b->protocol;
}

/* The path of a flow by the tables, OTHERS, or NO_PATH: none is up. *mode is
 * MODE_HASH unless the flow has an entry in the flow table. */
static __noinline __u32 look_up(const struct flow_key *k, __u32 hash, __u32 bytes, __u32 packets, __u32 *mode)
{
	struct prefix to = { .bits = 32, .address = k->target };
	__u32 *set, *path, tunnel = k->protocol >> 8;
	const struct set *s;

	if (tunnel) {
		path = bpf_map_lookup_elem(&tunnels, &tunnel);
		if (path)
			return *path;
	}
	set = bpf_map_lookup_elem(&prefixes, &to);
	if (!set)
		return OTHERS;
	s = bpf_map_lookup_elem(&sets, set);
	if (!s)
		return NO_PATH;
	*mode = s->mode;
	return select(s, *set, k, hash, bytes, packets);
}

/* The path of a flow. Most packets find it where the one before them left it:
 * the tables proper are asked once a tick, and after each change of theirs. */
static __always_inline __u32 path_for(const struct flow_key *k, __u32 bytes, __u32 packets, __u32 hash)
{
	__u32 at = hash >> 8 & (CACHED_FLOWS - 1), generation, mode = MODE_HASH, path;
	struct cached_flow *l = bpf_map_lookup_elem(&flow_cache, &at);
	const struct state *state = state_of();
	__u64 tick = bpf_jiffies64();

	if (!l || !state)
		return NO_PATH;
	generation = *(volatile const __u32 *)&state->generation; /* before the tables are read */
	path = l->path;
	if (l->tick == tick && l->generation == generation && same_flow(&l->key, k) && (path == OTHERS || is_up(path))) {
		l->packets += packets;
		l->bytes += bytes;
		return path;
	}
	settle(l);
	path = look_up(k, hash, bytes, packets, &mode);
	l->key = *k;
	l->path = path;
	l->tracked = mode != MODE_HASH;
	l->generation = generation;
	l->tick = mode == MODE_FLOWLET ? 0 : tick;
	return path;
}

/* ---- sending ---- */

/* The number of the tunnel that a packet to VXLAN's port is of (RFC 7348), if
 * some have paths of their own; else 0. */
static __always_inline __u32 tunnel_of(struct __sk_buff *skb)
{
	const struct state *state = state_of();
	const void *data;

	if (!state || !state->tunnels)
		return 0;
	data = reach(skb, ETH_HLEN + IPH + UDPH + 8);
	return data ? bpf_ntohl(*(const __be32 *)(data + ETH_HLEN + IPH + UDPH + 4)) >> 8 : 0;
}

/* The ports behind a header without options, whose four bytes are within reach; 0:
 * none. Fragments of a datagram have one flow: only whole datagrams tell ports. */
static __always_inline __u32 ports_of(const struct iphdr *ip)
{
	return has_ports(ip->protocol) && !ip4_is_fragment(ip) ? *(const __u32 *)(ip + 1) : 0;
}

static __always_inline void read_flow(struct __sk_buff *skb, struct flow_key *k, const struct iphdr *ip)
{
	bool options = ip->ihl != 5;
	const void *data;

	k->source = ip->saddr;
	k->target = ip->daddr;
	k->protocol = ip->protocol;
	k->ports = 0;
	data = options ? NULL : reach(skb, ETH_HLEN + IPH + 4);
	if (data)
		k->ports = ports_of(data + ETH_HLEN);
	if (k->protocol == IPPROTO_UDP && k->ports >> 16 == bpf_htons(PORT_VXLAN))
		k->protocol |= tunnel_of(skb) << 8;
}

/* Ports of tunnels over UDP: VXLAN, VXLAN-GPE, Geneve, GUE, LISP. */
static __always_inline bool is_tunnel(__be16 port)
{
	return port == bpf_htons(4789) || port == bpf_htons(4790) || port == bpf_htons(6081) || port == bpf_htons(6080) || port == bpf_htons(4341);
}

/* Whether a list goes between the headers of a tunnel's packet. */
static __always_inline bool into_tunnel(const struct flow_key *k)
{
	return (__u8)k->protocol == IPPROTO_UDP && is_tunnel(k->ports >> 16);
}

/* Whether a packet needs no marks in front of which headers it is to be cut, or
 * have its checksum computed: it is not large, and no card will see it. */
static __always_inline bool is_plain(const struct __sk_buff *skb)
{
	const struct state *state = state_of();

	return !skb->gso_size && state && state->wires_gso;
}

/* Room behind the Ethernet header of a plain packet: more in front of it, to
 * which that is moved, in words: whoever reads bytes that were written one by one
 * waits for them. An eighth of what bpf_skb_adjust_room costs. To the kernel, the
 * packet's IP header stays the one that it was: queues that tell flows apart, or
 * mark congestion, do so by it. */
static __always_inline int open_room(struct __sk_buff *skb, __u32 room)
{
	void *data = reach(skb, ETH_HLEN);
	__u64 first;
	__u32 second;
	__u16 third;

	if (!data)
		return TCX_NEXT;
	first = *(__u64 *)data;
	second = *(__u32 *)(data + 8);
	third = *(__u16 *)(data + 12);
	if (bpf_skb_change_head(skb, room, 0))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN);
	if (!data)
		return TCX_DROP; /* half written */
	*(__u64 *)data = first;
	*(__u32 *)(data + 8) = second;
	*(__u16 *)(data + 12) = third;
	return 0;
}

/* Room for headers of IPv4 in front of a packet; marks say what they are. 0, or
 * the verdict on a packet that has none: of a tunnel's, what the kernel would not
 * take if it were large, so that a flow's packets keep to one path. */
static __always_inline int make_room(struct __sk_buff *skb, const struct flow_key *k, __u32 room, __u64 marks)
{
	if (is_plain(skb) && !into_tunnel(k))
		return open_room(skb, room);
	return bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_FIXED_GSO | marks) ? TCX_NEXT : 0;
}

/* A header of a path. */
static __always_inline void write_header(struct iphdr *to, const struct path *p, int i, __u8 tos, __u32 length)
{
	const __u32 *from = (const void *)p->headers[i];
	__u32 *words = (void *)to;

	words[0] = from[0] | bpf_htonl((__u32)tos << 16 | (__u16)length);
	words[1] = from[1];
	words[2] = from[2];
	words[3] = from[3];
	words[4] = from[4];
	to->check = ~csum_fold((__u32)p->sums[i] + bpf_htons(tos) + bpf_htons(length));
}

/* Writes a stack of IPv4 headers, with GRE between them or not. */
static __always_inline int write_stack(struct __sk_buff *skb, const struct path *p, __u32 count, __u8 tos, __u32 length, const __u32 stride)
{
	const struct greh { __be16 flags, protocol; } gre = { 0, bpf_htons(ETH_P_IP) };

#pragma unroll
	for (int i = 0; i < RELAYS; i++) {
		const __u32 at = ETH_HLEN + i * stride;
		void *data;

		if (i >= count)
			break;
		data = reach(skb, at + stride);
		if (!data)
			return became(OUTCOME_REFUSED, TCX_DROP); /* half written */
		write_header(data + at, p, i, tos, length + (count - i) * stride);
		if (stride > IPH)
			*(struct greh *)(data + at + IPH) = gre;
	}
	return became(OUTCOME_SPREAD, TCX_NEXT);
}

/* The kernel cuts a large packet behind one GRE header right; behind several,
 * the lengths of the inner ones would be wrong. */
static __always_inline int stack(struct __sk_buff *skb, const struct path *p, __u32 count, const struct flow_key *k, __u8 tos, __u32 length)
{
	int verdict;

	if (p->form == FORM_GRE) {
		if (skb->gso_size && count > 1)
			return became(OUTCOME_REFUSED, TCX_NEXT);
		verdict = make_room(skb, k, count * (IPH + GREH), BPF_F_ADJ_ROOM_ENCAP_L4_GRE);
		if (verdict)
			return became(OUTCOME_REFUSED, verdict);
		return write_stack(skb, p, count, tos, length, IPH + GREH);
	}
	verdict = make_room(skb, k, count * IPH, 0);
	if (verdict)
		return became(OUTCOME_REFUSED, verdict);
	return write_stack(skb, p, count, tos, length, IPH);
}

/* Writes the addresses of the relays from the second on. */
static __always_inline bool write_list(struct __sk_buff *skb, const struct path *p, __u32 count)
{
#pragma unroll
	for (int i = 1; i < RELAYS; i++) {
		const __u32 at = ETH_HLEN + IPH + UDPH + LISTH + (i - 1) * 4;
		void *data;

		if (i >= count)
			break;
		data = reach(skb, at + 4);
		if (!data)
			return false;
		*(__be32 *)(data + at) = ((const struct iphdr *)p->headers[i])->daddr;
	}
	return true;
}

/* A whole packet behind one UDP header with the list; the source port tells
 * flows apart for switches on the way. */
static __always_inline int list_whole(struct __sk_buff *skb, const struct path *p, __u32 count, const struct flow_key *k, __u8 tos, __u32 length, __u32 hash)
{
	__u32 room = IPH + UDPH + LISTH + (count - 1) * 4;
	struct list *list;
	struct udphdr *udp;
	void *data;
	int verdict;

	verdict = make_room(skb, k, room, BPF_F_ADJ_ROOM_ENCAP_L4_UDP);
	if (verdict)
		return became(OUTCOME_REFUSED, verdict);
	data = reach(skb, ETH_HLEN + IPH + UDPH + LISTH);
	if (!data)
		return became(OUTCOME_REFUSED, TCX_DROP);
	write_header(data + ETH_HLEN, p, 0, tos, length + room);
	udp = data + ETH_HLEN + IPH;
	udp->source = bpf_htons(0xc000 | (hash & 0x3fff));
	udp->dest = bpf_htons(PORT_RELAY_LIST);
	udp->len = bpf_htons(length + room - IPH);
	udp->check = 0;
	list = (void *)udp + UDPH;
	list->first = LIST_VERSION << 4 | (count - 1);
	list->second = WHOLE << 4;
	list->port = 0;
	return write_list(skb, p, count) ? became(OUTCOME_SPREAD, TCX_NEXT) : became(OUTCOME_REFUSED, TCX_DROP);
}

/* The list into a tunnel's packet, which the kernel would refuse another header
 * in front: what was marked as tunnelled keeps its marks, and large packets are
 * cut behind the tunnel's header, however long it is. */
static __always_inline int list_tunnel(struct __sk_buff *skb, const struct path *p, __u32 count, __u32 length, struct udphdr udp)
{
	const __u32 room = LISTH + count * 4;
	struct iphdr *ip;
	struct list *list;
	void *data;
	__be32 target;

	if (bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_FIXED_GSO))
		return became(OUTCOME_REFUSED, TCX_NEXT);
	data = reach(skb, ETH_HLEN + IPH + UDPH + LISTH);
	if (!data)
		return became(OUTCOME_REFUSED, TCX_DROP);
	list = data + ETH_HLEN + IPH + UDPH;
	list->first = LIST_VERSION << 4 | count;
	list->second = TUNNEL << 4;
	list->port = udp.dest;
	udp.dest = bpf_htons(PORT_RELAY_LIST);
	udp.len = bpf_htons(length + room - IPH);
	*(struct udphdr *)(data + ETH_HLEN + IPH) = udp;
	ip = data + ETH_HLEN;
	target = ip->daddr;
	ip->daddr = ((const struct iphdr *)p->headers[0])->daddr;
	ip->tot_len = bpf_htons(length + room);
	ip->check = 0;
	ip->check = ip4_checksum(ip);
	if (!write_list(skb, p, count) || bpf_skb_store_bytes(skb, ETH_HLEN + IPH + UDPH + LISTH + (count - 1) * 4, &target, 4, 0))
		return became(OUTCOME_REFUSED, TCX_DROP);
	return became(OUTCOME_SPREAD, TCX_NEXT);
}

/* One IPv6 header and a segment routing header (RFC 8754), its segments from the
 * last to the first; the flow label tells flows apart. */
static __always_inline int segments(struct __sk_buff *skb, const struct path *p, __u32 count, __u8 tos, __u32 length, __u32 hash)
{
	const __u32 room = IP6H + SRH + count * SID;
	const __u8 *all = (const void *)p->headers; /* the source, then segments */
	__u8 *ip, *srh;
	void *data;

	if (bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 | BPF_F_ADJ_ROOM_FIXED_GSO))
		return became(OUTCOME_REFUSED, TCX_NEXT);
	data = reach(skb, ETH_HLEN + IP6H + SRH);
	if (!data)
		return became(OUTCOME_REFUSED, TCX_DROP);
	*(__be16 *)(data + 12) = bpf_htons(ETH_P_IPV6);
	ip = data + ETH_HLEN;
	*(__be32 *)ip = bpf_htonl(6u << 28 | (__u32)tos << 20 | (hash & 0xfffff));
	*(__be16 *)(ip + 4) = bpf_htons(length + room - IP6H);
	ip[6] = 43; /* routing */
	ip[7] = 64;
	__builtin_memcpy(ip + 8, all, SID);
	__builtin_memcpy(ip + 24, all + SID, SID);
	srh = ip + IP6H;
	srh[0] = IPPROTO_IPIP;
	srh[1] = count * 2; /* in units of 8 bytes, the first not counted */
	srh[2] = 4;
	srh[3] = srh[4] = count - 1; /* left to visit; index of the last */
	srh[5] = 0;
	*(__be16 *)(srh + 6) = 0;
#pragma unroll
	for (int i = 0; i < RELAYS; i++) {
		const __u32 at = ETH_HLEN + IP6H + SRH + i * SID;
		__u32 from = (count - 1 - i) & (RELAYS - 1);

		if (i >= count)
			break;
		data = reach(skb, at + SID);
		if (!data)
			return became(OUTCOME_REFUSED, TCX_DROP); /* half written */
		__builtin_memcpy(data + at, all + SID + from * SID, SID);
	}
	return became(OUTCOME_SPREAD, TCX_NEXT);
}

static __always_inline int list_of(struct __sk_buff *skb, const struct path *p, __u32 count, const struct flow_key *k, __u32 hash, __u8 tos, __u32 length)
{
	struct udphdr udp;

	if (into_tunnel(k)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN + IPH, &udp, sizeof(udp)) || udp.check)
			return became(OUTCOME_REFUSED, TCX_NEXT); /* a checksum covers what would change */
		return list_tunnel(skb, p, count, length, udp);
	}
	return list_whole(skb, p, count, k, tos, length, hash);
}

/* How much longer a path makes packets. */
static __always_inline __u32 room_of(const struct path *p, __u32 count, const struct flow_key *k)
{
	if (p->form == FORM_UDP && into_tunnel(k))
		return LISTH + count * 4;
	if (p->form == FORM_UDP)
		return IPH + UDPH + LISTH + (count - 1) * 4;
	if (p->form == FORM_SRV6)
		return IP6H + SRH + count * SID;
	return count * (p->form == FORM_GRE ? IPH + GREH : IPH);
}

/* The length of a header of TCP, else of UDP. */
static __always_inline __u32 transport_length(struct __sk_buff *skb, const struct flow_key *k)
{
	__u8 offset = 0;

	if ((__u8)k->protocol != IPPROTO_TCP || bpf_skb_load_bytes(skb, ETH_HLEN + IPH + 12, &offset, 1))
		return UDPH;
	return offset >> 4 << 2;
}

/* 0: the packet, or what a large one is cut into, fits into the device's MTU
 * with so much more; else what would. Segments behind a tunnel's headers are as
 * long as their tenant's MTU, which leaves room. */
static __always_inline __u32 room_for(struct __sk_buff *skb, __u32 room, const struct flow_key *k)
{
	__u32 mtu = 0;
	long over = bpf_check_mtu(skb, 0, &mtu, room, 0); /* mtu becomes the device's */

	if (skb->gso_size)
		over = !into_tunnel(k) && IPH + transport_length(skb, k) + skb->gso_size + room > mtu;
	return over ? (mtu > room ? mtu - room : 1) : 0;
}

/* "Fragmentation needed", with as much of the packet as it quotes. */
struct told {
	__u8 to[6], from[6];
	__be16 protocol;
	struct iphdr ip;
	__u8 type, code;
	__sum16 check;
	__be16 unused, mtu;
	__u8 quote[IPH + 8];
} __attribute__((packed));

enum { TOLD_AT = 2, LEAST_MTU = 576, TO_STACK = 1 }; /* TOLD_AT aligns the headers */

/* Makes the packet "fragmentation needed" (RFC 1191), as from whom it was for;
 * false: nobody may be told of this one (RFC 1122 section 3.2.2), or need be, for
 * without DF it is not the sender who cuts it. What is behind the answer's
 * length the stack cuts off: the kernel does not shorten large packets here. */
static __noinline bool tell(struct __sk_buff *skb, __u32 mtu)
{
	__u8 room[TOLD_AT + sizeof(struct told)] __attribute__((aligned(8))) = {};
	struct told *t = (void *)room + TOLD_AT;
	const struct iphdr *quote = (void *)t->quote;
	__u8 type;

	if (bpf_skb_load_bytes(skb, 0, t->from, 6) || bpf_skb_load_bytes(skb, 6, t->to, 6) || bpf_skb_load_bytes(skb, ETH_HLEN, t->quote, sizeof(t->quote)))
		return false;
	if (t->quote[0] != 0x45 || !(quote->frag_off & bpf_htons(0x4000)) || quote->frag_off & bpf_htons(IP_OFFSET) || t->quote[16] >= 224)
		return false;
	type = t->quote[IPH];
	if (quote->protocol == IPPROTO_ICMP && type != 0 && type != 8) /* only of echoes */
		return false;
	t->protocol = bpf_htons(ETH_P_IP);
	*(__u8 *)&t->ip = 0x45;
	t->ip.tot_len = bpf_htons(sizeof(*t) - ETH_HLEN);
	t->ip.frag_off = bpf_htons(0x4000);
	t->ip.ttl = 64;
	t->ip.protocol = IPPROTO_ICMP;
	t->ip.saddr = quote->daddr;
	t->ip.daddr = quote->saddr;
	t->ip.check = ip4_checksum(&t->ip);
	t->type = 3;
	t->code = 4;
	t->mtu = bpf_htons(mtu);
	t->check = ~csum_fold(csum_words(&t->type, (8 + IPH + 8) / 2));
	return bpf_skb_store_bytes(skb, 0, t, sizeof(*t), 0) == 0;
}

/* A packet that does not fit with its headers is answered where its sender can
 * cut it, and else takes the fabric's own way; a tunnel's always does. */
static __always_inline int too_big(struct __sk_buff *skb, const struct flow_key *k, __u32 mtu)
{
	if (into_tunnel(k) || mtu < LEAST_MTU || !tell(skb, mtu))
		return became(OUTCOME_TOO_BIG, TCX_NEXT);
	return became(OUTCOME_TOO_BIG, bpf_redirect(skb->ifindex, TO_STACK));
}

/* Puts the headers of a path in front of a packet. */
static __always_inline int encapsulate(struct __sk_buff *skb, const struct path *p, const struct flow_key *k, __u32 hash, __u8 tos, __u32 length)
{
	__u32 count = p->count, room, mtu;

	if (!count) /* the fabric's own way */
		return became(OUTCOME_SPREAD, TCX_NEXT);
	if (count > RELAYS)
		return became(OUTCOME_NATIVE, TCX_NEXT);
	room = room_of(p, count, k);
	if (length + room > 0xffff) /* a large packet, and no header has a length for it */
		return became(OUTCOME_REFUSED, TCX_NEXT);
	mtu = room_for(skb, room, k);
	if (unlikely(mtu))
		return too_big(skb, k, mtu);
	if (p->form == FORM_SRV6)
		return segments(skb, p, count, tos, length, hash);
	return p->form == FORM_UDP ? list_of(skb, p, count, k, hash, tos, length) : stack(skb, p, count, k, tos, length);
}

SEC("tc")
int iplb_tx(struct __sk_buff *skb)
{
	const void *data;
	struct flow_key key;
	struct counts *load;
	struct path *p;
	__u32 path, segments, length, hash;
	__u8 tos;

	if (is_foreign(skb) || skb->mark == MARK_PROBE)
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH);
	if (!data)
		return TCX_NEXT;
	const struct iphdr *ip = data + ETH_HLEN;

	tos = ip->tos;
	/* A short frame may be padded; what is to be segmented has its length elsewhere. */
	length = skb->gso_size ? skb->len - ETH_HLEN : bpf_ntohs(ip->tot_len);
	if (length > skb->len - ETH_HLEN || length < IPH)
		return TCX_NEXT;
	read_flow(skb, &key, ip);
	hash = hash_of(&key);
	segments = segments_of(skb);
	path = path_for(&key, skb->len, segments, hash);
	if (path == OTHERS)
		return TCX_NEXT;
	p = path_of(path);
	if (!p || !p->up)
		return became(OUTCOME_NATIVE, TCX_NEXT);
	load = bpf_map_lookup_elem(&loads, &path);
	COUNT(load, segments, skb->len);
	return encapsulate(skb, p, &key, hash, tos, length);
}

/* ---- relaying ---- */

/* Where an address has its place in small tables. */
static __always_inline __u32 near(__be32 address) { return address * 0x9e3779b1u >> 20; } /* 12 bits */

/* Whether headers are taken off at an address. */
static __always_inline bool is_local(__be32 address)
{
	const struct state *state = state_of();
	__u32 at = near(address);

	if (!state || !(state->locals[at >> 6 & 63] >> (at & 63) & 1))
		return false;
	return bpf_map_lookup_elem(&locals, &address) != NULL;
}

enum acl { ACL_SENDERS, ACL_INNER };

/* Whether a list has an address. Those it has are remembered. */
static __always_inline bool allowed(const enum acl list, __be32 address)
{
	struct prefix p = { .bits = 32, .address = address };
	const struct state *state = state_of();
	__u32 at = list * CACHED_ADDRESSES + (near(address) & (CACHED_ADDRESSES - 1));
	__u64 *seen = bpf_map_lookup_elem(&acl_cache, &at), now;

	if (!seen || !state)
		return false;
	now = (__u64)*(volatile const __u32 *)&state->acl_gen << 32 | address;
	if (likely(*seen == now))
		return true;
	if (!(list == ACL_SENDERS ? bpf_map_lookup_elem(&senders, &p) : bpf_map_lookup_elem(&allowed_inner, &p)))
		return false;
	*seen = now; /* if they changed meanwhile, acl_gen did too */
	return true;
}

/* Checks one header for this node; OUTCOMES: it is sound. */
static __always_inline enum outcome inspect(const struct iphdr *ip, __u32 left)
{
	if (ip->version != 4 || ip->ihl != 5)
		return OUTCOME_DROP_MALFORMED;
	if (!ip4_intact(ip))
		return OUTCOME_DROP_CHECKSUM;
	if (ip4_is_fragment(ip))
		return OUTCOME_DROP_FRAGMENT;
	if (bpf_ntohs(ip->tot_len) > left || bpf_ntohs(ip->tot_len) < 2 * IPH)
		return OUTCOME_DROP_MALFORMED;
	if (!allowed(ACL_SENDERS, ip->saddr))
		return OUTCOME_DROP_SOURCE;
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

/* Whether what is behind a header is a packet for the fabric; OUTCOMES: it is. */
static __always_inline enum outcome inspect_inner(const struct iphdr *ip, __u32 left)
{
	if (ip->version != 4 || ip->ihl < 5 || bpf_ntohs(ip->tot_len) > left || bpf_ntohs(ip->tot_len) < ip->ihl * 4)
		return OUTCOME_DROP_MALFORMED;
	return allowed(ACL_INNER, ip->daddr) ? OUTCOMES : OUTCOME_DROP_OUTSIDE;
}

/* More than eight relays' headers, a packet's own and those of a tunnel in it. */
enum { MOST_HEADERS = 320 };

/* How long a packet is on the wire; of a large one its segments, which behind
 * headers that are not looked into are as long as may be. */
static __always_inline __u32 longest(struct __sk_buff *skb, const struct iphdr *ip)
{
	__u8 offset;

	if (!skb->gso_size)
		return bpf_ntohs(ip->tot_len);
	if (ip->protocol != IPPROTO_TCP || bpf_skb_load_bytes(skb, ETH_HLEN + IPH + 12, &offset, 1))
		return skb->gso_size + MOST_HEADERS;
	return skb->gso_size + IPH + (offset >> 4 << 2);
}

/* Whether the stack would send a packet on if it has a route: it is for one
 * node, of one that is neither nobody nor this one, not late, and as it was
 * sent. */
static __always_inline bool goes_on(const struct __sk_buff *skb, const struct iphdr *ip)
{
	__u32 length = bpf_ntohs(ip->tot_len);

	if (*(const __u8 *)ip != 0x45 || ip->ttl <= 1 || !ip4_intact(ip) || length < IPH || (!skb->gso_size && length + ETH_HLEN != skb->len))
		return false;
	return ip4_is_ordinary(ip->saddr) && ip4_is_ordinary(ip->daddr) && !is_local(ip->saddr);
}

/* Nobody but the routing would see a packet in the stack. */
static __always_inline bool is_free(struct __sk_buff *skb)
{
	struct net_device *dev = device_of(skb);
	struct net *net = dev->nd_net.net;

	return !hooked4(net, dev) && !filters4(net, dev) && !classified(dev) && !chooses_deep(net);
}

/* Looks up where a flow goes, by the kernel's own routes and neighbours, and who
 * is next there; false: the stack must see it. */
static __always_inline bool learn(struct __sk_buff *skb, const struct flow_key *k, struct hop *h, __u64 tick, struct bpf_redir_neigh *next)
{
	struct bpf_fib_lookup to = {
		.family = AF_INET, .ifindex = skb->ifindex,
		.l4_protocol = k->protocol, .sport = k->ports, .dport = k->ports >> 16, /* equal-cost paths may be chosen by them */
		.tot_len = 1, .ipv4_src = k->source, .ipv4_dst = k->target,
	};

	*(__u8 *)&to.flowinfo = k->protocol >> 8;
	h->tick = 0;
	if (bpf_fib_lookup(skb, &to, sizeof(to), 0) != BPF_FIB_LKUP_RET_SUCCESS || to.family != AF_INET)
		return false;
	h->key = *k;
	h->from = skb->ifindex;
	h->to = to.ifindex;
	h->mtu = to.tot_len; /* now the route's */
	__builtin_memcpy(h->target, to.dmac, 6);
	__builtin_memcpy(h->source, to.smac, 6);
	h->tick = tick;
	next->nh_family = to.family;
	next->ipv4_nh = to.ipv4_dst;
	return true;
}

/* Sends a packet to its next hop past the stack, if it may. The first of a flow in
 * each tick is sent by its neighbour's entry, which is so kept true. What does
 * not simply go on, the stack has: TCX_NEXT. */
static __always_inline int forward(struct __sk_buff *skb)
{
	/* The stack's rt_tos2priority(), by two bits of tos. */
	const __u32 priorities = 0x4620;
	const struct state *state = state_of();
	struct bpf_redir_neigh next = {};
	__u64 tick = bpf_jiffies64();
	struct flow_key k = {};
	struct iphdr *ip;
	struct hop *h;
	void *data;
	__u32 at;

	if (!state || state->shortcut == SHORTCUT_NEVER || skb->pkt_type != PACKET_HOST)
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH + 4);
	if (!data)
		return TCX_NEXT;
	ip = data + ETH_HLEN;
	if (!goes_on(skb, ip))
		return TCX_NEXT;
	k.source = ip->saddr;
	k.target = ip->daddr;
	k.protocol = ip->protocol | (__u32)(ip->tos & 0xfc) << 8;
	k.ports = ports_of(ip);
	at = hash_of(&k) & (CACHED_FLOWS - 1);
	h = bpf_map_lookup_elem(&hops, &at);
	if (!h)
		return TCX_NEXT;
	if (h->tick != tick || h->from != skb->ifindex || !same_flow(&h->key, &k)) {
		if (!(state->shortcut == SHORTCUT_ALWAYS || is_free(skb)) || !learn(skb, &k, h, tick, &next))
			return TCX_NEXT;
	}
	if (longest(skb, ip) > h->mtu)
		return TCX_NEXT;
	skb->priority = priorities >> (ip->tos >> 3 & 3) * 4 & 15;
	ip4_decrease_ttl(ip);
	if (next.nh_family)
		return bpf_redirect_neigh(h->to, &next, sizeof(next), 0);
	mac_copy(data, h->target);
	mac_copy(data + 6, h->source);
	return bpf_redirect(h->to, 0);
}

/* Takes bytes off in front of the packet. */
static __always_inline int take_off(struct __sk_buff *skb, __u32 bytes, __u8 marks)
{
	if (bpf_skb_adjust_room(skb, -(int)bytes, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
		return became(OUTCOME_REFUSED, TCX_DROP);
	if (!keep_mark(skb, marks))
		return became(OUTCOME_DROP_CONGESTED, TCX_DROP);
	return became(OUTCOME_RELAYED, forward(skb));
}

/* Takes off the headers of one protocol that are for this node. */
static __always_inline int unstack(struct __sk_buff *skb, const __u8 protocol, const __u32 stride)
{
	__u32 at = ETH_HLEN, count = 0;
	__u8 marks = 0;

#pragma unroll
	for (int i = 0; i <= RELAYS; i++) {
		const void *data = reach(skb, ETH_HLEN + i * stride + IPH);
		const struct iphdr *ip;
		enum outcome why;
		__be32 target;

		if (!data)
			return count ? became(OUTCOME_DROP_MALFORMED, TCX_DROP) : TCX_NEXT;
		ip = data + ETH_HLEN + i * stride;
		target = ip->daddr;
		if (ip->protocol != protocol || !is_local(target)) {
			if (!count)
				return TCX_NEXT;
			why = inspect_inner(ip, skb->len - at);
			if (why != OUTCOMES)
				return became(why, TCX_DROP);
			break;
		}
		if (i == RELAYS)
			return became(OUTCOME_DROP_NESTED, TCX_DROP);
		why = inspect(ip, skb->len - at);
		if (why != OUTCOMES)
			return became(why, TCX_DROP);
		if ((ip->tos & ECN_MASK) == ECN_CE)
			marks = ECN_CE;
		if (stride > IPH) {
			data = reach(skb, ETH_HLEN + (i + 1) * stride);
			if (!data || *(const __be32 *)(data + ETH_HLEN + i * stride + IPH) != bpf_htonl(ETH_P_IP))
				return became(OUTCOME_DROP_MALFORMED, TCX_DROP);
		}
		count++;
		at += stride;
	}
	return take_off(skb, at - ETH_HLEN, marks);
}

/* Sends a packet with a list to its next address. */
static __always_inline int send_on(struct __sk_buff *skb, __be32 next, __u8 second)
{
	void *data = reach(skb, ETH_HLEN + IPH + UDPH + LISTH);
	struct iphdr *ip;

	if (!data)
		return became(OUTCOME_DROP_MALFORMED, TCX_DROP);
	ip = data + ETH_HLEN;
	ip->daddr = next;
	ip->check = 0;
	ip->check = ip4_checksum(ip);
	((struct list *)(data + ETH_HLEN + IPH + UDPH))->second = second + 1;
	return became(OUTCOME_RELAYED, forward(skb));
}

/* Takes the list out of a tunnel's packet and sends it to its own target. */
static __always_inline int restore(struct __sk_buff *skb, struct iphdr ip, struct udphdr udp, struct list list, __be32 target)
{
	const __u32 room = LISTH + (list.first & 15) * 4;

	ip.daddr = target;
	ip.tot_len = bpf_htons(bpf_ntohs(ip.tot_len) - room);
	ip.check = 0;
	ip.check = ip4_checksum(&ip);
	udp.dest = list.port;
	udp.len = bpf_htons(bpf_ntohs(udp.len) - room);
	if (bpf_skb_store_bytes(skb, ETH_HLEN, &ip, sizeof(ip), 0) || bpf_skb_store_bytes(skb, ETH_HLEN + IPH + room, &udp, sizeof(udp), 0))
		return became(OUTCOME_DROP_MALFORMED, TCX_DROP);
	if (bpf_skb_adjust_room(skb, -(int)room, BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_FIXED_GSO))
		return became(OUTCOME_REFUSED, TCX_DROP);
	return became(OUTCOME_RELAYED, forward(skb));
}

/* What is said of a list that no sender writes; OUTCOMES: it is sound. */
static __always_inline enum outcome inspect_list(const struct list *l, const struct iphdr *ip, const struct udphdr *udp, bool large)
{
	__u32 total = l->first & 15, inside = l->second >> 4, visited = l->second & 15;

	if (l->first >> 4 != LIST_VERSION || inside > TUNNEL || visited > total || udp->check)
		return OUTCOME_DROP_MALFORMED;
	if (total > RELAYS)
		return OUTCOME_DROP_NESTED;
	if (inside == TUNNEL && (visited == total || !l->port))
		return OUTCOME_DROP_MALFORMED;
	if (!large && bpf_ntohs(udp->len) != bpf_ntohs(ip->tot_len) - IPH)
		return OUTCOME_DROP_MALFORMED;
	return bpf_ntohs(ip->tot_len) < IPH + UDPH + LISTH + total * 4 + UDPH ? OUTCOME_DROP_MALFORMED : OUTCOMES;
}

/* A packet that carries its relay list. */
static __always_inline int visit(struct __sk_buff *skb)
{
	struct { struct iphdr ip; struct udphdr udp; struct list list; } __attribute__((packed)) h;
	struct iphdr inner;
	enum outcome why;
	__u32 total, visited, addresses = ETH_HLEN + sizeof(h);
	const void *data;
	__be32 next;

	data = reach(skb, ETH_HLEN + sizeof(h));
	if (!data || ((const struct udphdr *)(data + ETH_HLEN + IPH))->dest != bpf_htons(PORT_RELAY_LIST))
		return TCX_NEXT;
	__builtin_memcpy(&h, data + ETH_HLEN, sizeof(h));
	why = inspect(&h.ip, skb->len - ETH_HLEN);
	if (why == OUTCOMES)
		why = inspect_list(&h.list, &h.ip, &h.udp, skb->gso_size);
	if (why != OUTCOMES)
		return became(why, TCX_DROP);
	total = h.list.first & 15;
	visited = h.list.second & 15;
	if (visited == total) { /* WHOLE, and this the last relay */
		if (bpf_skb_load_bytes(skb, addresses + total * 4, &inner, sizeof(inner)))
			return became(OUTCOME_DROP_MALFORMED, TCX_DROP);
		why = inspect_inner(&inner, skb->len - addresses - total * 4);
		if (why != OUTCOMES)
			return became(why, TCX_DROP);
		return take_off(skb, sizeof(h) + total * 4, h.ip.tos);
	}
	if (bpf_skb_load_bytes(skb, addresses + visited * 4, &next, 4))
		return became(OUTCOME_DROP_MALFORMED, TCX_DROP);
	if (!allowed(ACL_INNER, next))
		return became(OUTCOME_DROP_OUTSIDE, TCX_DROP);
	if (h.list.second >> 4 == TUNNEL && visited + 1 == total)
		return restore(skb, h.ip, h.udp, h.list, next);
	return send_on(skb, next, h.list.second);
}

SEC("tc")
int iplb_relay(struct __sk_buff *skb)
{
	const struct iphdr *ip;
	const void *data;
	int verdict;

	if (is_foreign(skb))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH);
	if (!data)
		return TCX_NEXT;
	ip = data + ETH_HLEN;
	if (!is_local(ip->daddr)) {
		verdict = forward(skb);
		return verdict == TCX_NEXT ? TCX_NEXT : became(OUTCOME_FORWARDED, verdict);
	}
	switch (ip->protocol) {
	case IPPROTO_IPIP:
		return unstack(skb, IPPROTO_IPIP, IPH);
	case IPPROTO_GRE:
		return unstack(skb, IPPROTO_GRE, IPH + GREH);
	case IPPROTO_UDP:
		return visit(skb);
	}
	return TCX_NEXT;
}

/* ---- liveness ---- */

/* A probe comes back as the packet that was inside: UDP to this host. Numbers
 * only grow: one that arrives late, or again, says nothing new. */
static __always_inline int hear(const struct probe_text *text)
{
	__u32 path = text->path;
	struct probe *p = bpf_map_lookup_elem(&probes, &path);

	if (!p || p->secret != text->secret)
		return became(OUTCOME_DROP_FORGED, TCX_DROP);
	if ((__s32)(text->number - p->heard) > 0) {
		p->at = bpf_ktime_get_ns();
		p->heard = text->number;
	}
	return became(OUTCOME_ECHOED, TCX_DROP);
}

SEC("tc")
int iplb_echo(struct __sk_buff *skb)
{
	const struct iphdr *ip;
	const struct udphdr *udp;
	const struct probe_text *text;
	const void *data;

	if (is_foreign(skb))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH + 8);
	if (!data)
		return TCX_NEXT;
	ip = data + ETH_HLEN;
	udp = data + ETH_HLEN + IPH;
	if (ip->ihl != 5 || ip->protocol != IPPROTO_UDP || ip->saddr != ip->daddr || udp->dest != bpf_htons(PORT_PROBE))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH + 8 + sizeof(*text));
	if (!data)
		return TCX_NEXT;
	text = data + ETH_HLEN + IPH + 8;
	return text->magic == PROBE_MAGIC ? hear(text) : TCX_NEXT;
}

LICENSE;
