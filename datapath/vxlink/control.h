/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is control in band of OpenFlow switches, as openflow/inband's Filter says:
 * TCP to and from the address and port of a controller, and ARP and neighbour
 * discovery about its address or that of a gateway; nothing with a VLAN tag. */
#pragma once

enum { ND_SOLICIT = 135, ND_ADVERTISE = 136 };

/* Whether an address is one of the list, with a port: 0 is any of them. */
static __always_inline bool is_listed(const struct controllers *c, const struct in6_addr *a, __be16 port)
{
	for (__u32 i = 0; i < CONTROLS && i < c->count; i++)
		if (ip6_equal(a, &c->list[i].address) && (!port || port == c->list[i].port))
			return true;
	return false;
}

static __always_inline void from_ipv4(struct in6_addr *a, const void *bytes)
{
	__u32 *w = (void *)a;

	w[0] = w[1] = 0;
	w[2] = bpf_htonl(0xffff);
	__builtin_memcpy(w + 3, bytes, 4);
}

/* Who sent a packet and to whom; ports are 0 where addresses alone decide. */
struct talk {
	struct in6_addr from, to;
	__be16 ports[2];
	bool segment; /* of TCP */
};

static __always_inline bool talk_arp(struct __sk_buff *skb, struct talk *t)
{
	__u8 b[28];

	if (bpf_skb_load_bytes(skb, ETH_HLEN, b, sizeof(b)))
		return false;
	from_ipv4(&t->from, b + 14);
	from_ipv4(&t->to, b + 24);
	return true;
}

/* The ports, of a segment whose header is whole. */
static __always_inline bool talk_tcp(struct __sk_buff *skb, struct talk *t, __u32 at)
{
	__be16 b[10];

	t->segment = true;
	if (bpf_skb_load_bytes(skb, at, b, sizeof(b)))
		return false;
	t->ports[0] = b[0];
	t->ports[1] = b[1];
	return true;
}

static __always_inline bool talk_ipv4(struct __sk_buff *skb, struct talk *t)
{
	__u8 b[20];
	__u32 length;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, b, sizeof(b)) || b[9] != IPPROTO_TCP || (b[6] & 0x1f) || b[7])
		return false;
	length = (b[0] & 15) * 4;
	if (length < sizeof(b))
		return false;
	from_ipv4(&t->from, b + 12);
	from_ipv4(&t->to, b + 16);
	return talk_tcp(skb, t, ETH_HLEN + length);
}

static __always_inline bool talk_ipv6(struct __sk_buff *skb, struct talk *t, struct in6_addr *about)
{
	__u8 b[40], nd[24];

	if (bpf_skb_load_bytes(skb, ETH_HLEN, b, sizeof(b)))
		return false;
	__builtin_memcpy(&t->from, b + 8, 16);
	__builtin_memcpy(&t->to, b + 24, 16);
	if (b[6] == IPPROTO_TCP)
		return talk_tcp(skb, t, ETH_HLEN + sizeof(b));
	if (b[6] != IPPROTO_ICMPV6 || bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(b), nd, sizeof(nd)))
		return false;
	__builtin_memcpy(about, nd + 8, 16);
	return nd[0] == ND_SOLICIT || nd[0] == ND_ADVERTISE;
}

/* Whether a frame that entered by a slot's end is control. A function of its own, so
 * that each program has it once. */
static __noinline bool is_control(struct __sk_buff *skb, __u32 slot)
{
	const struct controllers *c = bpf_map_lookup_elem(&controls, &slot);
	struct talk t = {};
	struct in6_addr about = {};
	bool read = false;

	if (!c || skb->vlan_present)
		return false;
	__be16 type;

	if (bpf_skb_load_bytes(skb, 12, &type, sizeof(type)))
		return false;
	if (type == bpf_htons(ETH_P_ARP))
		read = talk_arp(skb, &t);
	else if (type == bpf_htons(ETH_P_IP))
		read = talk_ipv4(skb, &t);
	else if (type == bpf_htons(ETH_P_IPV6))
		read = talk_ipv6(skb, &t, &about);
	if (!read)
		return false;
	if (t.segment)
		return (t.ports[0] && is_listed(c, &t.from, t.ports[0])) || (t.ports[1] && is_listed(c, &t.to, t.ports[1]));
	return is_listed(c, &t.from, 0) || is_listed(c, &t.to, 0) || is_listed(c, &about, 0);
}
