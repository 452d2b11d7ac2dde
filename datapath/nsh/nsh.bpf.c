//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Service chains (RFC 7665) with the Network Service Header (RFC 8300). A frame
 * that a classifier takes is led from hop to hop by path and index: each kind of
 * hop is a program that is called (bpf_tail_call). Linux ends after 33 calls; a
 * chain's hops on one host are fewer. The header is in the packet only where
 * something else reads it: on the wire, and at functions that know it.
 */
#include "functions.h"
#include "too_big.h"

LICENSE;

/* ---- where packets begin ---- */

/* On a port's device in the fabric, in front of the link's program. */
SEC("tc")
int nsh_classify(struct __sk_buff *skb)
{
	__u32 index = skb->ifindex;
	const struct rules *all = bpf_map_lookup_elem(&classifiers, &index);
	struct walk *w = walk_of();
	const struct rule *r;

	if (!all || !w)
		return TCX_NEXT;
	read_flow(skb, &w->flow);
	if (!w->flow.family || w->flow.bad || w->flow.discovers)
		return TCX_NEXT;
	r = find(all, &w->flow, true);
	if (!r)
		return TCX_NEXT;
	begin(w, r->at, r->typed);
	w->entry = index;
	w->parsed = 1;
	return steer(skb, w);
}

/* What the outer headers of a packet from another host say. */
struct outer {
	struct in6_addr to;
	struct sender sender;
	__u32 at;   /* of NSH */
	__u32 size; /* of the packet by its IP header, with Ethernet */
	__u16 port;
} __attribute__((aligned(8)));

/* Reads outer headers; false: not NSH's. */
static __always_inline bool read_outer(struct __sk_buff *skb, struct outer *o)
{
	struct udphdr udp;
	struct iphdr ip4;
	struct ipv6hdr ip6;

	__builtin_memset(o, 0, sizeof(*o));
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip4, sizeof(ip4)) || ip4.protocol != IPPROTO_UDP ||
		    *(__u8 *)&ip4 != 0x45 || ip4.frag_off & bpf_htons(IP_OFFSET | IP_MF))
			return false;
		o->sender.from.u6_addr32[3] = ip4.saddr;
		o->to.u6_addr32[3] = ip4.daddr;
		o->at = ETH_HLEN + sizeof(ip4);
		o->size = ETH_HLEN + bpf_ntohs(ip4.tot_len);
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip6, sizeof(ip6)) || ip6.nexthdr != IPPROTO_UDP)
			return false;
		o->sender.from = ip6.saddr;
		o->to = ip6.daddr;
		o->at = ETH_HLEN + sizeof(ip6);
		o->size = o->at + bpf_ntohs(ip6.payload_len);
	} else {
		return false;
	}
	if (bpf_skb_load_bytes(skb, o->at, &udp, sizeof(udp)))
		return false;
	o->port = bpf_ntohs(udp.source);
	o->at += sizeof(udp);
	if (udp.dest == bpf_htons(PORT_NSH))
		return true;
	__be32 gpe = 0;
	if (udp.dest != bpf_htons(PORT_VXLAN_GPE) || bpf_skb_load_bytes(skb, o->at, &gpe, 4) || gpe != bpf_htonl(0x0c000004))
		return false;
	o->at += 8;
	return true;
}

