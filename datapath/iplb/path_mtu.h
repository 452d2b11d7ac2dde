/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whether a packet fits with its headers, and what its sender is told if not. */
#pragma once

#include "encap.h"

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
