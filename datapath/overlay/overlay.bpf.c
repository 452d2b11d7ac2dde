//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The overlay forwarding table: one look-up gives all outer headers of a
 * packet, and one pass puts them in front or takes them off.
 *
 * overlay_tx runs where a trunk brings a lease's frames to the host: the mark
 * of a frame says by which tunnel it goes. overlay_front runs on any device
 * whose packets say it themselves, in some bits at some place. overlay_rx runs
 * on the physical interfaces.
 */
#include "checksum.h"
#include "contract.h"
#include "maps.h"

/* ---- what the tables hold ---- */

enum { HEADER = 112, IDENTIFIER = 16 };

/* Why a packet was dropped. */
enum drop {
	DROP_UNKNOWN,    /* no entry, or no tunnel of that number from that kind */
	DROP_UNRESOLVED, /* there is no route to the other end at the moment */
	DROP_TOO_BIG,    /* more than the path carries */
	DROP_NOT_CARRIED, /* not IP in a tunnel for IP, or more than two VLAN tags */
	DROP_MALFORMED,  /* outer headers that nobody sends */
	DROP_SENDER,     /* not from the tunnel's other end */
	DROP_PORT,       /* from a port that any user of the other end can have */
	DROP_INTERFACE,  /* by another interface than the tunnel's */
	DROP_CONGESTED,  /* marked on its way, but its sender cannot know marks (RFC 6040) */
	DROP_REFUSED,    /* the kernel could not change the packet */
	DROPS,
};

/* Indexes of what an inner packet may be. */
enum { INNER4, INNER6 };

/* One entry: the complete outer headers, and what of them a packet changes.
 * Words are 16 bits as they lie in the packet. */
struct entry {
	__u64 flags;   /* of bpf_skb_adjust_room */
	__u32 device;  /* that packets leave by; 0: unresolved */
	__u32 slot;    /* of its counters */
	__u16 length;  /* of the header in use */
	__u16 room;    /* to make behind the Ethernet header */
	__u16 mtu;     /* of the inner packet */
	__u16 word_at; /* where a word names the inner protocol; 0: nowhere */
	__u16 word[2]; /* that word for IPv4 and IPv6 inside */
	__u16 sum[2];  /* the outer IPv4 header's sum without its length, likewise */
	__u16 udp_at;  /* of the UDP header; 0: none */
	__u16 port_base, port_mask; /* source port = base | (hash & mask) */
	__u8 family;   /* outer: 4 or 6 */
	__u8 layer;    /* of what travels: 2 or 3 */
	__u8 flow_at;  /* of a byte for the flow's hash (NVGRE); 0: none */
	__u8 shape;    /* SHAPE_: which of the fast writers fits */
	__u8 whole;    /* datagrams to be cut stay whole: the other end can take them */
	__u8 pad[5];
	__u8 header[HEADER]; /* Ethernet, IP, UDP, tunnel */
};

/* Lengths and places that have a writer of their own; what fits none is written
 * through a copy. */
enum { SHAPE_ANY, SHAPE_50_UDP34, SHAPE_70_UDP54, SHAPE_74_UDP34, SHAPE_38, SHAPE_42, SHAPE_42_FLOW41, SHAPE_34_WORD22, SHAPE_38_WORD36, SHAPE_46_UDP34_WORD42 };

/* Where packets of a device have their identifier. */
struct front {
	__u32 profile;
	__u16 offset;  /* bytes from the Ethernet header's start */
	__u16 bits;    /* 0 to 128; 0: all packets go by the one entry */
	__u32 longest; /* match the longest prefix instead of all bits */
};

/* prefix is 32 + the identifier's bits; the profile is always matched whole. */
struct name {
	__u32 prefix;
	__u32 profile; /* network order, for the trie */
	__u8 id[IDENTIFIER];
};

/* How packets of one protocol look behind the outer IP header. */
struct format {
	__u32 kind;
	__u8 layer;      /* of what is inside: 2, 3 */
	__u8 udp;        /* 8 with a UDP header, else 0 */
	__u8 length;     /* of the tunnel header, without what varies */
	__u8 id_at;      /* of the 32 bits with the identifier in it; 0xff: told by sender */
	__u8 id_shift;   /* right, to get the identifier out of them */
	__u8 vary_at;    /* of a byte that gives the length of options; 0xff: none */
	__u8 vary_mask;
	__u8 vary_less;  /* of the units, how many are counted in length */
	__be32 match, mask; /* what the first four bytes must be */
	__u8 check_at;   /* of one more byte that must be check; 0xff: none */
	__u8 check;
	__u8 next_at;    /* of a byte that must be 4 or 41, as the inner version; 0xff: none */
	__u8 version;    /* of the inner IP: 4, 6; 0: as it says */
};

/* The receiving end of a tunnel. */
struct tunnel_end {
	struct in6_addr remote, local; /* IPv4 in the last four bytes, the rest 0 */
	__u32 uplink; /* interface that its packets come in by; 0: any */
	__u32 target; /* whose peer takes what was inside */
	__u32 mark;
	__u32 slot;
	__u16 ports;  /* source ports are below; 0: any */
	__u8 deliver; /* DELIVER_ */
	__u8 pad[3];
	__u8 ethernet[12]; /* addresses in front of what came without */
	__u8 pad2[2];
};

enum { DELIVER_PEER, DELIVER_INGRESS };

struct counts {
	__u64 sent, sent_bytes;         /* packets on the wire, bytes of inner frames */
	__u64 received, received_bytes; /* likewise */
	__u64 drops[DROPS];
	enum drop causes[0]; /* names the indexes of drops for Go */
};

/* ---- tables ---- */

MAP(BPF_MAP_TYPE_HASH, __u32, struct entry, 1 << 17, BPF_F_NO_PREALLOC) entries SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, __u32, struct front, 1 << 10, BPF_F_NO_PREALLOC) fronts SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, struct name, struct entry, 1 << 17, BPF_F_NO_PREALLOC) names SEC(".maps");

