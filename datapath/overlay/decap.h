/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Receiving: outer headers checked and taken off, the inner packet handed over. */
#pragma once

#include "inner.h"

/* What the outer headers say. */
struct outer {
	struct in6_addr from, to;
	__u32 at;      /* of what follows the IP header */
	__u32 size;    /* of the packet by its IP header, with Ethernet */
	__u16 port;    /* UDP source, host order */
	__u8 protocol;
	__u8 tos;
	bool damaged;
};

/* Reads an outer IPv4 or IPv6 header; false: none that could be a tunnel's. */
static __always_inline bool read_outer(struct __sk_buff *skb, struct outer *o)
{
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		void *data = reach(skb, ETH_HLEN + sizeof(struct iphdr));

		if (!data)
			return false;
		struct iphdr *ip = data + ETH_HLEN;

		if (ip->frag_off & bpf_htons(IP_OFFSET))
			return false; /* the stack puts it together, to no avail */
		o->from.u6_addr32[3] = ip->saddr;
		o->to.u6_addr32[3] = ip->daddr;
		o->at = ETH_HLEN + sizeof(*ip);
		o->size = ETH_HLEN + bpf_ntohs(ip->tot_len);
		o->protocol = ip->protocol;
		o->tos = ip->tos;
		o->damaged = *(__u8 *)ip != 0x45 || ip->frag_off & bpf_htons(IP_MF) || !ip4_intact(ip);
		return true;
	}
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		void *data = reach(skb, ETH_HLEN + sizeof(struct ipv6hdr));

		if (!data)
			return false;
		struct ipv6hdr *ip = data + ETH_HLEN;

		o->from = ip->saddr;
		o->to = ip->daddr;
		o->at = ETH_HLEN + sizeof(*ip);
		o->size = ETH_HLEN + sizeof(*ip) + bpf_ntohs(ip->payload_len);
		o->protocol = ip->nexthdr;
		o->tos = ip6_tos(ip);
		o->damaged = *(__u8 *)ip >> 4 != 6;
		return true;
	}
	return false;
}

static __always_inline bool ours(const struct outer *o)
{
	struct in6_addr to = o->to;

	return bpf_map_lookup_elem(&locals, &to) != NULL;
}

/* A refusal counts only for packets to an address of ours: others', that pass
 * this host, are no business of the overlay's. */
static __always_inline int refuse(const struct outer *o, enum drop why)
{
	return ours(o) ? drop(0, why) : TCX_NEXT;
}

/* A number for a sender, for tunnels that carry none: exact for IPv4. */
static __always_inline __u32 number(const struct in6_addr *a)
{
	const __u32 *w = a->u6_addr32;

	if (!(w[0] | w[1] | w[2]))
		return w[3];
	return mix(both(w[0], w[1]) ^ both(w[2], w[3]) * HASH_A, 0, 6);
}

/* The inner packet's IPv4 or IPv6 header takes over a congestion mark of the
 * outer one (RFC 6040, figure 4); false: it must be dropped. */
static __always_inline bool take_mark(struct __sk_buff *skb, __be16 type, __u8 outer)
{
	outer &= ECN_MASK;
	if (type == bpf_htons(ETH_P_IP)) {
		void *data = reach(skb, ETH_HLEN + sizeof(struct iphdr));

		if (!data)
			return true;
		struct iphdr *ip = data + ETH_HLEN;
		__u8 ecn = ip->tos & ECN_MASK;

		if (outer == ECN_CE && ecn == ECN_NOT_ECT)
			return false;
		if (outer == ECN_CE || (outer == ECN_ECT_1 && ecn == ECN_ECT_0))
			ip4_set_tos(ip, (ip->tos & ~ECN_MASK) | outer);
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		void *data = reach(skb, ETH_HLEN + sizeof(struct ipv6hdr));

		if (!data)
			return true;
		struct ipv6hdr *ip = data + ETH_HLEN;
		__u8 tos = ip6_tos(ip), ecn = tos & ECN_MASK;

		if (outer == ECN_CE && ecn == ECN_NOT_ECT)
			return false;
		if (outer == ECN_CE || (outer == ECN_ECT_1 && ecn == ECN_ECT_0))
			ip6_set_tos(ip, (tos & ~ECN_MASK) | outer);
	}
	return true;
}

/* Hands the inner packet over. A packet that was not IP still passes for IP
 * with the kernel, so it takes the longer way on which its type is read. */
static __always_inline int deliver(struct __sk_buff *skb, const struct tunnel_end *t, __be16 type)
{
	bool ip = type == bpf_htons(ETH_P_IP) || type == bpf_htons(ETH_P_IPV6);

	if (t->deliver == DELIVER_INGRESS) {
		skb->mark = t->mark;
		return bpf_redirect(t->target, BPF_F_INGRESS);
	}
	if (unlikely(!ip)) {
		skb->mark = t->mark | MARK_INBOUND;
		return bpf_redirect(t->target, BPF_F_INGRESS);
	}
	skb->mark = t->mark;
	return bpf_redirect_peer(t->target, 0);
}

