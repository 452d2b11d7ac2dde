/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions that are programs: what they change in a packet. */
#pragma once

#include "steer.h"

static __always_inline void *table_of(__u32 function) { return bpf_map_lookup_elem(&conns, &function); }

static __always_inline __u32 l4_check(const struct flow *f)
{
	return f->at + (f->proto == IPPROTO_TCP ? 16 : 6);
}

/* Writes a port at an offset of the header behind IP, and mends its checksum. */
static __always_inline bool write_port(struct __sk_buff *skb, const struct flow *f, __u32 offset, __u16 was, __u16 is)
{
	__be16 old = bpf_htons(was), now = bpf_htons(is);
	__u64 udp = f->proto == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
	__u32 check = f->proto == IPPROTO_ICMP ? f->at + 2 : l4_check(f);

	if (was == is)
		return true;
	if (bpf_l4_csum_replace(skb, check, old, now, udp | 2))
		return false;
	return bpf_skb_store_bytes(skb, f->at + offset, &now, 2, 0) == 0;
}

/* Writes an IPv4 address at an offset of the IP header, and mends the checksums. */
static __always_inline bool write_address(struct __sk_buff *skb, const struct flow *f, __u32 offset, __be32 was, __be32 is)
{
	__u64 udp = f->proto == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;

	if ((f->proto == IPPROTO_TCP || f->proto == IPPROTO_UDP) && !f->fragment &&
	    bpf_l4_csum_replace(skb, l4_check(f), was, is, udp | BPF_F_PSEUDO_HDR | 4))
		return false;
	if (bpf_l3_csum_replace(skb, f->ip + 10, was, is, 4))
		return false;
	return bpf_skb_store_bytes(skb, f->ip + offset, &is, 4, 0) == 0;
}

enum { SOURCE = 12, DESTINATION = 16 };

/* Where the port of an address is: an echo has its number in one place. */
static __always_inline __u32 port_at(const struct flow *f, __u32 address)
{
	if (f->proto == IPPROTO_ICMP)
		return 4;
	return address == SOURCE ? 0 : 2;
}

static __always_inline bool rewrite(struct __sk_buff *skb, const struct flow *f, __u32 address, __be32 was, __be32 is,
				    __u16 port_was, __u16 port_is)
{
	return write_port(skb, f, port_at(f, address), port_was, port_is) && write_address(skb, f, address, was, is);
}

static __always_inline void key_of(struct conn_key *k, const struct flow *f, __u8 kind, __u32 device)
{
	__builtin_memset(k, 0, sizeof(*k));
	k->from[0] = f->from[0];
	k->from[1] = f->from[1];
	k->to[0] = f->to[0];
	k->to[1] = f->to[1];
	k->from_port = f->from_port;
	k->to_port = f->to_port;
	k->proto = f->proto;
	k->kind = kind;
	k->device = device;
}

static __always_inline __u32 hash_of(const struct flow *f)
{
	__u64 h = (f->from[0] ^ f->to[0]) * 0xff51afd7ed558ccdULL;

	h ^= f->from[1] << 32 ^ f->to[1] ^ ((__u64)f->from_port << 24 | (__u64)f->to_port << 8 | f->proto) * 0x9e3779b97f4a7c15ULL;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 32;
	return h * 0xc4ceb9fe1a85ec53ULL >> 32;
}

/* What NAT and balancers can work on: whole IPv4 packets with ports, and echoes. */
static __always_inline bool has_flow(const struct flow *f)
{
	return f->family == 4 && !f->bad && (f->ports || f->from_port) && f->proto != 132 /* SCTP sums by CRC */;
}

enum { TRIES = 16 };

/* Finds a free port for a flow, and remembers the way back. */
static __always_inline bool lease_port(void *table, const struct nat *n, const struct flow *f, struct conn *out)
{
	__u32 h = hash_of(f), span = (__u32)n->high - n->low + 1;
	struct conn in = { .address = f->from[1], .port = f->from_port };
	struct conn_key back;

	if (!n->number || !span)
		return false;
	__builtin_memset(&back, 0, sizeof(back));
	back.from[1] = f->to[1];
	back.from_port = f->to_port;
	back.proto = f->proto;
	back.kind = CONN_IN;
	/* All flows of one source get one address (RFC 4787, REQ-2). */
	out->address = bpf_htonl(n->first + ((__u32)f->from[1] * 0x9e3779b1U >> 8) % n->number);
	back.to[1] = out->address;
	for (int i = 0; i < TRIES; i++) {
		out->port = n->low + (h + i * 0x9e37U) % span;
		back.to_port = out->port;
		if (f->proto == IPPROTO_ICMP)
			back.from_port = out->port;
		if (!bpf_map_update_elem(table, &back, &in, BPF_NOEXIST))
			return true;
	}
	return false;
}

