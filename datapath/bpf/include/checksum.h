/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The Internet checksum (RFC 1071) and its incremental update (RFC 1624).
 * Sums are of 16-bit words as they lie in memory, which is right on either
 * byte order; nothing here swaps.
 */
#pragma once

#include "packet.h"

/* Folds a sum of up to 2^16 words into 16 bits. */
static __always_inline __u16 csum_fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Sum of a number of 16-bit words known to the compiler. */
static __always_inline __u32 csum_words(const void *from, int words)
{
	const __u16 *w = from;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < words; i++)
		sum += w[i];
	return sum;
}

/* The checksum of an IPv4 header without options whose check field is 0. */
static __always_inline __sum16 ip4_checksum(const struct iphdr *ip) { return ~csum_fold(csum_words(ip, 10)); }

/* Whether an IPv4 header without options is as it was sent: its sum is 0xffff. */
static __always_inline bool ip4_intact(const struct iphdr *ip)
{
	const __u32 *w = (const void *)ip;
	__u64 sum = (__u64)w[0] + w[1] + w[2] + w[3] + w[4];

	sum = (sum & 0xffffffff) + (sum >> 32);
	return csum_fold((sum & 0xffff) + (sum >> 16 & 0x1ffff)) == 0xffff;
}

/* The checksum after one word of what it covers changed (RFC 1624, equation 3). */
static __always_inline __sum16 csum_replace(__sum16 check, __u16 was, __u16 is)
{
	return ~csum_fold((__u32)(__u16)~check + (__u16)~was + is);
}

/* One hop less; the caller has seen that ttl > 1. */
static __always_inline void ip4_decrease_ttl(struct iphdr *ip)
{
	__u16 *word = (__u16 *)&ip->ttl, was = *word;

	ip->ttl--;
	ip->check = csum_replace(ip->check, was, *word);
}

/* Changes tos (DSCP and ECN) and keeps the checksum right. */
static __always_inline void ip4_set_tos(struct iphdr *ip, __u8 tos)
{
	__u16 *word = (__u16 *)ip, was = *word;

	ip->tos = tos;
	ip->check = csum_replace(ip->check, was, *word);
}