/* Counts the inner packet and hands it over. */
static __always_inline int received(struct __sk_buff *skb, const struct tunnel_end *t, __be16 type, __u32 segments)
{
	struct counts *c = bpf_map_lookup_elem(&hits, &t->slot);

	if (c) {
		c->received += segments;
		c->received_bytes += skb->len;
	}
	return deliver(skb, t, type);
}

/* Takes n bytes off behind the Ethernet header, and says what is there then. */
static __always_inline bool strip(struct __sk_buff *skb, __u32 n, __be16 type)
{
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO;

	if (type == bpf_htons(ETH_P_IPV6))
		flags |= BPF_F_ADJ_ROOM_DECAP_L3_IPV6;
	else if (type == bpf_htons(ETH_P_IP))
		flags |= BPF_F_ADJ_ROOM_DECAP_L3_IPV4;
	return bpf_skb_adjust_room(skb, -(__s32)n, BPF_ADJ_ROOM_MAC, flags) == 0;
}

/* The type of what is behind a tunnel header for IP; 0: neither. */
static __always_inline __be16 type_of(const struct __sk_buff *skb, __u32 at, __u8 version)
{
	__u8 first = 0;

	if (bpf_skb_load_bytes(skb, at, &first, 1) || (version && first >> 4 != version))
		return 0;
	if (first >> 4 == 4)
		return bpf_htons(ETH_P_IP);
	return first >> 4 == 6 ? bpf_htons(ETH_P_IPV6) : 0;
}

/* Whether an inner frame is of datagrams to be cut later. Those the kernel must
 * take the headers off: strip() leaves a large packet known as encapsulated,
 * and a socket that wants its datagrams one by one could not have them cut. */
static __always_inline bool needs_decap(struct __sk_buff *skb, __u32 at, __be16 type)
{
	__u8 next = 0;

	if (type == bpf_htons(ETH_P_IP))
		bpf_skb_load_bytes(skb, at + ETH_HLEN + offsetof(struct iphdr, protocol), &next, 1);
	else if (type == bpf_htons(ETH_P_IPV6))
		bpf_skb_load_bytes(skb, at + ETH_HLEN + offsetof(struct ipv6hdr, nexthdr), &next, 1);
	return next == IPPROTO_UDP;
}

/* Sends a checked VXLAN packet by the host's stack to the decap device; its mark
 * says that it was checked. */
static __always_inline int to_decap(struct __sk_buff *skb, const struct outer *o, const struct tunnel_end *t)
{
	__u32 zero = 0, *decap = bpf_map_lookup_elem(&decap_port, &zero);
	__u16 port = decap ? *decap : 0;

	if (!port || bpf_skb_store_bytes(skb, o->at + offsetof(struct udphdr, dest), &port, 2, 0))
		return drop(t->slot, DROP_REFUSED);
	skb->mark = MARK_DECAP | t->mark;
	return TCX_NEXT;
}

/* Whether an address is that of the other end, or of one of them. */
static __always_inline bool may_send(const struct tunnel_end *t, __u64 key, const struct in6_addr *from)
{
	struct sender s = { key, *from };

	return unlikely(t->many) ? bpf_map_lookup_elem(&senders, &s) != NULL : ip6_equal(&t->remote, from);
}

/* Whether a packet is of IPsec: ESP, or ESP behind UDP (RFC 3948). */
static __always_inline bool is_sealed(const struct outer *o, const struct udphdr *udp)
{
	return o->protocol == IPPROTO_ESP || (o->protocol == IPPROTO_UDP && udp->dest == bpf_htons(PORT_ESP));
}

/* Marks such a packet for overlay_stacked, where tunnels by the host's stack end. One
 * that has a mark already keeps it. */
static __always_inline void leave_sealed(struct __sk_buff *skb, const struct outer *o)
{
	__u32 zero = 0, *device = bpf_map_lookup_elem(&stack_device, &zero);

	if (device && *device && !skb->mark && ours(o))
		skb->mark = MARK_DECAP;
}

/* Reads who sent a packet whose headers the kernel's VXLAN device took off, and its
 * key of a receiving end. */
static __always_inline bool read_taken_off(struct __sk_buff *skb, struct outer *o, __u64 *key)
{
	struct bpf_tunnel_key k = {};

	if (!bpf_skb_get_tunnel_key(skb, &k, sizeof(k), 0)) {
		o->from.u6_addr32[3] = bpf_htonl(k.remote_ipv4);
		o->to.u6_addr32[3] = bpf_htonl(k.local_ipv4);
	} else if (!bpf_skb_get_tunnel_key(skb, &k, sizeof(k), BPF_F_TUNINFO_IPV6)) {
		__builtin_memcpy(&o->from, k.remote_ipv6, sizeof(o->from));
		__builtin_memcpy(&o->to, k.local_ipv6, sizeof(o->to));
	} else {
		return false;
	}
	*key = (__u64)KIND_STACK << 32 | k.tunnel_id;
	return true;
}

/* Everything behind a valid tunnel header: check the sender, take the headers
 * off, hand over. at is where the inner packet begins. */
