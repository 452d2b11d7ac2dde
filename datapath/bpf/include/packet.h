/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reading packets: bounds, Ethernet addresses, what an IP header says. */
#pragma once

#include "linux_types.h"
#include "bpf_endian.h"
#include "bpf_helpers.h"

#define LICENSE char _license[] SEC("license") = "Dual BSD/GPL"

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

/* Keeps the compiler from merging or moving what the verifier must see apart. */
#define barrier_var(v) asm volatile("" : "+r"(v))

/* The kernel rewrites these 32-bit loads to pointers. In C the compiler would
 * keep a value as 32 bits and widen it at its second use, which the verifier
 * takes for a number. */
#define CONTEXT_POINTER(skb, field) \
	({ \
		void *p_; \
		asm volatile("%0 = *(u32 *)(%1 + %2)" \
			     : "=r"(p_) \
			     : "r"(skb), "i"(__builtin_offsetof(struct __sk_buff, field))); \
		p_; \
	})

static __always_inline void *data_of(const struct __sk_buff *skb) { return CONTEXT_POINTER(skb, data); }

static __always_inline void *end_of(const struct __sk_buff *skb) { return CONTEXT_POINTER(skb, data_end); }

/* Makes the first len bytes of the packet readable and writable directly, and
 * returns where they begin; NULL: the packet is shorter. Pointers read before
 * are invalid afterwards. Use the pointer it returns: the verifier knows that
 * one to be checked, of another load of skb->data it may not. */
static __always_inline void *reach(struct __sk_buff *skb, const __u32 len)
{
	void *data = data_of(skb);

	if (likely(data + len <= end_of(skb)))
		return data;
	if (bpf_skb_pull_data(skb, len))
		return NULL;
	data = data_of(skb);
	return data + len <= end_of(skb) ? data : NULL;
}

/* Addresses may lie at any even offset; x86 and arm64 load them unaligned. */
static __always_inline bool mac_equal(const void *a, const void *b)
{
	return *(const __u32 *)a == *(const __u32 *)b && *(const __u16 *)(a + 4) == *(const __u16 *)(b + 4);
}

static __always_inline void mac_copy(void *to, const void *from)
{
	*(__u32 *)to = *(const __u32 *)from;
	*(__u16 *)(to + 4) = *(const __u16 *)(from + 4);
}

/* Group addresses, broadcast among them, have the lowest bit of the first byte. */
static __always_inline bool mac_is_group(const void *mac) { return *(const __u8 *)mac & 1; }

static __always_inline bool ip6_equal(const struct in6_addr *a, const struct in6_addr *b)
{
	return ((*(const __u64 *)a ^ *(const __u64 *)b) | (*((const __u64 *)a + 1) ^ *((const __u64 *)b + 1))) == 0;
}

/* Packets on the wire that this one stands for. */
static __always_inline __u32 segments_of(const struct __sk_buff *skb)
{
	__u32 size = skb->gso_size;

	if (likely(!size))
		return 1;
	return skb->gso_segs ? skb->gso_segs : (skb->len + size - 1) / size;
}

/* Whether the first four bytes behind the IP header are two ports. */
static __always_inline bool has_ports(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == 132 /* SCTP */;
}

/* Any fragment, the first one too. */
static __always_inline bool ip4_is_fragment(const struct iphdr *ip)
{
	return (ip->frag_off & bpf_htons(IP_MF | IP_OFFSET)) != 0;
}

/* Whether packets from or to an address are a router's to forward: those of 0,
 * 127, groups and class E are not. */
static __always_inline bool ip4_is_ordinary(__be32 address)
{
	__u8 first = *(const __u8 *)&address;

	return first != 0 && first != 127 && first < 224;
}

/* Traffic class (DSCP and ECN) of an IPv6 header, as IPv4's tos. */
static __always_inline __u8 ip6_tos(const struct ipv6hdr *ip)
{
	return bpf_ntohs(*(const __be16 *)ip) >> 4 & 0xff;
}

static __always_inline void ip6_set_tos(struct ipv6hdr *ip, __u8 tos)
{
	__be16 *first = (__be16 *)ip;

	*first = (*first & bpf_htons(0xf00f)) | bpf_htons((__u16)tos << 4);
}

#define ECN_MASK 3
#define ECN_NOT_ECT 0
#define ECN_ECT_1 1
#define ECN_ECT_0 2
#define ECN_CE 3
