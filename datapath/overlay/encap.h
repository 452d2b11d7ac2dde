/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sending: room, headers, the device's queue. */
#pragma once

#include "path_mtu.h"
#include "stack.h"
#include "write.h"

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
	if (!give_tags(skb, in))
		return drop(e->slot, DROP_REFUSED);
	skb->tc_index = skb->priority & 0xffff;
	return bpf_redirect(*device, 0);
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
	if (unlikely(skb->gso_size && !e->stack && !stays_whole(e, &in)))
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
	if (unlikely(e->stack))
		return to_stack(skb, e, &in, segments, bytes);
	if (e->layer == 3 && in.count)
		return drop(e->slot, DROP_NOT_CARRIED);
	if (unlikely(skb->len + e->room + 8 > 65535 + ETH_HLEN))
		return drop(e->slot, DROP_TOO_BIG);
	enum room room = make_room(skb, e, &in);
	if (unlikely(room == SEGMENT && !segmented))
		return segment(skb, e, &in);
	if (room != ROOM || !write_headers(skb, e, &in))
		return drop(e->slot, DROP_REFUSED);
	skb->mark &= MARK_CONTROL;
	count_sent(e, segments, bytes);
	return bpf_redirect(e->device, 0);
}
