/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* FORM_UDP: one header with the list of relays, or the list within a tunnel's packet. */
#pragma once

#include "encap.h"

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
