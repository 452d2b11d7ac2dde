/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reading a packet's headers, and rules about them. */
#pragma once

#include "nsh.h"

#define VLAN_ID 0xfff
enum { EXTENSIONS = 6 };

static __always_inline bool is_extension(__u8 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS;
}

/* Ports of TCP, UDP and SCTP; of an echo its number. */
static __always_inline void read_ports(struct __sk_buff *skb, struct flow *f)
{
	__be16 w[4];

	if (has_ports(f->proto)) {
		if (bpf_skb_load_bytes(skb, f->at, w, 4)) {
			f->bad = 1;
			return;
		}
		f->from_port = bpf_ntohs(w[0]);
		f->to_port = bpf_ntohs(w[1]);
		f->ports = 1;
		return;
	}
	if (f->proto != IPPROTO_ICMP && f->proto != IPPROTO_ICMPV6)
		return;
	if (bpf_skb_load_bytes(skb, f->at, w, 8)) {
		f->bad = 1;
		return;
	}
	__u8 type = *(__u8 *)w;

	if ((f->proto == IPPROTO_ICMP && (type == 0 || type == 8)) || (f->proto == IPPROTO_ICMPV6 && (type == 128 || type == 129)))
		f->from_port = f->to_port = bpf_ntohs(w[2]);
	f->discovers = f->proto == IPPROTO_ICMPV6 && type >= 133 && type <= 137;
}

static __always_inline void read_ip4(struct __sk_buff *skb, struct flow *f)
{
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, f->ip, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl < 5) {
		f->bad = 1;
		return;
	}
	f->from[1] = ip.saddr;
	f->to[1] = ip.daddr;
	f->proto = ip.protocol;
	f->dscp = ip.tos >> 2;
	f->at = f->ip + ip.ihl * 4;
	f->fragment = (ip.frag_off & bpf_htons(IP_OFFSET)) != 0;
	/* A fragment that begins inside the header would write over it (RFC 3128). */
	if (f->proto == IPPROTO_TCP && (ip.frag_off & bpf_htons(IP_OFFSET)) == bpf_htons(1))
		f->bad = 1;
}

static __always_inline void read_ip6(struct __sk_buff *skb, struct flow *f)
{
	struct ipv6hdr ip;
	__u8 next, b[8];

	if (bpf_skb_load_bytes(skb, f->ip, &ip, sizeof(ip)) || ip.version != 6) {
		f->bad = 1;
		return;
	}
	__builtin_memcpy(f->from, &ip.saddr, 16);
	__builtin_memcpy(f->to, &ip.daddr, 16);
	f->dscp = ip6_tos(&ip) >> 2;
	f->at = f->ip + sizeof(ip);
	next = ip.nexthdr;
	for (int i = 0; i < EXTENSIONS && (is_extension(next) || next == IPPROTO_FRAGMENT); i++) {
		if (bpf_skb_load_bytes(skb, f->at, b, 8)) {
			f->bad = 1;
			return;
		}
		if (next == IPPROTO_FRAGMENT) {
			f->fragment = ((b[2] << 8 | b[3]) & 0xfff8) != 0;
			f->at += 8;
		} else {
			f->at += 8 + b[1] * 8;
		}
		next = b[0];
		if (f->fragment)
			break;
	}
	if (is_extension(next) && !f->fragment)
		f->bad = 1;
	f->proto = next;
}

/* Reads a frame's headers; of one that is not IP the family is 0. */
static __always_inline void read_flow(struct __sk_buff *skb, struct flow *f)
{
	__be16 type = 0, w[2];

	__builtin_memset(f, 0, sizeof(*f));
	f->ip = ETH_HLEN;
	if (bpf_skb_load_bytes(skb, 12, &type, 2))
		return;
	if (skb->vlan_present) {
		f->vlan = skb->vlan_tci & VLAN_ID;
	} else if (type == bpf_htons(ETH_P_8021Q)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, w, 4))
			return;
		f->vlan = bpf_ntohs(w[0]) & VLAN_ID;
		type = w[1];
		f->ip += 4;
	}
	if (type == bpf_htons(ETH_P_IP)) {
		f->family = 4;
		read_ip4(skb, f);
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		f->family = 6;
		read_ip6(skb, f);
	}
	if (f->family && !f->bad && !f->fragment)
		read_ports(skb, f);
}

/* Whether a rule matches. What has no ports to compare, because it is a later
 * fragment, matches a rule with ports if fragments say so. */
static __always_inline bool matches(const struct rule *r, const struct flow *f, const bool fragments)
{
	__u64 miss = ((f->from[0] ^ r->from[0]) & r->from_mask[0]) | ((f->from[1] ^ r->from[1]) & r->from_mask[1]) |
		     ((f->to[0] ^ r->to[0]) & r->to_mask[0]) | ((f->to[1] ^ r->to[1]) & r->to_mask[1]) |
		     ((f->vlan ^ r->vlan) & r->vlan_mask) | ((f->proto ^ r->proto) & r->proto_mask) |
		     ((f->dscp ^ r->dscp) & r->dscp_mask);

	if (miss || (r->family && r->family != f->family))
		return false;
	if (!r->ports)
		return true;
	if (!f->ports)
		return fragments && f->fragment;
	return f->from_port >= r->from_low && f->from_port <= r->from_high && f->to_port >= r->to_low && f->to_port <= r->to_high;
}

/* The first rule that matches; NULL: none. */
static __always_inline const struct rule *find(const struct rules *all, const struct flow *f, const bool fragments)
{
	for (__u32 i = 0; i < RULES; i++) {
		const struct rule *r = &all->rules[i];

		if (i >= all->count)
			break;
		if (matches(r, f, fragments))
			return r;
	}
	return NULL;
}
