/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Taking headers off, and visiting the addresses of a list. */
#pragma once

#include "forward.h"

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
	__u32 total = l->first & 15, content = l->second >> 4, visited = l->second & 15;

	if (l->first >> 4 != LIST_VERSION || content > TUNNEL || visited > total || udp->check)
		return OUTCOME_DROP_MALFORMED;
	if (total > RELAYS)
		return OUTCOME_DROP_NESTED;
	if (content == TUNNEL && (visited == total || !l->port))
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