MAP(BPF_MAP_TYPE_LPM_TRIE, struct name, struct entry, 1 << 17, BPF_F_NO_PREALLOC) prefixes SEC(".maps");

/* Protocols, by IP protocol << 24 | UDP port, or EtherType of GRE with
 * GRE_KEY if there is a key. */
#define GRE_KEY (1u << 16)

MAP(BPF_MAP_TYPE_HASH, __u32, struct format, 32, 0) formats SEC(".maps");

/* Receiving ends, by kind << 32 | identifier. */
MAP(BPF_MAP_TYPE_HASH, __u64, struct tunnel_end, 1 << 17, BPF_F_NO_PREALLOC) ends SEC(".maps");

/* Addresses of this host that tunnels end at. */
MAP(BPF_MAP_TYPE_HASH, struct in6_addr, __u32, 1 << 10, BPF_F_NO_PREALLOC) locals SEC(".maps");

/* Counters by slot; slot 0 is for what belongs to no entry. */
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct counts, 1 << 12, 0) hits SEC(".maps");

/* The item of the plan that an entry was made for, as JSON. For user space only. */
struct owner {
	__u8 text[640];
};

MAP(BPF_MAP_TYPE_HASH, __u32, struct owner, 1 << 17, BPF_F_NO_PREALLOC) owners SEC(".maps");

/* The device whose queue segments packets (GSO), so that they come back in pieces. */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u32, 1, 0) gso_device SEC(".maps");

/* The UDP port, in network order, of a VXLAN device of the kernel's that takes
 * the headers off large packets of datagrams; 0: there is none. */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u32, 1, 0) decap_port SEC(".maps");

/* ---- helpers ---- */

static __always_inline int drop(__u32 slot, enum drop why)
{
	return DROP((struct counts *)bpf_map_lookup_elem(&hits, &slot), why);
}

/* An Ethernet header, read before the packet moves under it. */
struct link_header {
	__u64 first;
	__u32 second;
	__u16 type; /* network order */
};

static __always_inline void read_link(struct link_header *h, const void *data)
{
	h->first = *(const __u64 *)data;
	h->second = *(const __u32 *)(data + 8);
	h->type = *(const __u16 *)(data + 12);
}

/* What encapsulation has to know of the inner packet. */
struct inner {
	struct link_header link;
	__u32 hash;
	__u32 tags[2]; /* vlan_proto << 16 | tci, of the outer tag first */
	__u8 tos;
	__u8 count; /* of tags */
	__u8 version; /* INNER4, INNER6, or 0xff */
	__u8 next;    /* IP protocol inside */
};

#define HASH_A 0xff51afd7ed558ccdULL
#define HASH_B 0x9e3779b97f4a7c15ULL

static __always_inline __u32 mix(__u64 addresses, __u32 ports, __u8 protocol)
{
	return ((addresses ^ (((__u64)ports << 8 | protocol) + 1) * HASH_A) * HASH_B) >> 32;
}

static __always_inline __u64 both(__u32 a, __u32 b) { return (__u64)a << 32 | b; }

/* Reads DSCP, ECN and flow of an inner IP header. All fragments of a datagram
 * have one hash: only whole ones tell their ports. */
static __always_inline void inspect(struct __sk_buff *skb, struct inner *in)
{
	__u32 ports = 0;
	__u64 addresses;
	__u8 next;

	in->tos = 0;
	in->version = 0xff;
	if (in->link.type == bpf_htons(ETH_P_IP)) {
		const void *data = reach(skb, ETH_HLEN + sizeof(struct iphdr));

		if (!data)
			goto other;
		const struct iphdr *ip = data + ETH_HLEN;
		bool whole = ip->ihl == 5 && has_ports(ip->protocol) && !ip4_is_fragment(ip);

		in->version = INNER4;
		in->tos = ip->tos;
		next = ip->protocol;
		addresses = both(ip->saddr, ip->daddr);
		data = whole ? reach(skb, ETH_HLEN + sizeof(*ip) + 4) : NULL;
		if (data)
			ports = *(__u32 *)(data + ETH_HLEN + sizeof(*ip));
	} else if (in->link.type == bpf_htons(ETH_P_IPV6)) {
		const void *data = reach(skb, ETH_HLEN + sizeof(struct ipv6hdr));

		if (!data)
			goto other;
		const struct ipv6hdr *ip = data + ETH_HLEN;
		const __u64 *a = (const __u64 *)&ip->saddr;

		in->version = INNER6;
		in->tos = ip6_tos(ip);
		next = ip->nexthdr;
		addresses = a[0] ^ a[1] * HASH_A ^ (a[2] ^ a[3] * HASH_A) * HASH_B;
		data = has_ports(next) ? reach(skb, ETH_HLEN + sizeof(*ip) + 4) : NULL;
		if (data)
			ports = *(__u32 *)(data + ETH_HLEN + sizeof(*ip));
	} else {
other:
		next = 0;
		addresses = in->link.first ^ in->link.second;
		ports = in->link.type;
	}
	in->next = next;
	in->hash = mix(addresses, ports, next);
}

/* Takes VLAN tags out of the packet's side data, where they would end up in
 * front of the outer headers; false: there are more than two. */
static __always_inline bool take_tags(struct __sk_buff *skb, struct inner *in)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (!skb->vlan_present)
			return true;
		in->tags[i] = (__u32)bpf_ntohs(skb->vlan_proto) << 16 | (skb->vlan_tci & 0xffff);
		in->count = i + 1;
		if (bpf_skb_vlan_pop(skb))
			return false;
	}
	return !skb->vlan_present;
}

