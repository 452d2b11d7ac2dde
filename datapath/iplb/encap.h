/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What all forms of encapsulation need: the flow of a packet, room in front of it,
 * a header of a path. */
#pragma once

#include "tables.h"

/* The number of the tunnel that a packet to VXLAN's port (RFC 7348) or Geneve's (RFC
 * 8926) is of, if some have paths of their own; else 0. */
static __always_inline __u32 tunnel_of(struct __sk_buff *skb)
{
	const struct state *state = state_of();
	const void *data;

	if (!state || !state->tunnels)
		return 0;
	data = reach(skb, ETH_HLEN + IPH + UDPH + 8);
	return data ? bpf_ntohl(*(const __be32 *)(data + ETH_HLEN + IPH + UDPH + 4)) >> 8 : 0;
}

/* The ports behind a header without options, whose four bytes are within reach; 0:
 * none. Fragments of a datagram have one flow: only whole datagrams tell ports. */
static __always_inline __u32 ports_of(const struct iphdr *ip)
{
	return has_ports(ip->protocol) && !ip4_is_fragment(ip) ? *(const __u32 *)(ip + 1) : 0;
}

static __always_inline void read_flow(struct __sk_buff *skb, struct flow_key *k, const struct iphdr *ip)
{
	bool options = ip->ihl != 5;
	const void *data;

	k->source = ip->saddr;
	k->target = ip->daddr;
	k->protocol = ip->protocol;
	k->ports = 0;
	data = options ? NULL : reach(skb, ETH_HLEN + IPH + 4);
	if (data)
		k->ports = ports_of(data + ETH_HLEN);
	if (k->protocol == IPPROTO_UDP && (k->ports >> 16 == bpf_htons(PORT_VXLAN) || k->ports >> 16 == bpf_htons(PORT_GENEVE)))
		k->protocol |= tunnel_of(skb) << 8;
}

/* Ports of tunnels over UDP: VXLAN, VXLAN-GPE, Geneve, GUE, LISP. */
static __always_inline bool is_tunnel(__be16 port)
{
	return port == bpf_htons(4789) || port == bpf_htons(4790) || port == bpf_htons(6081) || port == bpf_htons(6080) || port == bpf_htons(4341);
}

/* Whether a list goes between the headers of a tunnel's packet. */
static __always_inline bool into_tunnel(const struct flow_key *k)
{
	return (__u8)k->protocol == IPPROTO_UDP && is_tunnel(k->ports >> 16);
}

/* Whether a packet needs no marks in front of which headers it is to be cut, or
 * have its checksum computed: it is not large, and no card will see it. */
static __always_inline bool is_plain(const struct __sk_buff *skb)
{
	const struct state *state = state_of();

	return !skb->gso_size && state && state->wires_gso;
}

/* Room behind the Ethernet header of a plain packet: more in front of it, to
 * which that is moved, in words: whoever reads bytes that were written one by one
 * waits for them. An eighth of what bpf_skb_adjust_room costs. To the kernel, the
 * packet's IP header stays the one that it was: queues that tell flows apart, or
 * mark congestion, do so by it. */
static __always_inline int open_room(struct __sk_buff *skb, __u32 room)
{
	void *data = reach(skb, ETH_HLEN);
	__u64 first;
	__u32 second;
	__u16 third;

	if (!data)
		return TCX_NEXT;
	first = *(__u64 *)data;
	second = *(__u32 *)(data + 8);
	third = *(__u16 *)(data + 12);
	if (bpf_skb_change_head(skb, room, 0))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN);
	if (!data)
		return TCX_DROP; /* half written */
	*(__u64 *)data = first;
	*(__u32 *)(data + 8) = second;
	*(__u16 *)(data + 12) = third;
	return 0;
}

/* Room for headers of IPv4 in front of a packet; marks say what they are. 0, or
 * the verdict on a packet that has none: of a tunnel's, what the kernel would not
 * take if it were large, so that a flow's packets keep to one path. */
static __always_inline int make_room(struct __sk_buff *skb, const struct flow_key *k, __u32 room, __u64 marks)
{
	if (is_plain(skb) && !into_tunnel(k))
		return open_room(skb, room);
	return bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_FIXED_GSO | marks) ? TCX_NEXT : 0;
}

/* A header of a path. */
static __always_inline void write_header(struct iphdr *to, const struct path *p, int i, __u8 tos, __u32 length)
{
	const __u32 *from = (const void *)p->headers[i];
	__u32 *words = (void *)to;

	words[0] = from[0] | bpf_htonl((__u32)tos << 16 | (__u16)length);
	words[1] = from[1];
	words[2] = from[2];
	words[3] = from[3];
	words[4] = from[4];
	to->check = ~csum_fold((__u32)p->sums[i] + bpf_htons(tos) + bpf_htons(length));
}