/* On the host's interface: a packet of another host. */
SEC("tc")
int nsh_rx(struct __sk_buff *skb)
{
	struct outer o;
	__be32 words[2];
	__u32 number;

	if (!read_outer(skb, &o) || !bpf_map_lookup_elem(&locals, &o.to))
		return TCX_NEXT;
	if (bpf_skb_load_bytes(skb, o.at, words, sizeof(words)) || o.size > skb->len)
		return drop(0, DROP_MALFORMED);
	number = bpf_ntohl(words[1]) >> 8;
	const struct path *path = bpf_map_lookup_elem(&paths, &number);
	if (!path)
		return drop(0, DROP_UNKNOWN_PATH);
	number = o.sender.plane = path->plane;
	const struct plane *p = bpf_map_lookup_elem(&planes, &number);
	if (!p)
		return drop(0, DROP_UNKNOWN_PATH);
	if (!ip6_equal(&p->local, &o.to) || !bpf_map_lookup_elem(&senders, &o.sender) ||
	    (o.port >= PORT_USER && !(p->compat && o.port == PORT_NSH_SOURCE)))
		return drop(p->slot, DROP_SENDER);
	if (o.size < skb->len && (skb->gso_size || bpf_skb_change_tail(skb, o.size, 0))) /* padding of the wire */
		return drop(p->slot, DROP_MALFORMED);
	skb->mark = 0;
	return bpf_redirect_peer(p->device, 0);
}

/* A packet with a header at an offset, which goes on in this plane. */
static __always_inline int resume(struct __sk_buff *skb, struct walk *w, __u32 at)
{
	const struct plane *p;
	bool intact = read_nsh(skb, w, at);

	p = plane_of(w->at);
	if (!intact)
		return drop(p ? p->slot : 0, DROP_MALFORMED);
	if (unlikely(w->base & NSH_O) && !(p && p->oam))
		return drop(p ? p->slot : 0, DROP_OAM);
	if (!take_off(skb, at + NSH_SIZE + w->context))
		return drop(0, DROP_REFUSED);
	return steer(skb, w);
}

/* In the fabric: what nsh_rx sent there. */
SEC("tc")
int nsh_enter(struct __sk_buff *skb)
{
	struct walk *w = walk_of();
	struct outer o;

	if (!w || !read_outer(skb, &o))
		return drop(0, DROP_MALFORMED);
	return resume(skb, w, o.at);
}

/* The sender of copies by which a dead node is tried, and of probes:
 * 02:53:4c:54:52:59, which no interface has. */
static const __u8 trial[ETH_ALEN] = { 0x02, 0x53, 0x4c, 0x54, 0x52, 0x59 };

static __always_inline bool is_trial(const __u8 *mac)
{
	for (int i = 0; i < ETH_ALEN; i++)
		if (mac[i] != trial[i])
			return false;
	return true;
}

/* Whether a packet is only a copy, by which a dead node was tried, or a probe. */
static __always_inline bool came_of_trial(struct __sk_buff *skb)
{
	__u8 from[ETH_ALEN];

	return !bpf_skb_load_bytes(skb, ETH_ALEN, from, ETH_ALEN) && is_trial(from);
}

/* A watched node returned a packet. */
static __always_inline void lives_on(__u32 function, bool answers)
{
	struct life *l = bpf_map_lookup_elem(&lives, &function);

	if (!l)
		return;
	if (answers)
		l->answers++;
	if (l->early)
		l->early = 0;
	if (l->late)
		l->late = 0;
	if (unlikely(l->dead))
		l->dead = 0;
}

/* What is remembered of a flow that comes back by a device; NULL: nothing. */
static __always_inline struct conn *memory_of(__u32 function, const struct flow *f, __u32 device)
{
	void *table = table_of(function);
	struct conn_key k;

	if (!table)
		return NULL;
	key_of(&k, f, CONN_NODE, device);
	return bpf_map_lookup_elem(table, &k);
}

#define SECOND 1000000000ULL

/* What tells a packet from others that a node has, and what it leaves as it is: not
 * addresses and checksums. */
static __always_inline __u64 print_of(struct __sk_buff *skb, const struct flow *f)
{
	__u64 w[3] = {};
	__u16 id = 0;

	if (f->family == 4 && bpf_skb_load_bytes(skb, f->ip + 4, &id, 2))
		return 0;
	if (f->proto == IPPROTO_TCP)
		bpf_skb_load_bytes(skb, f->at + 4, w, 12); /* sequence numbers, flags, window */
	else if (bpf_skb_load_bytes(skb, f->at + 8, w, 24)) /* what is sent */
		bpf_skb_load_bytes(skb, f->at + 8, w, 8);
	w[0] = (w[0] ^ id ^ (__u64)f->proto << 32) * 0xff51afd7ed558ccdULL;
	w[0] = (w[0] ^ w[0] >> 32 ^ w[1]) * 0xc4ceb9fe1a85ec53ULL;
	return (w[0] ^ w[0] >> 32 ^ w[2]) * 0xff51afd7ed558ccdULL;
}