/* Whether the packet, or each it will be cut into, fits. */
static __always_inline bool fits(const struct __sk_buff *skb, const struct entry *e, const struct inner *in)
{
	if (skb->gso_size) /* and IPv4 with UDP or TCP, the least there is */
		return skb->gso_size + (in->next == IPPROTO_UDP ? 28 : 40) <= e->mtu;
	return skb->len - ETH_HLEN <= e->mtu;
}

/* ---- telling senders of packets that are too big ---- */

/* What an error quotes: the IP header and eight bytes, in which TCP and UDP have
 * their ports (RFC 792; RFC 4443 asks for more, that no sender needs). */
enum { QUOTE4 = 28, QUOTE6 = 48 };
enum { TOLD4 = ETH_HLEN + 28 + QUOTE4, TOLD6 = ETH_HLEN + 48 + QUOTE6 };

/* A frame on the stack, its IP header aligned. */
#define FRAME_AT 2

static __always_inline bool turn_around(struct __sk_buff *skb, __u8 *frame, __u16 type)
{
	__u16 *w = (void *)frame;

	if (bpf_skb_load_bytes(skb, 0, frame, 12) || mac_is_group(frame) || mac_is_group(frame + 6))
		return false;
#pragma unroll
	for (int i = 0; i < 3; i++) { /* by two bytes: the stack is not aligned for more */
		__u16 to = w[i];

		w[i] = w[3 + i];
		w[3 + i] = to;
	}
	w[6] = bpf_htons(type);
	return true;
}

/* Makes "fragmentation needed" (RFC 1191) of an IPv4 packet, as from whom it
 * was for; false: nobody may be told of this one (RFC 1122 section 3.2.2). */
static __noinline bool tell4(struct __sk_buff *skb, __u32 mtu)
{
	__u8 room[FRAME_AT + TOLD4] __attribute__((aligned(8))) = {};
	struct iphdr *ip = (void *)room + FRAME_AT + ETH_HLEN;
	__u8 *icmp = (void *)(ip + 1);
	struct iphdr *quote = (void *)(icmp + 8);
	__u8 first;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, quote, QUOTE4) || !turn_around(skb, room + FRAME_AT, ETH_P_IP))
		return false;
	first = *(__u8 *)&quote->saddr;
	if (*(__u8 *)quote != 0x45 || !(quote->frag_off & bpf_htons(0x4000)) || quote->frag_off & bpf_htons(IP_OFFSET) ||
	    first == 0 || first == 127 || first >= 224 || *(__u8 *)&quote->daddr >= 224)
		return false;
	first = *(__u8 *)(quote + 1);
	if (quote->protocol == IPPROTO_ICMP && first != 0 && first != 8) /* only of echoes */
		return false;
	*(__u8 *)ip = 0x45;
	ip->tot_len = bpf_htons(TOLD4 - ETH_HLEN);
	ip->frag_off = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->protocol = IPPROTO_ICMP;
	ip->saddr = quote->daddr;
	ip->daddr = quote->saddr;
	ip->check = ip4_checksum(ip);
	icmp[0] = 3;
	icmp[1] = 4;
	*(__u16 *)(icmp + 6) = bpf_htons(mtu);
	*(__u16 *)(icmp + 2) = ~csum_fold(csum_words(icmp, (8 + QUOTE4) / 2));
	return bpf_skb_change_tail(skb, TOLD4, 0) == 0 && bpf_skb_store_bytes(skb, 0, room + FRAME_AT, TOLD4, 0) == 0;
}

/* Makes "packet too big" (RFC 4443 section 3.2) of an IPv6 packet. */
static __noinline bool tell6(struct __sk_buff *skb, __u32 mtu)
{
	__u8 room[FRAME_AT + TOLD6] __attribute__((aligned(8))) = {};
	struct ipv6hdr *ip = (void *)room + FRAME_AT + ETH_HLEN;
	__u8 *icmp = (void *)(ip + 1), first;
	struct ipv6hdr *quote = (void *)(icmp + 8);

	if (bpf_skb_load_bytes(skb, ETH_HLEN, quote, QUOTE6) || !turn_around(skb, room + FRAME_AT, ETH_P_IPV6))
		return false;
	first = *(__u8 *)(quote + 1);
	if (*(__u8 *)quote >> 4 != 6 || quote->saddr.u6_addr8[0] == 0xff || quote->saddr.u6_addr8[0] == 0 ||
	    quote->daddr.u6_addr8[0] == 0xff || (quote->nexthdr == IPPROTO_ICMPV6 && first < 128)) /* not of errors */
		return false;
	*(__u8 *)ip = 0x60;
	ip->payload_len = bpf_htons(8 + QUOTE6);
	ip->nexthdr = IPPROTO_ICMPV6;
	ip->hop_limit = 64;
	ip->saddr = quote->daddr;
	ip->daddr = quote->saddr;
	icmp[0] = 2;
	*(__u16 *)(icmp + 6) = bpf_htons(mtu);
	*(__u16 *)(icmp + 2) = ~csum_fold(csum_words(&ip->saddr, 16) + ip->payload_len + bpf_htons(IPPROTO_ICMPV6) +
					  csum_words(icmp, (8 + QUOTE6) / 2));
	return bpf_skb_change_tail(skb, TOLD6, 0) == 0 && bpf_skb_store_bytes(skb, 0, room + FRAME_AT, TOLD6, 0) == 0;
}

/* A packet that is too big is dropped, and its sender told, as a router with
 * the tunnel's MTU would. Of TCP to be cut that is left to the next one that
 * is not: the kernel does not shorten it. */
static __always_inline int too_big(struct __sk_buff *skb, const struct entry *e, const struct inner *in, bool answer)
{
	__u32 mtu = e->mtu;

	drop(e->slot, DROP_TOO_BIG);
	if (answer && !skb->gso_size && !in->count &&
	    (in->version == INNER4 ? tell4(skb, mtu) : in->version == INNER6 && tell6(skb, mtu)))
		return bpf_redirect_peer(skb->ifindex, 0);
	return TCX_DROP;
}

