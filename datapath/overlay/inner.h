/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What encapsulation has to know of the inner packet. */
#pragma once

#include "format.h"

/* An Ethernet header, read before the packet moves under it. */
struct link_header {
	__u64 first;
	__u32 second;
	__u16 type; /* network order */
};

static __always_inline void read_link(struct link_header *h, const void *data)
{
	h->first = *(const __u64 *)data;
	h->second = *(const __u32 *)(data + 8);
	h->type = *(const __u16 *)(data + 12);
}

/* What encapsulation has to know of the inner packet. */
struct inner {
	struct link_header link;
	__u32 hash;
	__u32 tags[2]; /* vlan_proto << 16 | tci, of the outer tag first */
	__u8 tos;
	__u8 count; /* of tags */
	__u8 version; /* INNER4, INNER6, or 0xff */
	__u8 next;    /* IP protocol inside */
};

#define HASH_A 0xff51afd7ed558ccdULL
#define HASH_B 0x9e3779b97f4a7c15ULL

static __always_inline __u32 mix(__u64 addresses, __u32 ports, __u8 protocol)
{
	return ((addresses ^ (((__u64)ports << 8 | protocol) + 1) * HASH_A) * HASH_B) >> 32;
}

static __always_inline __u64 both(__u32 a, __u32 b) { return (__u64)a << 32 | b; }

/* Reads DSCP, ECN and flow of an inner IP header. All fragments of a datagram
 * have one hash: only whole ones tell their ports. */
static __always_inline void inspect(struct __sk_buff *skb, struct inner *in)
{
	__u32 ports = 0;
	__u64 addresses;
	__u8 next;

	in->tos = 0;
	in->version = 0xff;
	if (in->link.type == bpf_htons(ETH_P_IP)) {
		const void *data = reach(skb, ETH_HLEN + sizeof(struct iphdr));

		if (!data)
			goto other;
		const struct iphdr *ip = data + ETH_HLEN;
		bool whole = ip->ihl == 5 && has_ports(ip->protocol) && !ip4_is_fragment(ip);

		in->version = INNER4;
		in->tos = ip->tos;
		next = ip->protocol;
		addresses = both(ip->saddr, ip->daddr);
		data = whole ? reach(skb, ETH_HLEN + sizeof(*ip) + 4) : NULL;
		if (data)
			ports = *(__u32 *)(data + ETH_HLEN + sizeof(*ip));
	} else if (in->link.type == bpf_htons(ETH_P_IPV6)) {
		const void *data = reach(skb, ETH_HLEN + sizeof(struct ipv6hdr));

		if (!data)
			goto other;
		const struct ipv6hdr *ip = data + ETH_HLEN;
		const __u64 *a = (const __u64 *)&ip->saddr;

		in->version = INNER6;
		in->tos = ip6_tos(ip);
		next = ip->nexthdr;
		addresses = a[0] ^ a[1] * HASH_A ^ (a[2] ^ a[3] * HASH_A) * HASH_B;
		data = has_ports(next) ? reach(skb, ETH_HLEN + sizeof(*ip) + 4) : NULL;
		if (data)
			ports = *(__u32 *)(data + ETH_HLEN + sizeof(*ip));
	} else {
other:
		next = 0;
		addresses = in->link.first ^ in->link.second;
		ports = in->link.type;
	}
	in->next = next;
	in->hash = mix(addresses, ports, next);
}

/* Takes VLAN tags out of the packet's side data, where they would end up in
 * front of the outer headers; false: there are more than two. */
static __always_inline bool take_tags(struct __sk_buff *skb, struct inner *in)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (!skb->vlan_present)
			return true;
		in->tags[i] = (__u32)bpf_ntohs(skb->vlan_proto) << 16 | (skb->vlan_tci & 0xffff);
		in->count = i + 1;
		if (bpf_skb_vlan_pop(skb))
			return false;
	}
	return !skb->vlan_present;
}

static __always_inline void write_link(void *to, const struct link_header *h)
{
	*(__u64 *)to = h->first;
	*(__u32 *)(to + 8) = h->second;
	*(__u16 *)(to + 12) = h->type;
}
