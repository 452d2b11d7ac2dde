/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Errors by which senders learn that a packet is too big. Each is written over the
 * packet that it is about. */
#pragma once

#include "checksum.h"

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