/* ---- sending ---- */

/* Whether a large packet is one the other end takes whole: datagrams without
 * VLAN tags, which needs_decap() there knows again. What is in a tunnel of the
 * tenant's already, make_room refuses. */
static __always_inline bool stays_whole(const struct entry *e, const struct inner *in)
{
	return in->next == IPPROTO_TCP || (e->whole && in->next == IPPROTO_UDP && !in->count);
}

enum room { ROOM, NO_ROOM, SEGMENT };

/* Makes room behind the Ethernet header. What the kernel can not take as
 * encapsulated (not IP, encapsulated before) gets it in front, which is the
 * same for a packet that nobody cuts. TCP to be cut that is encapsulated
 * already came by a tunnel, whose headers were taken off: the kernel still
 * knows where its inner headers are, so it gets just room. */
static __always_inline enum room make_room(struct __sk_buff *skb, const struct entry *e, const struct inner *in)
{
	__u32 tags = in->count * 4;

	if (likely(bpf_skb_adjust_room(skb, e->room + tags, BPF_ADJ_ROOM_MAC,
				       e->flags + ((__u64)tags << BPF_ADJ_ROOM_ENCAP_L2_SHIFT)) == 0))
		return ROOM;
	if (!skb->gso_size)
		return bpf_skb_change_head(skb, e->room + tags, 0) ? NO_ROOM : ROOM;
	if (in->count || e->layer != 2 || !e->udp_at || in->next != IPPROTO_TCP)
		return SEGMENT;
	return bpf_skb_adjust_room(skb, e->room, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO) ? NO_ROOM : ROOM;
}

/* Sends a packet by a queue that segments it; the pieces come to overlay_segmented.
 * Their class does not survive the device, so it travels in tc_index. */
static __always_inline int segment(struct __sk_buff *skb, const struct entry *e, const struct inner *in)
{
	__u32 zero = 0, *device = bpf_map_lookup_elem(&gso_device, &zero);

	if (!device || !*device)
		return drop(e->slot, DROP_REFUSED);
	if (in->count >= 2 && bpf_skb_vlan_push(skb, bpf_htons(in->tags[1] >> 16), in->tags[1] & 0xffff))
		return drop(e->slot, DROP_REFUSED);
	if (in->count >= 1 && bpf_skb_vlan_push(skb, bpf_htons(in->tags[0] >> 16), in->tags[0] & 0xffff))
		return drop(e->slot, DROP_REFUSED);
	skb->tc_index = skb->priority & 0xffff;
	return bpf_redirect(*device, 0);
}

#define COPY8(to, from, at) (*(__u64 *)((to) + (at)) = *(const __u64 *)((from) + (at)))
#define COPY4(to, from, at) (*(__u32 *)((to) + (at)) = *(const __u32 *)((from) + (at)))
#define COPY2(to, from, at) (*(__u16 *)((to) + (at)) = *(const __u16 *)((from) + (at)))

/* Copies n bytes, n known to the compiler. */
static __always_inline void copy(void *to, const void *from, const int n)
{
	int at = 0;

#pragma unroll
	for (int i = 0; i < HEADER / 8; i++)
		if (at + 8 <= n) {
			COPY8(to, from, at);
			at += 8;
		}
	if (n - at >= 4) {
		COPY4(to, from, at);
		at += 4;
	}
	if (n - at >= 2)
		COPY2(to, from, at);
}

static __always_inline void write_link(void *to, const struct link_header *h)
{
	*(__u64 *)to = h->first;
	*(__u32 *)(to + 8) = h->second;
	*(__u16 *)(to + 12) = h->type;
}

/* Patches what differs from packet to packet. len is that of the whole packet. */
static __always_inline void patch(void *h, const struct entry *e, const struct inner *in, __u32 len)
{
	__u32 v = in->version == INNER6;

	if (e->family == 4) {
		struct iphdr *ip = h + ETH_HLEN;
		__u16 total = bpf_htons(len - ETH_HLEN);
		__u16 ecn = bpf_htons(in->tos & ECN_MASK); /* tos is the first word's low byte */

		*(__u16 *)ip |= ecn;
		ip->tot_len = total;
		ip->check = ~csum_fold((__u32)e->sum[v] + total + ecn);
	} else {
		__u16 *ip = h + ETH_HLEN;

		ip[0] |= bpf_htons((in->tos & ECN_MASK) << 4 | (in->hash >> 16 & 0xf));
		ip[1] |= bpf_htons(in->hash); /* the rest of the flow label */
		ip[2] = bpf_htons(len - ETH_HLEN - sizeof(struct ipv6hdr));
	}
}

static __always_inline void patch_udp(void *h, const struct entry *e, const struct inner *in, __u32 len, const int at)
{
	struct udphdr *udp = h + at;

	udp->source = bpf_htons(e->port_base | (in->hash & e->port_mask));
	udp->len = bpf_htons(len - at);
}

/* Writes headers of n bytes, with the places of what differs; all four are
 * known to the compiler. */
static __always_inline bool write_known(struct __sk_buff *skb, const struct entry *e, const struct inner *in, const int n,
					const int udp, const int word, const int flow)
{
	void *data = data_of(skb);

	if (data + n + ETH_HLEN > end_of(skb))
		return false;
	copy(data, e->header, n);
	patch(data, e, in, skb->len);
	if (udp)
		patch_udp(data, e, in, skb->len, udp);
	if (word)
		*(__u16 *)(data + word) = e->word[in->version == INNER6];
	if (flow)
		*(__u8 *)(data + flow) = in->hash;
	if (e->layer == 2)
		write_link(data + n, &in->link);
	return true;
}

struct scratch {
	__u8 bytes[HEADER];
} __attribute__((aligned(8)));