static __always_inline int nat_out(struct __sk_buff *skb, struct walk *w, const struct nat *n, void *table, struct flow *f)
{
	struct conn_key k;
	struct conn fresh = {}, *c;

	key_of(&k, f, CONN_OUT, 0);
	c = bpf_map_lookup_elem(table, &k);
	if (!c) {
		if (!lease_port(table, n, f, &fresh))
			return drop(w->hop.slot, DROP_NO_PORT);
		bpf_map_update_elem(table, &k, &fresh, BPF_ANY);
	} else {
		fresh.address = c->address;
		fresh.port = c->port;
	}
	w->parsed = 0;
	if (!rewrite(skb, f, SOURCE, f->from[1], fresh.address, f->from_port, fresh.port))
		return drop(w->hop.slot, DROP_REFUSED);
	return next_hop(skb, w);
}

static __always_inline int nat_in(struct __sk_buff *skb, struct walk *w, void *table, struct flow *f)
{
	struct conn_key k;
	struct conn *c;

	key_of(&k, f, CONN_IN, 0);
	c = bpf_map_lookup_elem(table, &k);
	if (!c)
		return drop(w->hop.slot, DROP_NO_STATE);
	w->parsed = 0;
	if (!rewrite(skb, f, DESTINATION, f->to[1], c->address, f->to_port, c->port))
		return drop(w->hop.slot, DROP_REFUSED);
	return next_hop(skb, w);
}

static __always_inline __u64 choice_of(const struct flow *f) { return (__u64)hash_of(f) * CHOICES >> 32; }

/* The backend with an address; BACKENDS: it is gone. */
static __always_inline __u32 backend_of(const struct balancer *b, const struct conn *c)
{
	if (c->backend < BACKENDS && b->backends[c->backend].address == c->address)
		return c->backend;
	for (__u32 i = 0; i < BACKENDS; i++) {
		if (i >= b->count)
			break;
		if (b->backends[i].address == c->address)
			return i;
	}
	return BACKENDS;
}

/* The backend of a flow: the one that it has, if that is up, or the table's. */
static __always_inline const struct backend *choose(const struct balancer *b, void *table, const struct flow *f)
{
	struct conn_key k;
	struct conn fresh = {}, *c;
	__u32 n = BACKENDS;

	key_of(&k, f, CONN_BACKEND, 0);
	c = bpf_map_lookup_elem(table, &k);
	if (c)
		n = backend_of(b, c);
	if (n < BACKENDS && !b->backends[n].down)
		return &b->backends[n];
	n = b->choices[choice_of(f)];
	if (n >= BACKENDS || b->backends[n].down)
		return NULL;
	fresh.backend = n;
	fresh.address = b->backends[n].address;
	bpf_map_update_elem(table, &k, &fresh, BPF_ANY);
	return &b->backends[n];
}

static __always_inline int balance(struct __sk_buff *skb, struct walk *w, const struct balancer *b, void *table, struct flow *f)
{
	const struct backend *to = choose(b, table, f);
	struct backend chosen;

	if (!to)
		return drop(w->hop.slot, DROP_NO_BACKEND);
	chosen = *to;
	w->parsed = 0;
	if (!rewrite(skb, f, DESTINATION, f->to[1], chosen.address, f->to_port, b->target ? b->target : f->to_port) ||
	    (chosen.writes && bpf_skb_store_bytes(skb, 0, chosen.mac, ETH_ALEN, 0)))
		return drop(w->hop.slot, DROP_REFUSED);
	if (!chosen.at)
		return next_hop(skb, w);
	w->at = chosen.at - w->hop.below;
	return steer(skb, w);
}

/* The port of the service for which a backend answers. */
static __always_inline __u16 served_by(const struct balancer *b, const struct flow *f)
{
	return b->target && f->from_port == b->target ? b->port : f->from_port;
}

/* Whether a packet answers one of a flow that the backend has. */
static __always_inline bool answers(const struct balancer *b, void *table, const struct flow *f)
{
	struct conn_key k;
	struct conn *c;

	__builtin_memset(&k, 0, sizeof(k));
	k.from[1] = f->to[1];
	k.to[1] = b->address;
	k.from_port = f->to_port;
	k.to_port = served_by(b, f);
	k.proto = f->proto;
	k.kind = CONN_BACKEND;
	c = bpf_map_lookup_elem(table, &k);
	return c && c->address == (__u32)f->from[1];
}