static __always_inline int accept(struct __sk_buff *skb, const struct outer *o, __u64 key, __u32 at, const int layer,
				  __u8 version, bool stack)
{
	const struct tunnel_end *t = bpf_map_lookup_elem(&ends, &key);
	struct link_header link;
	__u32 segments = segments_of(skb), take;

	if (unlikely(!t || !ip6_equal(&t->local, &o->to)))
		return refuse(o, DROP_UNKNOWN);
	if (unlikely(!may_send(t, key, &o->from)))
		return drop(t->slot, DROP_SENDER);
	if (unlikely(t->ports && o->port >= t->ports))
		return drop(t->slot, DROP_PORT);
	if (unlikely(t->uplink && t->uplink != skb->ifindex))
		return drop(t->slot, DROP_INTERFACE);
	if (unlikely(stack)) {
		skb->mark = MARK_DECAP;
		return TCX_NEXT;
	}
	if (unlikely(o->size < skb->len)) { /* padding of the wire */
		if (skb->gso_size || bpf_skb_change_tail(skb, o->size, 0))
			return drop(t->slot, DROP_MALFORMED);
	}
	if (layer == 2) {
		if (at + ETH_HLEN > o->size || bpf_skb_load_bytes(skb, at, &link, ETH_HLEN))
			return drop(t->slot, DROP_MALFORMED);
		take = at;
	} else {
		__builtin_memcpy(&link, t->ethernet, sizeof(t->ethernet));
		link.type = type_of(skb, at, version);
		if (!link.type)
			return drop(t->slot, DROP_MALFORMED);
		take = at - ETH_HLEN;
	}
	if (unlikely(skb->gso_size) && layer == 2 && key >> 32 == KIND_VXLAN && needs_decap(skb, at, link.type))
		return to_decap(skb, o, t);
	if (unlikely(!strip(skb, take, link.type)))
		return drop(t->slot, DROP_MALFORMED);
	if (unlikely((o->tos & ECN_MASK) == ECN_CE || (o->tos & ECN_MASK) == ECN_ECT_1) && !take_mark(skb, link.type, o->tos))
		return drop(t->slot, DROP_CONGESTED);
	void *data = reach(skb, ETH_HLEN);
	if (!data)
		return drop(t->slot, DROP_REFUSED);
	write_link(data, &link);
	return received(skb, t, link.type, segments);
}

/* VXLAN, the protocol of leases: constants instead of a row. */
static __always_inline int accept_vxlan(struct __sk_buff *skb, struct outer *o, const int at)
{
	const int inner = at + sizeof(struct udphdr) + 8;

	const void *data = reach(skb, inner);
	if (!data)
		return refuse(o, DROP_MALFORMED);
	const struct udphdr *udp = data + at;
	const __be32 *vxlan = (const void *)(udp + 1);
	__u64 key = (__u64)KIND_VXLAN << 32 | bpf_ntohl(vxlan[1]) >> 8;

	if (vxlan[0] != bpf_htonl(0x08000000) || vxlan[1] & bpf_htonl(0xff) ||
	    bpf_ntohs(udp->len) != o->size - at || o->size > skb->len)
		return refuse(o, DROP_MALFORMED);
	o->port = bpf_ntohs(udp->source);
	return accept(skb, o, key, inner, 2, 0, false);
}

/* Any protocol that has a row. */
static __always_inline int accept_any(struct __sk_buff *skb, struct outer *o, const struct format *f)
{
	__u32 at = o->at + f->udp, inner = at + f->length;
	__be32 word = 0;
	__u64 key;

	if (f->length >= 4 && (bpf_skb_load_bytes(skb, at, &word, 4) || (word & f->mask) != f->match))
		return refuse(o, DROP_MALFORMED);
	if (f->vary_at != 0xff) {
		__u8 units = 0;

		if (bpf_skb_load_bytes(skb, at + f->vary_at, &units, 1))
			return refuse(o, DROP_MALFORMED);
		units &= f->vary_mask;
		if (units < f->vary_less)
			return refuse(o, DROP_MALFORMED);
		inner += (units - f->vary_less) * 4;
	}
	if (f->id_at != 0xff) {
		if (bpf_skb_load_bytes(skb, at + f->id_at, &word, 4))
			return refuse(o, DROP_MALFORMED);
		key = (__u64)f->kind << 32 | bpf_ntohl(word) >> (f->id_shift & 31);
	} else {
		key = (__u64)f->kind << 32 | number(&o->from);
	}
	__u8 byte = 0, version = f->version;
	if (f->check_at != 0xff && (bpf_skb_load_bytes(skb, at + f->check_at, &byte, 1) || byte != f->check))
		return refuse(o, DROP_MALFORMED);
	if (f->next_at != 0xff) {
		if (bpf_skb_load_bytes(skb, at + f->next_at, &byte, 1))
			return refuse(o, DROP_MALFORMED);
		version = byte == IPPROTO_IPIP ? 4 : byte == IPPROTO_IPV6 ? 6 : 0xff;
	}
	if (inner >= o->size)
		return refuse(o, DROP_MALFORMED);
	return f->layer == 2 ? accept(skb, o, key, inner, 2, 0, f->stack) : accept(skb, o, key, inner, 3, version, false);
}