/* Writes headers of any kind, through a copy. */
static __always_inline bool write_any(struct __sk_buff *skb, const struct entry *e, const struct inner *in)
{
	struct scratch s;
	__u32 n = e->length, v = in->version == INNER6;

	if (n < ETH_HLEN + 20 || n > HEADER)
		return false;
	copy(s.bytes, e->header, HEADER);
	patch(s.bytes, e, in, skb->len);
	if (e->udp_at == 34)
		patch_udp(s.bytes, e, in, skb->len, 34);
	else if (e->udp_at == 54)
		patch_udp(s.bytes, e, in, skb->len, 54);
	if (bpf_skb_store_bytes(skb, 0, s.bytes, n, 0))
		return false;
	if (e->word_at && bpf_skb_store_bytes(skb, e->word_at, &e->word[v], 2, 0))
		return false;
	__u8 flow = in->hash;
	if (e->flow_at && bpf_skb_store_bytes(skb, e->flow_at, &flow, 1, 0))
		return false;
	if (e->layer != 2)
		return true;
	/* The inner Ethernet header, with its tags back in it. */
	struct {
		__u64 first;
		__u32 second;
		__u16 rest[5];
		__u16 pad;
	} link = { in->link.first, in->link.second, {}, 0 };
	__u32 size = ETH_HLEN;

	link.rest[0] = in->link.type;
	if (in->count >= 1) {
		link.rest[0] = bpf_htons(in->tags[0] >> 16);
		link.rest[1] = bpf_htons(in->tags[0]);
		link.rest[2] = in->link.type;
		size += 4;
	}
	if (in->count >= 2) {
		link.rest[2] = bpf_htons(in->tags[1] >> 16);
		link.rest[3] = bpf_htons(in->tags[1]);
		link.rest[4] = in->link.type;
		size += 4;
	}
	return bpf_skb_store_bytes(skb, n, &link, size, 0) == 0;
}

static __always_inline bool write_headers(struct __sk_buff *skb, const struct entry *e, const struct inner *in)
{
	if (unlikely(in->count))
		return write_any(skb, e, in);
	if (likely(e->shape == SHAPE_50_UDP34)) /* VXLAN, Geneve */
		return write_known(skb, e, in, 50, 34, 0, 0);
	switch (e->shape) {
	case SHAPE_70_UDP54: /* over IPv6 */
		return write_known(skb, e, in, 70, 54, 0, 0);
	case SHAPE_74_UDP34: /* NSH */
		return write_known(skb, e, in, 74, 34, 0, 0);
	case SHAPE_38: /* GRETAP */
		return write_known(skb, e, in, 38, 0, 0, 0);
	case SHAPE_42: /* with a key */
		return write_known(skb, e, in, 42, 0, 0, 0);
	case SHAPE_42_FLOW41: /* NVGRE */
		return write_known(skb, e, in, 42, 0, 0, 41);
	case SHAPE_34_WORD22: /* IPIP */
		return write_known(skb, e, in, 34, 0, 22, 0);
	case SHAPE_38_WORD36: /* GRE */
		return write_known(skb, e, in, 38, 0, 36, 0);
	case SHAPE_46_UDP34_WORD42: /* GUE */
		return write_known(skb, e, in, 46, 34, 42, 0);
	}
	return write_any(skb, e, in);
}

/* The shortest Ethernet frame, without its check sequence. */
enum { SHORTEST = 60 };

/* send puts a packet on its way: headers, then the device's queue. The class
 * in skb->priority stays. */
static __always_inline int send(struct __sk_buff *skb, const struct entry *e, const bool segmented)
{
	struct inner in = {};
	__u32 segments = segments_of(skb), bytes = skb->len;

	if (unlikely(!e->device))
		return drop(e->slot, DROP_UNRESOLVED);
	if (unlikely(skb->vlan_present) && !take_tags(skb, &in))
		return drop(e->slot, DROP_NOT_CARRIED);
	void *data = reach(skb, ETH_HLEN);
	if (!data)
		return drop(e->slot, DROP_MALFORMED);
	read_link(&in.link, data);
	inspect(skb, &in);
	/* Datagrams and tunnels that are to be cut are cut here, unless the other
	 * end takes them: behind another tunnel the kernel cuts them wrongly, or the
	 * receiver can not. */
	if (unlikely(skb->gso_size && !stays_whole(e, &in)))
		return segmented ? drop(e->slot, DROP_REFUSED) : segment(skb, e, &in);
	if (unlikely(!fits(skb, e, &in)))
		return too_big(skb, e, &in, !segmented);
	if (in.version == 0xff) {
		if (e->layer == 3)
			return drop(e->slot, DROP_NOT_CARRIED);
		/* As a network card would; the far end can not take less apart. */
		if (skb->len < SHORTEST && bpf_skb_change_tail(skb, SHORTEST, 0))
			return drop(e->slot, DROP_REFUSED);
	}
	if (e->layer == 3 && in.count)
		return drop(e->slot, DROP_NOT_CARRIED);
	if (unlikely(skb->len + e->room + 8 > 65535 + ETH_HLEN))
		return drop(e->slot, DROP_TOO_BIG);
	enum room room = make_room(skb, e, &in);
	if (unlikely(room == SEGMENT && !segmented))
		return segment(skb, e, &in);
	if (room != ROOM || !write_headers(skb, e, &in))
		return drop(e->slot, DROP_REFUSED);
	skb->mark = 0;
	struct counts *c = bpf_map_lookup_elem(&hits, &e->slot);
	if (c) {
		c->sent += segments;
		c->sent_bytes += bytes;
	}
	return bpf_redirect(e->device, 0);
}

/* On the host's end of a lease's trunk: the mark names the tunnel. Whatever is
 * not for one ends here, so that nothing of the host's stack sees it. */
