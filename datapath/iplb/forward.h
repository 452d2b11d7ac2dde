/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets from the fabric that go to their next hop past the stack. */
#pragma once

#include "acl.h"
#include "encap.h"
#include "select.h"

/* More than eight relays' headers, a packet's own and those of a tunnel in it. */
enum { MOST_HEADERS = 320 };

/* How long a packet is on the wire; of a large one its segments, which behind
 * headers that are not looked into are as long as may be. */
static __always_inline __u32 longest(struct __sk_buff *skb, const struct iphdr *ip)
{
	__u8 offset;

	if (!skb->gso_size)
		return bpf_ntohs(ip->tot_len);
	if (ip->protocol != IPPROTO_TCP || bpf_skb_load_bytes(skb, ETH_HLEN + IPH + 12, &offset, 1))
		return skb->gso_size + MOST_HEADERS;
	return skb->gso_size + IPH + (offset >> 4 << 2);
}

/* Whether the stack would send a packet on if it has a route: it is for one
 * node, of one that is neither nobody nor this one, not late, and as it was
 * sent. */
static __always_inline bool goes_on(const struct __sk_buff *skb, const struct iphdr *ip)
{
	__u32 length = bpf_ntohs(ip->tot_len);

	if (*(const __u8 *)ip != 0x45 || ip->ttl <= 1 || !ip4_intact(ip) || length < IPH || (!skb->gso_size && length + ETH_HLEN != skb->len))
		return false;
	return ip4_is_ordinary(ip->saddr) && ip4_is_ordinary(ip->daddr) && !is_local(ip->saddr);
}

/* Nobody but the routing would see a packet in the stack. */
static __always_inline bool is_free(struct __sk_buff *skb)
{
	struct net_device *dev = device_of(skb);
	struct net *net = dev->nd_net.net;

	return !hooked4(net, dev) && !filters4(net, dev) && !classified(dev) && !chooses_deep(net);
}

/* Looks up where a flow goes, by the kernel's own routes and neighbours, and who
 * is next there; false: the stack must see it. */
static __always_inline bool learn(struct __sk_buff *skb, const struct flow_key *k, struct hop *h, __u64 tick, struct bpf_redir_neigh *next)
{
	struct bpf_fib_lookup to = {
		.family = AF_INET, .ifindex = skb->ifindex,
		.l4_protocol = k->protocol, .sport = k->ports, .dport = k->ports >> 16, /* equal-cost paths may be chosen by them */
		.tot_len = 1, .ipv4_src = k->source, .ipv4_dst = k->target,
	};

	*(__u8 *)&to.flowinfo = k->protocol >> 8;
	h->tick = 0;
	if (bpf_fib_lookup(skb, &to, sizeof(to), 0) != BPF_FIB_LKUP_RET_SUCCESS || to.family != AF_INET)
		return false;
	h->key = *k;
	h->from = skb->ifindex;
	h->to = to.ifindex;
	h->mtu = to.tot_len; /* now the route's */
	__builtin_memcpy(h->target, to.dmac, 6);
	__builtin_memcpy(h->source, to.smac, 6);
	h->tick = tick;
	next->nh_family = to.family;
	next->ipv4_nh = to.ipv4_dst;
	return true;
}

/* Sends a packet to its next hop past the stack, if it may. The first of a flow in
 * each tick is sent by its neighbour's entry, which is so kept true. What does
 * not simply go on, the stack has: TCX_NEXT. */
static __always_inline int forward(struct __sk_buff *skb)
{
	/* The stack's rt_tos2priority(), by two bits of tos. */
	const __u32 priorities = 0x4620;
	const struct state *state = state_of();
	struct bpf_redir_neigh next = {};
	__u64 tick = bpf_jiffies64();
	struct flow_key k = {};
	struct iphdr *ip;
	struct hop *h;
	void *data;
	__u32 at;

	if (!state || state->shortcut == SHORTCUT_NEVER || skb->pkt_type != PACKET_HOST)
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH + 4);
	if (!data)
		return TCX_NEXT;
	ip = data + ETH_HLEN;
	if (!goes_on(skb, ip))
		return TCX_NEXT;
	k.source = ip->saddr;
	k.target = ip->daddr;
	k.protocol = ip->protocol | (__u32)(ip->tos & 0xfc) << 8;
	k.ports = ports_of(ip);
	at = hash_of(&k) & (CACHED_FLOWS - 1);
	h = bpf_map_lookup_elem(&hops, &at);
	if (!h)
		return TCX_NEXT;
	if (h->tick != tick || h->from != skb->ifindex || !same_flow(&h->key, &k)) {
		if (!(state->shortcut == SHORTCUT_ALWAYS || is_free(skb)) || !learn(skb, &k, h, tick, &next))
			return TCX_NEXT;
	}
	if (longest(skb, ip) > h->mtu)
		return TCX_NEXT;
	skb->priority = priorities >> (ip->tos >> 3 & 3) * 4 & 15;
	ip4_decrease_ttl(ip);
	if (next.nh_family)
		return bpf_redirect_neigh(h->to, &next, sizeof(next), 0);
	mac_copy(data, h->target);
	mac_copy(data + 6, h->source);
	return bpf_redirect(h->to, 0);
}
