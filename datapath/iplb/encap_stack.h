/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* FORM_IPIP and FORM_GRE: one header for each relay. */
#pragma once

#include "encap.h"

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
