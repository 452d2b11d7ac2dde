/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* FORM_SRV6: one IPv6 header with segments (RFC 8754). */
#pragma once

#include "encap.h"

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