/* A timed packet goes into a node; one at a time, and one that is not back after a
 * second is given up. */
static __always_inline void watch(struct __sk_buff *skb, struct walk *w)
{
	struct probe now = { .since = w->since }, *was;
	__u32 back = w->hop.back;

	was = bpf_map_lookup_elem(&probes, &back);
	if (was && was->since && now.since - was->since < SECOND)
		return;
	now.print = print_of(skb, flow_of(skb, w));
	bpf_map_update_elem(&probes, &back, &now, BPF_ANY);
}

/* Whether a packet that comes back by a device is the one that is timed there. */
static __always_inline void watched(struct __sk_buff *skb, const struct flow *f, __u32 device, struct counts *c)
{
	struct probe *p = bpf_map_lookup_elem(&probes, &device);

	if (!p || !p->since || p->print != print_of(skb, f))
		return;
	spent(c, bpf_ktime_get_ns() - p->since);
	p->since = 0;
}

/* What a function that knows NSH returns says itself where it goes on: behind the
 * function, on a path that leads through it. */
static __always_inline int resume_aware(struct __sk_buff *skb, struct walk *w, const struct side *side)
{
	__u32 number = side->plane, before;
	const struct plane *p = bpf_map_lookup_elem(&planes, &number);
	__be16 type;

	if (!p)
		return TCX_DROP;
	if (skb->protocol != bpf_htons(ETH_P_NSH)) /* its own kernel's */
		return skb->protocol == bpf_htons(ETH_P_IP) || skb->protocol == bpf_htons(ETH_P_IPV6) ? drop(side->aware, DROP_UNKNOWN_FLOW) : TCX_NEXT;
	if (skb->vlan_present || !read_nsh(skb, w, ETH_HLEN))
		return drop(side->aware, DROP_MALFORMED);
	number = w->at >> 8;
	const struct path *path = bpf_map_lookup_elem(&paths, &number);
	if (!path || path->plane != side->plane)
		return drop(side->aware, DROP_UNKNOWN_PATH);
	before = w->at + 1;
	const struct hop *h = before & 0xff ? bpf_map_lookup_elem(&hops, &before) : NULL;
	if (!h || h->step != STEP_AWARE || h->function != side->function)
		return drop(side->aware, DROP_WRONG_INDEX);
	__u32 slot = h->slot, head = ETH_HLEN + NSH_SIZE + w->context;
	if (unlikely(w->base & NSH_O) && !p->oam)
		return drop(slot, DROP_OAM);
	if (bpf_skb_load_bytes(skb, head + 12, &type, sizeof(type)))
		return drop(slot, DROP_MALFORMED);
	if (type != bpf_htons(ETH_P_IPV6))
		type = bpf_htons(ETH_P_IP);
	if (!taken_for(skb, type) || !take_off(skb, head))
		return drop(slot, DROP_REFUSED);
	struct counts *counts = bpf_map_lookup_elem(&counters, &slot);
	if (counts)
		counts->returned += segments_of(skb);
	if (side->watched) /* what the node's own kernel sends is not of a chain */
		lives_on(side->function, false);
	return steer(skb, w);
}