SEC("tc")
int overlay_tx(struct __sk_buff *skb)
{
	__u32 id = skb->mark;

	if (unlikely(id & MARK_INBOUND)) {
		skb->mark = id & ~MARK_INBOUND;
		return bpf_redirect_peer(skb->ifindex, 0);
	}
	const struct entry *e = bpf_map_lookup_elem(&entries, &id);
	if (unlikely(!e))
		return drop(0, DROP_UNKNOWN);
	return send(skb, e, false);
}

/* At the other end of the GSO device: the pieces of what overlay_tx sent there. */
SEC("tc")
int overlay_segmented(struct __sk_buff *skb)
{
	__u32 id = skb->mark;
	const struct entry *e = bpf_map_lookup_elem(&entries, &id);

	if (!e)
		return drop(0, DROP_UNKNOWN);
	skb->priority = CLASS_MAJOR << 16 | skb->tc_index;
	skb->tc_index = 0;
	return send(skb, e, true);
}

/* On a device whose packets name their entry themselves. */
SEC("tc")
int overlay_front(struct __sk_buff *skb)
{
	__u32 index = skb->ifindex;
	const struct front *f = bpf_map_lookup_elem(&fronts, &index);
	const struct entry *e;
	struct name n = {};

	if (!f || f->bits > IDENTIFIER * 8)
		return drop(0, DROP_UNKNOWN);
	n.prefix = 32 + f->bits;
	n.profile = bpf_htonl(f->profile);
	__u32 bytes = (f->bits + 7) >> 3;
	if (bytes) {
		barrier_var(bytes);
		if (bytes > IDENTIFIER || bpf_skb_load_bytes(skb, f->offset, n.id, bytes))
			return drop(0, DROP_UNKNOWN);
		if (f->bits & 7 && bytes >= 1 && bytes <= IDENTIFIER)
			n.id[(bytes - 1) & (IDENTIFIER - 1)] &= 0xff00 >> (f->bits & 7);
	}
	e = f->longest ? bpf_map_lookup_elem(&prefixes, &n) : bpf_map_lookup_elem(&names, &n);
	if (!e)
		return drop(0, DROP_UNKNOWN);
	return send(skb, e, true);
}

/* ---- receiving ---- */

/* What the outer headers say. */
struct outer {
	struct in6_addr from, to;
	__u32 at;      /* of what follows the IP header */
	__u32 size;    /* of the packet by its IP header, with Ethernet */
	__u16 port;    /* UDP source, host order */
	__u8 protocol;
	__u8 tos;
	bool damaged;
};

/* Reads an outer IPv4 or IPv6 header; false: none that could be a tunnel's. */
static __always_inline bool read_outer(struct __sk_buff *skb, struct outer *o)
{
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		void *data = reach(skb, ETH_HLEN + sizeof(struct iphdr));

		if (!data)
			return false;
		struct iphdr *ip = data + ETH_HLEN;

		if (ip->frag_off & bpf_htons(IP_OFFSET))
			return false; /* the stack puts it together, to no avail */
		o->from.u6_addr32[3] = ip->saddr;
		o->to.u6_addr32[3] = ip->daddr;
		o->at = ETH_HLEN + sizeof(*ip);
		o->size = ETH_HLEN + bpf_ntohs(ip->tot_len);
		o->protocol = ip->protocol;
		o->tos = ip->tos;
		o->damaged = *(__u8 *)ip != 0x45 || ip->frag_off & bpf_htons(IP_MF) || !ip4_intact(ip);
		return true;
	}
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		void *data = reach(skb, ETH_HLEN + sizeof(struct ipv6hdr));

		if (!data)
			return false;
		struct ipv6hdr *ip = data + ETH_HLEN;

		o->from = ip->saddr;
		o->to = ip->daddr;
		o->at = ETH_HLEN + sizeof(*ip);
		o->size = ETH_HLEN + sizeof(*ip) + bpf_ntohs(ip->payload_len);
		o->protocol = ip->nexthdr;
		o->tos = ip6_tos(ip);
		o->damaged = *(__u8 *)ip >> 4 != 6;
		return true;
	}
	return false;
}

enum { KIND_VXLAN = 1 };

static __always_inline bool ours(const struct outer *o)
{
	struct in6_addr to = o->to;

	return bpf_map_lookup_elem(&locals, &to) != NULL;
}

/* A refusal counts only for packets to an address of ours: others', that pass
 * this host, are no business of the overlay's. */
static __always_inline int refuse(const struct outer *o, enum drop why)
{
	return ours(o) ? drop(0, why) : TCX_NEXT;
}

/* A number for a sender, for tunnels that carry none: exact for IPv4. */
static __always_inline __u32 number(const struct in6_addr *a)
{
	const __u32 *w = a->u6_addr32;

	if (!(w[0] | w[1] | w[2]))
		return w[3];
	return mix(both(w[0], w[1]) ^ both(w[2], w[3]) * HASH_A, 0, 6);
}

/* The inner packet's IPv4 or IPv6 header takes over a congestion mark of the
 * outer one (RFC 6040, figure 4); false: it must be dropped. */
static __always_inline bool take_mark(struct __sk_buff *skb, __be16 type, __u8 outer)
{
	outer &= ECN_MASK;
	if (type == bpf_htons(ETH_P_IP)) {
		void *data = reach(skb, ETH_HLEN + sizeof(struct iphdr));

		if (!data)
			return true;
		struct iphdr *ip = data + ETH_HLEN;
		__u8 ecn = ip->tos & ECN_MASK;

		if (outer == ECN_CE && ecn == ECN_NOT_ECT)
			return false;
		if (outer == ECN_CE || (outer == ECN_ECT_1 && ecn == ECN_ECT_0))
			ip4_set_tos(ip, (ip->tos & ~ECN_MASK) | outer);
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		void *data = reach(skb, ETH_HLEN + sizeof(struct ipv6hdr));

		if (!data)
			return true;
		struct ipv6hdr *ip = data + ETH_HLEN;
		__u8 tos = ip6_tos(ip), ecn = tos & ECN_MASK;

		if (outer == ECN_CE && ecn == ECN_NOT_ECT)
			return false;
		if (outer == ECN_CE || (outer == ECN_ECT_1 && ecn == ECN_ECT_0))
			ip6_set_tos(ip, (tos & ~ECN_MASK) | outer);
	}
	return true;
}

