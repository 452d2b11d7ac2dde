/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* From one hop of a chain to the next (RFC 8300), and headers on and off. */
#pragma once

#include "flow.h"

enum { NSH_SIZE = 8, NSH_TTL = 63, NSH_ETHERNET = 3, NSH_IP = 1, NSH_IPV6 = 2 };
#define NSH_O (1U << 29)
#define NSH_TTL_SHIFT 22
#define NSH_TTL_MASK (63U << NSH_TTL_SHIFT)
#define NSH_LENGTH(base) ((base) >> 16 & 63)
#define NSH_MD(base) ((base) >> 8 & 15)
#define NSH_BASE(ttl, words, md) ((__u32)(ttl) << NSH_TTL_SHIFT | (words) << 16 | (md) << 8 | NSH_ETHERNET)

static __always_inline int drop(__u32 slot, enum drop cause)
{
	return DROP((struct counts *)bpf_map_lookup_elem(&counters, &slot), cause);
}

static __always_inline struct walk *walk_of(void) { return ROW0(&walks); }

/* The plane of a path; NULL: nobody's here. */
static __always_inline const struct plane *plane_of(__u32 at)
{
	__u32 number = at >> 8;
	const struct path *path = bpf_map_lookup_elem(&paths, &number);

	if (!path)
		return NULL;
	number = path->plane;
	return bpf_map_lookup_elem(&planes, &number);
}

/* A packet for which there is no row. */
static __always_inline int lost(__u32 at)
{
	const struct plane *p = plane_of(at);

	return p ? drop(p->slot, DROP_WRONG_INDEX) : drop(0, DROP_UNKNOWN_PATH);
}

/* One packet in so many, of each processor: a prime, since a packet may pass a
 * processor several times in the same order. */
enum { TIMED = 61 };

/* A packet begins to walk: whether the time is taken that hops add to it. */
static __always_inline void take_turn(struct walk *w)
{
	w->since = 0;
	w->timed = !(++w->turn % TIMED);
}

static __always_inline void spent(struct counts *c, __u64 ns)
{
	if (!c)
		return;
	c->timed++;
	c->spent += ns;
}

/* A timed packet leaves its hop, if it has one, for the next. */
static __always_inline void stop_clock(struct walk *w)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 slot = w->hop.slot;

	if (w->since)
		spent(bpf_map_lookup_elem(&counters, &slot), now - w->since);
	w->since = now;
}

/* Goes on with the row of the packet's path and index. */
static __always_inline int steer(struct __sk_buff *skb, struct walk *w)
{
	__u32 at = w->at, ttl = w->base >> NSH_TTL_SHIFT & 63;
	const struct hop *h = bpf_map_lookup_elem(&hops, &at);

	if (unlikely(!h))
		return lost(at);
	ttl = ttl ? ttl - 1 : NSH_TTL; /* RFC 8300, section 2.2 */
	if (unlikely(!ttl))
		return drop(h->slot, DROP_TTL);
	w->base = (w->base & ~NSH_TTL_MASK) | ttl << NSH_TTL_SHIFT;
	if (unlikely(w->timed))
		stop_clock(w);
	w->hop = *h;
	if (unlikely(w->base & NSH_O) && w->hop.step <= STEP_NODE)
		w->hop.step = STEP_NONE; /* is not traffic */
	__u32 slot = h->slot;
	COUNT((struct counts *)bpf_map_lookup_elem(&counters, &slot), segments_of(skb), skb->len);
	bpf_tail_call(skb, &steps, w->hop.step);
	return drop(slot, DROP_REFUSED);
}

/* A function is done with the packet. */
static __always_inline int next_hop(struct __sk_buff *skb, struct walk *w)
{
	if (unlikely(!(w->at & 0xff)))
		return lost(w->at);
	w->at--;
	return steer(skb, w);
}

/* The packet's flow, read once and again only when something changed it. */
static __always_inline struct flow *flow_of(struct __sk_buff *skb, struct walk *w)
{
	if (!w->parsed) {
		read_flow(skb, &w->flow);
		w->parsed = 1;
	}
	return &w->flow;
}

/* Gives a packet the metadata that is stated of its path. */
static __always_inline void describe(struct walk *w)
{
	__u32 number = w->at >> 8;
	const struct path *path = bpf_map_lookup_elem(&paths, &number);

	if (!path || !path->typed)
		return;
	w->context = path->size;
	w->base = (w->base & ~(63U << 16 | 15U << 8)) | (2 + path->size / 4) << 16 | path->typed << 8;
	__builtin_memcpy(w->nsh + NSH_SIZE, path->metadata, STATED);
}

/* Begins a packet's walk, with the metadata of its path if that has some. */
static __always_inline void begin(struct walk *w, __u32 at, bool typed)
{
	w->at = at;
	w->entry = 0;
	take_turn(w);
	w->context = 0;
	w->base = NSH_BASE(NSH_TTL, 2, 2);
	if (unlikely(typed))
		describe(w);
}