/* On the ports of a function: what comes back. */
SEC("tc")
int nsh_return(struct __sk_buff *skb)
{
	__u32 index = skb->ifindex;
	const struct side *side = bpf_map_lookup_elem(&sides, &index);
	struct walk *w = walk_of();
	struct conn *c = NULL;

	if (!side || !w)
		return TCX_NEXT;
	bool alive = side->watched;
	if (alive && came_of_trial(skb)) {
		lives_on(side->function, true);
		return TCX_DROP;
	}
	if (side->aware)
		return resume_aware(skb, w, side);
	w->parsed = 0;
	w->entry = 0;
	take_turn(w);
	struct flow *f = flow_of(skb, w);
	if (!f->family || f->discovers)
		return TCX_NEXT;
	/* While paths come and go packets are in the function that went in by the other rule. */
	__u32 function = side->function;
	bool shared = side->shared;

	if (shared)
		c = memory_of(function, f, index);
	if (!c)
		c = bpf_map_lookup_elem(&memories, &index);
	if (!c && !shared)
		c = memory_of(function, f, index);
	__u32 plane = side->plane;
	const struct plane *p = bpf_map_lookup_elem(&planes, &plane);
	if (!c || f->bad)
		return drop(p ? p->slot : 0, f->bad ? DROP_MALFORMED : DROP_UNKNOWN_FLOW);
	if (alive) /* what the node's own kernel sends is not of a chain */
		lives_on(function, false);
	w->at = c->at;
	w->base = c->base;
	w->context = 0;
	if (NSH_MD(c->base) == 1) {
		w->context = METADATA;
		__builtin_memcpy(w->nsh + NSH_SIZE, c->metadata, METADATA);
	} else if (unlikely(c->typed)) {
		describe(w);
	}
	__u32 slot = c->slot;
	struct counts *counts = bpf_map_lookup_elem(&counters, &slot);
	if (counts) {
		counts->returned += segments_of(skb);
		watched(skb, f, index, counts);
	}
	return next_hop(skb, w);
}

/* ---- where packets pass ---- */

SEC("tc")
int nsh_none(struct __sk_buff *skb)
{
	struct walk *w = walk_of();

	return w ? next_hop(skb, w) : TCX_DROP;
}

SEC("tc")
int nsh_firewall(struct __sk_buff *skb)
{
	struct walk *w = walk_of();
	const struct rules *all;
	const struct rule *r;

	if (!w)
		return TCX_DROP;
	all = bpf_map_lookup_elem(&firewalls, &w->hop.function);
	if (!all)
		return drop(w->hop.slot, DROP_REFUSED);
	const struct flow *f = flow_of(skb, w);
	if (f->bad)
		return drop(w->hop.slot, DROP_MALFORMED);
	r = find(all, f, false);
	if (r ? r->at : all->otherwise)
		return drop(w->hop.slot, DROP_DENIED);
	return next_hop(skb, w);
}

/* Moves what a rule matches to another path; all else goes on. */
SEC("tc")
int nsh_classifier(struct __sk_buff *skb)
{
	struct walk *w = walk_of();
	const struct rules *all;
	const struct rule *r;

	if (!w)
		return TCX_DROP;
	if (w->hop.reverse)
		return next_hop(skb, w);
	all = bpf_map_lookup_elem(&firewalls, &w->hop.function);
	if (!all)
		return drop(w->hop.slot, DROP_REFUSED);
	const struct flow *f = flow_of(skb, w);
	if (f->bad)
		return drop(w->hop.slot, DROP_MALFORMED);
	r = find(all, f, true);
	if (!r || !r->at)
		return next_hop(skb, w);
	struct counts *c = bpf_map_lookup_elem(&counters, &w->hop.slot);
	if (c)
		c->returned += segments_of(skb);
	w->at = r->at;
	return steer(skb, w);
}

SEC("tc")
int nsh_nat(struct __sk_buff *skb)
{
	struct walk *w = walk_of();

	if (!w)
		return TCX_DROP;
	const struct nat *n = bpf_map_lookup_elem(&nats, &w->hop.function);
	void *table = table_of(w->hop.function);
	if (!n || !table)
		return drop(w->hop.slot, DROP_REFUSED);
	struct flow *f = flow_of(skb, w);
	if (!has_flow(f))
		return drop(w->hop.slot, f->fragment ? DROP_FRAGMENT : DROP_NO_STATE);
	return w->hop.reverse ? nat_in(skb, w, table, f) : nat_out(skb, w, n, table, f);
}