/* Hands the inner packet over. A packet that was not IP still passes for IP
 * with the kernel, so it takes the longer way on which its type is read. */
static __always_inline int deliver(struct __sk_buff *skb, const struct tunnel_end *t, __be16 type)
{
	bool ip = type == bpf_htons(ETH_P_IP) || type == bpf_htons(ETH_P_IPV6);

	if (t->deliver == DELIVER_INGRESS) {
		skb->mark = t->mark;
		return bpf_redirect(t->target, BPF_F_INGRESS);
	}
	if (unlikely(!ip)) {
		skb->mark = t->mark | MARK_INBOUND;
		return bpf_redirect(t->target, BPF_F_INGRESS);
	}
	skb->mark = t->mark;
	return bpf_redirect_peer(t->target, 0);
}

/* Counts the inner packet and hands it over. */
static __always_inline int received(struct __sk_buff *skb, const struct tunnel_end *t, __be16 type, __u32 segments)
{
	struct counts *c = bpf_map_lookup_elem(&hits, &t->slot);

	if (c) {
		c->received += segments;
		c->received_bytes += skb->len;
	}
	return deliver(skb, t, type);
}

/* Takes n bytes off behind the Ethernet header, and says what is there then. */
static __always_inline bool strip(struct __sk_buff *skb, __u32 n, __be16 type)
{
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO;

	if (type == bpf_htons(ETH_P_IPV6))
		flags |= BPF_F_ADJ_ROOM_DECAP_L3_IPV6;
	else if (type == bpf_htons(ETH_P_IP))
		flags |= BPF_F_ADJ_ROOM_DECAP_L3_IPV4;
	return bpf_skb_adjust_room(skb, -(__s32)n, BPF_ADJ_ROOM_MAC, flags) == 0;
}

/* The type of what is behind a tunnel header for IP; 0: neither. */
static __always_inline __be16 type_of(const struct __sk_buff *skb, __u32 at, __u8 version)
{
	__u8 first = 0;

	if (bpf_skb_load_bytes(skb, at, &first, 1) || (version && first >> 4 != version))
		return 0;
	if (first >> 4 == 4)
		return bpf_htons(ETH_P_IP);
	return first >> 4 == 6 ? bpf_htons(ETH_P_IPV6) : 0;
}

/* Whether an inner frame is of datagrams to be cut later. Those the kernel must
 * take the headers off: strip() leaves a large packet known as encapsulated,
 * and a socket that wants its datagrams one by one could not have them cut. */
static __always_inline bool needs_decap(struct __sk_buff *skb, __u32 at, __be16 type)
{
	__u8 next = 0;

	if (type == bpf_htons(ETH_P_IP))
		bpf_skb_load_bytes(skb, at + ETH_HLEN + offsetof(struct iphdr, protocol), &next, 1);
	else if (type == bpf_htons(ETH_P_IPV6))
		bpf_skb_load_bytes(skb, at + ETH_HLEN + offsetof(struct ipv6hdr, nexthdr), &next, 1);
	return next == IPPROTO_UDP;
}

/* Sends a checked VXLAN packet by the host's stack to the decap device; its mark
 * says that it was checked. */
static __always_inline int to_decap(struct __sk_buff *skb, const struct outer *o, const struct tunnel_end *t)
{
	__u32 zero = 0, *decap = bpf_map_lookup_elem(&decap_port, &zero);
	__u16 port = decap ? *decap : 0;

	if (!port || bpf_skb_store_bytes(skb, o->at + offsetof(struct udphdr, dest), &port, 2, 0))
		return drop(t->slot, DROP_REFUSED);
	skb->mark = MARK_DECAP | t->mark;
	return TCX_NEXT;
}

/* Everything behind a valid tunnel header: check the sender, take the headers
 * off, hand over. at is where the inner packet begins. */
static __always_inline int accept(struct __sk_buff *skb, const struct outer *o, __u64 key, __u32 at, const int layer,
				  __u8 version)
{
	const struct tunnel_end *t = bpf_map_lookup_elem(&ends, &key);
	struct link_header link;
	__u32 segments = segments_of(skb), take;

	if (unlikely(!t || !ip6_equal(&t->local, &o->to)))
		return refuse(o, DROP_UNKNOWN);
	if (unlikely(!ip6_equal(&t->remote, &o->from)))
		return drop(t->slot, DROP_SENDER);
	if (unlikely(t->ports && o->port >= t->ports))
		return drop(t->slot, DROP_PORT);
	if (unlikely(t->uplink && t->uplink != skb->ifindex))
		return drop(t->slot, DROP_INTERFACE);
	if (unlikely(o->size < skb->len)) { /* padding of the wire */
		if (skb->gso_size || bpf_skb_change_tail(skb, o->size, 0))
			return drop(t->slot, DROP_MALFORMED);
	}
	if (layer == 2) {
		if (at + ETH_HLEN > o->size || bpf_skb_load_bytes(skb, at, &link, ETH_HLEN))
			return drop(t->slot, DROP_MALFORMED);
		take = at;
	} else {
		__builtin_memcpy(&link, t->ethernet, sizeof(t->ethernet));
		link.type = type_of(skb, at, version);
		if (!link.type)
			return drop(t->slot, DROP_MALFORMED);
		take = at - ETH_HLEN;
	}
	if (unlikely(skb->gso_size) && layer == 2 && key >> 32 == KIND_VXLAN && needs_decap(skb, at, link.type))
		return to_decap(skb, o, t);
	if (unlikely(!strip(skb, take, link.type)))
		return drop(t->slot, DROP_MALFORMED);
	if (unlikely((o->tos & ECN_MASK) == ECN_CE || (o->tos & ECN_MASK) == ECN_ECT_1) && !take_mark(skb, link.type, o->tos))
		return drop(t->slot, DROP_CONGESTED);
	void *data = reach(skb, ETH_HLEN);
	if (!data)
		return drop(t->slot, DROP_REFUSED);
	write_link(data, &link);
	return received(skb, t, link.type, segments);
}

