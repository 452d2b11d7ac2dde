//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ports of switches that lead to VLANs of an interface of the host. What leaves
 * gets the tag that was leased, and no other; what comes with it loses it. All
 * other frames of the interface are the host's, as if no program were there.
 */
#include "packet.h"
#include "maps.h"

LICENSE;

#define PORTS 4096

/* struct outlet: where frames go that come in by a port's device. */
struct outlet {
	__u32 index; /* of the interface */
	__u16 vlan;  /* 0: no tag */
	__u8 mac[ETH_ALEN]; /* of the interface */
};

/* struct inlet_key: whose frames come in by an interface. */
struct inlet_key {
	__u32 index; /* of the interface */
	__u32 vlan;
};

/* By the port's device in the host's namespace. */
MAP(BPF_MAP_TYPE_HASH, __u32, struct outlet, PORTS, BPF_F_NO_PREALLOC) outlets SEC(".maps");

/* To that device. */
MAP(BPF_MAP_TYPE_HASH, struct inlet_key, __u32, PORTS, BPF_F_NO_PREALLOC) inlets SEC(".maps");

#define VLAN_ID 0xfff

/* Whether a type is one of a tag: those of IEEE 802.1Q, and what others use for
 * outer ones. */
static __always_inline bool is_tag(__be16 type)
{
	return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD) || type == bpf_htons(0x9100) ||
	       type == bpf_htons(0x9200) || type == bpf_htons(0x9300);
}

/* Frames by which switches and stations speak to the switch at the other end of
 * their wire: 01:80:c2:00:00:00 to 2f (IEEE 802.1Q, tables 8-1 and 10-1),
 * 01:00:0c:cc:cc:xx and 01:00:0c:cd:cd:xx (trunking, spanning trees), and pauses
 * (802.3, annex 31B). */
static __always_inline bool is_control(const struct ethhdr *eth)
{
	const __u8 *to = eth->h_dest;

	if (eth->h_proto == bpf_htons(0x8808))
		return true;
	if (*(const __u32 *)to == bpf_htonl(0x0180c200) && to[4] == 0 && to[5] < 0x30)
		return true;
	return *(const __u16 *)to == bpf_htons(0x0100) && to[2] == 0x0c && (to[3] == 0xcc || to[3] == 0xcd);
}

/* On a port's device in the host's namespace: a frame that leaves its switch. */
SEC("tc")
int access_out(struct __sk_buff *skb)
{
	__u32 index = skb->ifindex;
	struct outlet *to = bpf_map_lookup_elem(&outlets, &index);
	struct ethhdr *eth = reach(skb, ETH_HLEN);

	if (!to || !eth || skb->vlan_present || is_tag(eth->h_proto) || is_control(eth))
		return TCX_DROP;
	if (mac_is_group(eth->h_source) || mac_equal(eth->h_source, to->mac))
		return TCX_DROP;
	skb->mark = 0;
	skb->priority = 0;
	if (to->vlan && bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), to->vlan))
		return TCX_DROP;
	return bpf_redirect(to->index, 0);
}

/* On the interface: a frame from outside. */
SEC("tc")
int access_in(struct __sk_buff *skb)
{
	struct inlet_key from = { .index = skb->ifindex };
	struct ethhdr *eth;
	__u32 *to;

	if (skb->vlan_present) {
		if (skb->vlan_proto != bpf_htons(ETH_P_8021Q))
			return TCX_NEXT;
		from.vlan = skb->vlan_tci & VLAN_ID;
	}
	to = bpf_map_lookup_elem(&inlets, &from);
	if (!to)
		return TCX_NEXT;
	eth = reach(skb, ETH_HLEN);
	if (!eth)
		return TCX_DROP;
	if (is_control(eth)) /* without a tag they are the host's */
		return from.vlan ? TCX_DROP : TCX_NEXT;
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return TCX_DROP;
	eth = reach(skb, ETH_HLEN);
	if (!eth || skb->vlan_present || is_tag(eth->h_proto))
		return TCX_DROP;
	skb->mark = 0;
	return bpf_redirect_peer(*to, 0);
}