SEC("tc")
int nsh_balancer(struct __sk_buff *skb)
{
	struct walk *w = walk_of();

	if (!w)
		return TCX_DROP;
	const struct balancer *b = bpf_map_lookup_elem(&balancers, &w->hop.function);
	void *table = table_of(w->hop.function);
	if (!b || !table)
		return drop(w->hop.slot, DROP_REFUSED);
	struct flow *f = flow_of(skb, w);
	if (f->fragment)
		return drop(w->hop.slot, DROP_FRAGMENT);
	if (!has_flow(f))
		return next_hop(skb, w);
	if (!w->hop.reverse && (__u32)f->to[1] == b->address && (!b->port || (f->ports && f->to_port == b->port)))
		return balance(skb, w, b, table, f);
	if (!w->hop.reverse || !answers(b, table, f))
		return next_hop(skb, w);
	w->parsed = 0;
	if (!rewrite(skb, f, SOURCE, f->from[1], b->address, f->from_port, served_by(b, f)))
		return drop(w->hop.slot, DROP_REFUSED);
	return next_hop(skb, w);
}

/* Takes a frame's bytes out of the bucket; false: they are not there. */
static __always_inline bool take(struct limit *l, __u64 bytes)
{
	__u64 now = bpf_ktime_get_ns(), past;
	bool there;

	bpf_spin_lock(&l->lock);
	past = now > l->last ? now - l->last : 0;
	if (past > SECOND)
		past = SECOND;
	l->last = now;
	l->tokens += past * l->rate;
	if (l->tokens > l->burst * SECOND)
		l->tokens = l->burst * SECOND;
	there = l->tokens >= bytes * SECOND;
	if (there)
		l->tokens -= bytes * SECOND;
	bpf_spin_unlock(&l->lock);
	return there;
}

SEC("tc")
int nsh_limit(struct __sk_buff *skb)
{
	struct walk *w = walk_of();

	if (!w)
		return TCX_DROP;
	struct limit *l = bpf_map_lookup_elem(&limits, &w->hop.function);
	if (!l)
		return drop(w->hop.slot, DROP_REFUSED);
	if (!take(l, skb->len))
		return drop(w->hop.slot, DROP_LIMITED);
	return next_hop(skb, w);
}

/* To the queue of a rate, at the beginning of a path: nsh_shaped gets it back. The mark
 * stays with a packet from one end of a pair to the other in one namespace. */
SEC("tc")
int nsh_shape(struct __sk_buff *skb)
{
	struct walk *w = walk_of();

	if (!w)
		return TCX_DROP;
	skb->mark = w->at;
	skb->priority = w->hop.instead;
	return bpf_redirect(w->hop.device, 0);
}

/* Behind the queue. A row that has changed meanwhile leads on as it is now. */
SEC("tc")
int nsh_shaped(struct __sk_buff *skb)
{
	__u32 at = skb->mark;
	const struct hop *h = bpf_map_lookup_elem(&hops, &at);
	struct walk *w = walk_of();

	if (!w || !h)
		return lost(at);
	__u32 slot = h->slot;
	struct counts *c = bpf_map_lookup_elem(&counters, &slot);
	if (c)
		c->returned += segments_of(skb);
	skb->mark = 0;
	begin(w, at, h->typed);
	w->hop = *h;
	w->entry = h->back;
	w->parsed = 0;
	return next_hop(skb, w);
}

SEC("tc")
int nsh_mirror(struct __sk_buff *skb)
{
	struct walk *w = walk_of();

	if (!w)
		return TCX_DROP;
	skb->mark = 0;
	skb->priority = 0;
	bpf_clone_redirect(skb, w->hop.device, w->hop.enters ? BPF_F_INGRESS : 0);
	return next_hop(skb, w);
}

/* ---- where packets leave ---- */

/* Whether the original frame is ready for a node. */
static __always_inline bool ready(struct __sk_buff *skb, const struct hop *h)
{
	if (h->writes && bpf_skb_store_bytes(skb, 0, h->mac, ETH_ALEN, 0))
		return false;
	skb->mark = 0;
	skb->priority = 0;
	return true;
}