/* Reads the NSH at an offset, and checks it. */
static __always_inline bool read_nsh(struct __sk_buff *skb, struct walk *w, __u32 at)
{
	__be32 words[2];
	__u32 length, context;

	if (bpf_skb_load_bytes(skb, at, words, sizeof(words)))
		return false;
	w->base = bpf_ntohl(words[0]);
	w->at = bpf_ntohl(words[1]);
	length = NSH_LENGTH(w->base);
	if (w->base >> 30 || length < 2 || (w->base & 0xff) != NSH_ETHERNET)
		return false;
	if (NSH_MD(w->base) == 1 ? length != 6 : NSH_MD(w->base) != 2)
		return false;
	context = length * 4 - NSH_SIZE;
	w->context = context;
	w->entry = 0;
	w->parsed = 0;
	take_turn(w);
	barrier_var(context);
	if (!context)
		return true;
	if (context > CONTEXT)
		return false;
	return bpf_skb_load_bytes(skb, at + NSH_SIZE, w->nsh + NSH_SIZE, context) == 0;
}

/* Has the kernel take a frame of NSH for one of another type, which helpers ask for that
 * shorten frames. Only the tag of a VLAN names a type that is taken from the packet: two
 * are put on, of which the first is in the packet then, and both are taken off. */
static __always_inline bool taken_for(struct __sk_buff *skb, __be16 type)
{
	return !bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 1) && !bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 1) &&
	       !bpf_skb_store_bytes(skb, ETH_HLEN + 2, &type, sizeof(type), 0) && !bpf_skb_vlan_pop(skb) && !bpf_skb_vlan_pop(skb);
}

/* Takes n bytes off in front of the inner frame: the first Ethernet header and
 * all behind it. */
static __always_inline bool take_off(struct __sk_buff *skb, __u32 n)
{
	__u8 link[ETH_HLEN];
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO;
	__be16 type;

	if (bpf_skb_load_bytes(skb, n, link, ETH_HLEN))
		return false;
	type = *(__be16 *)(link + 12);
	if (type == bpf_htons(ETH_P_IPV6))
		flags |= BPF_F_ADJ_ROOM_DECAP_L3_IPV6;
	else
		flags |= BPF_F_ADJ_ROOM_DECAP_L3_IPV4;
	/* Before Linux 6.3 there are no flags for this, and the type stays. */
	if (bpf_skb_adjust_room(skb, -(__s32)n, BPF_ADJ_ROOM_MAC, flags) &&
	    (skb->protocol != type || bpf_skb_adjust_room(skb, -(__s32)n, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO)))
		return false;
	return bpf_skb_store_bytes(skb, 0, link, ETH_HLEN, 0) == 0;
}

/* Makes room in front of the frame and writes its Ethernet header anew behind
 * it, with the tag inside. length is of what goes in front. */
static __always_inline bool make_room(struct __sk_buff *skb, __u32 length, __u64 flags)
{
	__u16 link[ETH_HLEN / 2 + 2];
	__u32 size = ETH_HLEN;

	if (bpf_skb_load_bytes(skb, 0, link, ETH_HLEN))
		return false;
	if (unlikely(skb->vlan_present)) {
		link[8] = link[6];
		link[6] = skb->vlan_proto;
		link[7] = bpf_htons(skb->vlan_tci);
		if (bpf_skb_vlan_pop(skb))
			return false;
		size += 4;
	} else {
		link[7] = link[8] = 0;
	}
	flags |= BPF_F_ADJ_ROOM_ENCAP_L2(size);
	/* A packet that came by a tunnel and from no wire between (veth) counts as in one
	 * still: its inner headers are where they were, and only room is missing. */
	if (bpf_skb_adjust_room(skb, length + size - ETH_HLEN, BPF_ADJ_ROOM_MAC, flags) &&
	    bpf_skb_adjust_room(skb, length + size - ETH_HLEN, BPF_ADJ_ROOM_MAC, flags & BPF_F_ADJ_ROOM_FIXED_GSO))
		return false;
	if (size > ETH_HLEN)
		return bpf_skb_store_bytes(skb, length, link, ETH_HLEN + 4, 0) == 0;
	return bpf_skb_store_bytes(skb, length, link, ETH_HLEN, 0) == 0;
}

/* Writes NSH at an offset. */
static __always_inline bool write_nsh(struct __sk_buff *skb, struct walk *w, __u32 at)
{
	__be32 *words = (void *)w->nsh;
	__u32 size = NSH_SIZE + w->context;

	words[0] = bpf_htonl(w->base);
	words[1] = bpf_htonl(w->at);
	barrier_var(size);
	if (size < NSH_SIZE || size > NSH_SIZE + CONTEXT)
		return false;
	return bpf_skb_store_bytes(skb, at, w->nsh, size, 0) == 0;
}
