/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Writing the outer headers. */
#pragma once

#include "inner.h"

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

	udp->source = bpf_htons(e->port_first + ((in->hash & 0xffff) * e->port_count >> 16));
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