/* The original frame by a device, to a node. */
static __always_inline int leave(struct __sk_buff *skb, const struct hop *h)
{
	return ready(skb, h) ? bpf_redirect(h->device, 0) : drop(h->slot, DROP_REFUSED);
}

/* Past the queue of the device, where the rate of the link beside the chain is held. A
 * frame with its tag inside, which only a receiver finds, takes the device. */
SEC("tc")
int nsh_egress(struct __sk_buff *skb)
{
	struct walk *w = walk_of();
	__be16 type;

	if (!w)
		return TCX_DROP;
	if (unlikely(w->base & NSH_O)) /* it ends here, and is nothing for a node */
		return drop(w->hop.slot, DROP_OAM);
	if (bpf_skb_load_bytes(skb, 12, &type, sizeof(type)) || type != skb->protocol)
		return leave(skb, &w->hop);
	return ready(skb, &w->hop) ? bpf_redirect_peer(w->hop.device, 0) : drop(w->hop.slot, DROP_REFUSED);
}

static __always_inline bool same_memory(const struct conn *a, const struct conn *b)
{
	const __u64 *x = (const void *)a->metadata, *y = (const void *)b->metadata;

	return a->at == b->at && a->base == b->base && a->slot == b->slot && a->typed == b->typed && x[0] == y[0] && x[1] == y[1];
}

/* Remembers where a packet goes on when it comes back. */
static __always_inline bool remember(struct __sk_buff *skb, struct walk *w)
{
	struct conn now = { .at = w->at, .base = w->base, .slot = w->hop.slot }, *was;
	__u32 back = w->hop.back;

	if (NSH_MD(w->base) == 1)
		__builtin_memcpy(now.metadata, w->nsh + NSH_SIZE, METADATA);
	else
		now.base = (w->base & ~(63U << 16)) | 2 << 16; /* what functions put on does not come back */
	now.typed = NSH_MD(w->base) == 2 && w->context;
	if (w->hop.shared) {
		struct conn_key k;
		struct flow *f = flow_of(skb, w);
		void *table = table_of(w->hop.function);

		if (!table || !f->family)
			return false;
		key_of(&k, f, CONN_NODE, back);
		was = bpf_map_lookup_elem(table, &k);
		return (was && same_memory(was, &now)) || !bpf_map_update_elem(table, &k, &now, BPF_ANY);
	}
	was = bpf_map_lookup_elem(&memories, &back);
	return (was && same_memory(was, &now)) || !bpf_map_update_elem(&memories, &back, &now, BPF_ANY);
}

/* Whether a node is dead, for which there is one packet more. */
static __always_inline bool is_dead(struct life *l)
{
	__u64 now;

	if (l->dead)
		return true;
	now = bpf_ktime_get_ns();
	if (now - l->start < l->window) {
		l->late++;
		return false;
	}
	if (l->early >= WAITING) {
		l->dead = 1;
		l->deaths++;
		return true;
	}
	l->early += l->late;
	l->late = 1;
	l->start = now;
	return false;
}

enum { TRIES_IN_WINDOW = 4 };

/* Now and then sends a copy of a packet into a dead node, with another sender. */
static __always_inline void try(struct __sk_buff *skb, const struct hop *h, struct life *l)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 link[2 * ETH_ALEN];

	if ((now - l->tried) * TRIES_IN_WINDOW < l->window || bpf_skb_load_bytes(skb, 0, link, sizeof(link)))
		return;
	l->tried = now;
	if (bpf_skb_store_bytes(skb, ETH_ALEN, trial, ETH_ALEN, 0))
		return;
	if (!h->writes || !bpf_skb_store_bytes(skb, 0, h->mac, ETH_ALEN, 0)) {
		skb->mark = 0;
		skb->priority = 0;
		bpf_clone_redirect(skb, h->device, 0);
	}
	bpf_skb_store_bytes(skb, 0, link, sizeof(link), 0);
}