/* At the decap device: large packets without their tunnel headers. What did not come
 * by overlay_rx bears no such mark, as only the host's root can set one. */
SEC("tc")
int overlay_decapped(struct __sk_buff *skb)
{
	__u64 key = (__u64)KIND_VXLAN << 32 | (skb->mark & MARK_VNI);
	const struct tunnel_end *t = bpf_map_lookup_elem(&ends, &key);

	if ((skb->mark & MARK_KIND) != MARK_DECAP || !t)
		return drop(0, DROP_UNKNOWN);
	return received(skb, t, skb->protocol, segments_of(skb));
}

/* VXLAN, the protocol of leases: constants instead of a row. */
static __always_inline int accept_vxlan(struct __sk_buff *skb, struct outer *o, const int at)
{
	const int inner = at + sizeof(struct udphdr) + 8;

	const void *data = reach(skb, inner);
	if (!data)
		return refuse(o, DROP_MALFORMED);
	const struct udphdr *udp = data + at;
	const __be32 *vxlan = (const void *)(udp + 1);
	__u64 key = (__u64)KIND_VXLAN << 32 | bpf_ntohl(vxlan[1]) >> 8;

	if (vxlan[0] != bpf_htonl(0x08000000) || vxlan[1] & bpf_htonl(0xff) ||
	    bpf_ntohs(udp->len) != o->size - at || o->size > skb->len)
		return refuse(o, DROP_MALFORMED);
	o->port = bpf_ntohs(udp->source);
	return accept(skb, o, key, inner, 2, 0);
}

/* Any protocol that has a row. */
static __always_inline int accept_any(struct __sk_buff *skb, struct outer *o, const struct format *f)
{
	__u32 at = o->at + f->udp, inner = at + f->length;
	__be32 word = 0;
	__u64 key;

	if (f->length >= 4 && (bpf_skb_load_bytes(skb, at, &word, 4) || (word & f->mask) != f->match))
		return refuse(o, DROP_MALFORMED);
	if (f->vary_at != 0xff) {
		__u8 units = 0;

		if (bpf_skb_load_bytes(skb, at + f->vary_at, &units, 1))
			return refuse(o, DROP_MALFORMED);
		units &= f->vary_mask;
		if (units < f->vary_less)
			return refuse(o, DROP_MALFORMED);
		inner += (units - f->vary_less) * 4;
	}
	if (f->id_at != 0xff) {
		if (bpf_skb_load_bytes(skb, at + f->id_at, &word, 4))
			return refuse(o, DROP_MALFORMED);
		key = (__u64)f->kind << 32 | bpf_ntohl(word) >> (f->id_shift & 31);
	} else {
		key = (__u64)f->kind << 32 | number(&o->from);
	}
	__u8 byte = 0, version = f->version;
	if (f->check_at != 0xff && (bpf_skb_load_bytes(skb, at + f->check_at, &byte, 1) || byte != f->check))
		return refuse(o, DROP_MALFORMED);
	if (f->next_at != 0xff) {
		if (bpf_skb_load_bytes(skb, at + f->next_at, &byte, 1))
			return refuse(o, DROP_MALFORMED);
		version = byte == IPPROTO_IPIP ? 4 : byte == IPPROTO_IPV6 ? 6 : 0xff;
	}
	if (inner >= o->size)
		return refuse(o, DROP_MALFORMED);
	return f->layer == 2 ? accept(skb, o, key, inner, 2, 0) : accept(skb, o, key, inner, 3, version);
}

/* On a physical interface. What is no tunnel packet goes on to the host. */
SEC("tc")
int overlay_rx(struct __sk_buff *skb)
{
	struct outer o = {};
	struct udphdr udp = {};

	if (!read_outer(skb, &o))
		return TCX_NEXT;
	__u32 row = (__u32)o.protocol << 24;
	if (o.protocol == IPPROTO_UDP) {
		if (bpf_skb_load_bytes(skb, o.at, &udp, sizeof(udp)))
			return TCX_NEXT;
		row |= bpf_ntohs(udp.dest);
		o.port = bpf_ntohs(udp.source);
		if (likely(udp.dest == bpf_htons(PORT_VXLAN))) {
			if (unlikely(o.damaged))
				return refuse(&o, DROP_MALFORMED);
			if (o.at == ETH_HLEN + sizeof(struct iphdr))
				return accept_vxlan(skb, &o, ETH_HLEN + sizeof(struct iphdr));
			return accept_vxlan(skb, &o, ETH_HLEN + sizeof(struct ipv6hdr));
		}
	}
	if (o.protocol == IPPROTO_GRE) {
		__be16 gre[2];

		if (bpf_skb_load_bytes(skb, o.at, gre, sizeof(gre)))
			return TCX_NEXT;
		row |= bpf_ntohs(gre[1]) | (gre[0] & bpf_htons(0x2000) ? GRE_KEY : 0);
	}
	const struct format *f = bpf_map_lookup_elem(&formats, &row);
	if (!f)
		return TCX_NEXT;
	if (o.damaged || o.size > skb->len || (f->udp && bpf_ntohs(udp.len) != o.size - o.at))
		return refuse(&o, DROP_MALFORMED);
	return accept_any(skb, &o, f);
}

LICENSE;
