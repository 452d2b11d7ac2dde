/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tunnels by the host's stack: a VXLAN device of the kernel's puts the headers on, so
 * that the operator's rules of nftables and IPsec see the packet. */
#pragma once

#include "inner.h"

static __always_inline void count_sent(const struct entry *e, __u32 segments, __u32 bytes)
{
	struct counts *c = bpf_map_lookup_elem(&hits, &e->slot);

	if (c) {
		c->sent += segments;
		c->sent_bytes += bytes;
	}
}

/* Where the outer headers of VXLAN have what the device is to be told. */
enum {
	IP_AT = ETH_HLEN,
	NUMBER4_AT = ETH_HLEN + 20 + 8 + 4,
	NUMBER6_AT = ETH_HLEN + 40 + 8 + 4,
};

/* Reads out of an entry's headers what the device is to be told; the flags of that. */
static __always_inline __u64 tell(struct bpf_tunnel_key *k, const struct entry *e)
{
	const struct iphdr *ip4 = (const void *)(e->header + IP_AT);
	const struct ipv6hdr *ip6 = (const void *)(e->header + IP_AT);

	k->tunnel_ttl = 64;
	if (e->family == 4) {
		k->tunnel_id = bpf_ntohl(*(const __be32 *)(e->header + NUMBER4_AT)) >> 8;
		k->local_ipv4 = bpf_ntohl(ip4->saddr);
		k->remote_ipv4 = bpf_ntohl(ip4->daddr);
		k->tunnel_tos = ip4->tos;
		return BPF_F_ZERO_CSUM_TX | BPF_F_DONT_FRAGMENT;
	}
	k->tunnel_id = bpf_ntohl(*(const __be32 *)(e->header + NUMBER6_AT)) >> 8;
	__builtin_memcpy(k->local_ipv6, &ip6->saddr, sizeof(k->local_ipv6));
	__builtin_memcpy(k->remote_ipv6, &ip6->daddr, sizeof(k->remote_ipv6));
	k->tunnel_tos = ip6_tos(ip6);
	return BPF_F_TUNINFO_IPV6 | BPF_F_ZERO_CSUM_TX | BPF_F_DONT_FRAGMENT;
}

/* Puts tags that take_tags took back into the frame. */
static __always_inline bool give_tags(struct __sk_buff *skb, const struct inner *in)
{
	if (in->count >= 2 && bpf_skb_vlan_push(skb, bpf_htons(in->tags[1] >> 16), in->tags[1] & 0xffff))
		return false;
	return !in->count || !bpf_skb_vlan_push(skb, bpf_htons(in->tags[0] >> 16), in->tags[0] & 0xffff);
}

/* Hands a frame to the device. The class in skb->priority stays. */
static __always_inline int to_stack(struct __sk_buff *skb, const struct entry *e, const struct inner *in, __u32 segments, __u32 bytes)
{
	struct bpf_tunnel_key k = {};
	__u64 flags = tell(&k, e);
	__u32 zero = 0, *device = bpf_map_lookup_elem(&stack_device, &zero);

	if (!device || !*device || !give_tags(skb, in) || bpf_skb_set_tunnel_key(skb, &k, sizeof(k), flags))
		return drop(e->slot, DROP_REFUSED);
	skb->mark &= MARK_CONTROL;
	count_sent(e, segments, bytes);
	return bpf_redirect(*device, 0);
}