/* What becomes of a packet for a dead node. */
static __always_inline int past(struct __sk_buff *skb, struct walk *w)
{
	if (w->hop.fails == FAIL_BYPASS)
		return next_hop(skb, w);
	if (w->hop.fails != FAIL_REROUTE)
		return drop(w->hop.slot, DROP_DEAD);
	w->at = w->hop.instead;
	return steer(skb, w);
}

/* To a function that knows no NSH: the original frame; nsh_return gets it back. */
SEC("tc")
int nsh_node(struct __sk_buff *skb)
{
	struct walk *w = walk_of();

	if (!w)
		return TCX_DROP;
	if (w->hop.fails) {
		struct life *l = bpf_map_lookup_elem(&lives, &w->hop.function);

		if (l && is_dead(l)) {
			try(skb, &w->hop, l);
			return past(skb, w);
		}
	}
	if (!remember(skb, w))
		return drop(w->hop.slot, DROP_REFUSED);
	if (unlikely(w->timed))
		watch(skb, w);
	return leave(skb, &w->hop);
}

/* Makes room in front of the whole frame. The kernel takes it for a part of the Ethernet
 * header, and cuts a large segment behind it, where no kernel has to know NSH. A tag that
 * stands beside the packet is put into it first. */
static __always_inline bool room_in_front(struct __sk_buff *skb, __u32 head)
{
	if (unlikely(skb->vlan_present))
		return make_room(skb, head, BPF_F_ADJ_ROOM_FIXED_GSO);
	return !bpf_skb_change_head(skb, head, 0);
}

/* Puts the header in front of the frame, in one of its type. A try has the sender of tries,
 * and room that can be taken off again. */
static __always_inline bool put_in_front(struct __sk_buff *skb, struct walk *w, __u32 head, bool is_try)
{
	struct ethhdr link;

	if (bpf_skb_load_bytes(skb, 0, &link, sizeof(link)) || !(is_try ? make_room(skb, head, 0) : room_in_front(skb, head)))
		return false;
	if (is_try)
		__builtin_memcpy(link.h_source, trial, ETH_ALEN);
	link.h_proto = bpf_htons(ETH_P_NSH);
	return !bpf_skb_store_bytes(skb, 0, &link, sizeof(link), 0) && write_nsh(skb, w, ETH_HLEN);
}

/* As try, with the header, which is taken off again. Large segments are not tried: no kernel
 * could cut them. */
static __always_inline bool try_aware(struct __sk_buff *skb, struct walk *w, __u32 head, struct life *l)
{
	__u64 now = bpf_ktime_get_ns();

	if ((now - l->tried) * TRIES_IN_WINDOW < l->window || skb->gso_size)
		return true;
	l->tried = now;
	if (!put_in_front(skb, w, head, true))
		return false;
	if (!w->hop.writes || !bpf_skb_store_bytes(skb, 0, w->hop.mac, ETH_ALEN, 0)) {
		skb->mark = 0;
		skb->priority = 0;
		bpf_clone_redirect(skb, w->hop.device, 0);
	}
	return take_off(skb, head);
}

/* To a function that knows NSH: the frame behind the header. */
SEC("tc")
int nsh_aware(struct __sk_buff *skb)
{
	struct walk *w = walk_of();
	__u32 head;

	if (!w)
		return TCX_DROP;
	head = ETH_HLEN + NSH_SIZE + w->context;
	if (w->hop.fails) {
		struct life *l = bpf_map_lookup_elem(&lives, &w->hop.function);

		if (l && is_dead(l))
			return try_aware(skb, w, head, l) ? past(skb, w) : drop(w->hop.slot, DROP_REFUSED);
	}
	if (!put_in_front(skb, w, head, false))
		return drop(w->hop.slot, DROP_REFUSED);
	return leave(skb, &w->hop);
}

/* What was led past its path goes on there, or begins to go past it. */
SEC("tc")
int nsh_jump(struct __sk_buff *skb)
{
	struct walk *w = walk_of();

	if (!w)
		return TCX_DROP;
	w->at = w->hop.instead;
	return steer(skb, w);
}

/* Whether the packet, or each it will be cut into, fits. */
static __always_inline bool fits(const struct __sk_buff *skb, const struct flow *f, __u32 most)
{
	if (skb->gso_size) /* least headers */
		return skb->gso_size + ETH_HLEN + (f->family == 6 ? 20 : 0) + (f->proto == IPPROTO_UDP ? 28 : 40) <= most;
	return skb->len <= most;
}

/* Drops a packet, and tells its node what fits, if it came straight from it: as a
 * router would, with the address of whom the packet was for. */
static __always_inline int too_big(struct __sk_buff *skb, struct walk *w, __u32 mtu)
{
	__u8 family = w->flow.family;

	drop(w->hop.slot, DROP_TOO_BIG);
	if (!w->entry || skb->gso_size || w->flow.ip != ETH_HLEN || skb->vlan_present)
		return TCX_DROP;
	w->parsed = 0;
	if (family == 4 ? tell4(skb, mtu) : family == 6 && tell6(skb, mtu))
		return bpf_redirect(w->entry, 0);
	return TCX_DROP;
}

static __always_inline void patch(struct walk *w, const struct remote *r, __u32 size, __u32 hash)
{
	__u32 udp = r->udp_at == 54 ? 54 : 34;
	struct udphdr *u = (void *)w->out + udp;
	__u16 length = bpf_htons(size - udp);

	if (udp == 34) {
		struct iphdr *ip = (void *)w->out + ETH_HLEN;

		ip->tot_len = bpf_htons(size - ETH_HLEN);
		ip->check = ~csum_fold((__u32)r->sum + ip->tot_len);
	} else {
		*(__be16 *)(w->out + ETH_HLEN + 4) = length;
	}
	u->source = bpf_htons(r->port_base | (hash & r->port_mask));
	u->len = length;
}

/* To another host: all headers at once, and by the fabric's device out of it. */
SEC("tc")
int nsh_remote(struct __sk_buff *skb)
{
	struct walk *w = walk_of();
	const struct remote *r;
	__u32 hash, head, length, nsh, tagged = skb->vlan_present ? 4 : 0;

	if (!w)
		return TCX_DROP;
	r = bpf_map_lookup_elem(&remotes, &w->hop.function);
	if (!r)
		return drop(w->hop.slot, DROP_REFUSED);
	length = r->length;
	nsh = NSH_SIZE + w->context;
	if (length < 42 || length > OUTER_MOST || nsh > NSH_SIZE + CONTEXT)
		return drop(w->hop.slot, DROP_REFUSED);
	head = length + nsh;
	if (!fits(skb, flow_of(skb, w), r->mtu + ETH_HLEN - head - tagged))
		return too_big(skb, w, r->mtu - head - tagged);
	hash = bpf_get_hash_recalc(skb);
	if (!make_room(skb, head, r->flags))
		return drop(w->hop.slot, DROP_REFUSED);
	__builtin_memcpy(w->out, r->header, OUTER_MOST);
	patch(w, r, skb->len, hash);
	barrier_var(length);
	if (length < 42 || length > OUTER_MOST || bpf_skb_store_bytes(skb, 0, w->out, length, 0) || !write_nsh(skb, w, length))
		return drop(w->hop.slot, DROP_REFUSED);
	skb->mark = 0;
	skb->priority = r->priority;
	return bpf_redirect_peer(r->device, 0);
}

/* In the host's namespace: out by the interface, as routes and neighbours say. */
SEC("tc")
int nsh_uplink(struct __sk_buff *skb)
{
	__u32 index = skb->ifindex, *to = bpf_map_lookup_elem(&uplinks, &index);

	if (!to || (skb->protocol != bpf_htons(ETH_P_IP) && skb->protocol != bpf_htons(ETH_P_IPV6)))
		return TCX_DROP;
	return bpf_redirect_neigh(*to, NULL, 0, 0);
}
