//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fast path of a router: at the ingress of its ports, a packet that
 * the router's stack would forward without doing anything more is sent to the
 * far end of the port it leaves by, as if the stack had sent it. Everything
 * else is left to the stack.
 *
 * The tables are copies of the kernel's. That they still are what the kernel
 * would use is asked of the kernel for each packet: counts there only grow, and
 * their sum must be the one the copy was read at.
 *
 * IPv4: rt_genid, with every new route, change of a rule, an address or of
 * forwarding (rt_cache_flush in net/ipv4/{fib_frontend,fib_trie,devinet}.c),
 * and fib_seq, with every change of the best route to a prefix or of a next hop
 * (call_fib4_notifiers).
 *
 * IPv6: fib6_sernum, with every route added (net/ipv6/ip6_fib.c), fib_seq of
 * both tables, with every change of the best route to a prefix
 * (call_fib6_entry_notifiers), and fib_rules_seq. Forwarding itself is asked
 * for as ip6_forward does, since turning it off need not change a route.
 *
 * The same program runs where a link hands packets to the router (chain.h), so
 * that those which it sends on never come here. What it does not send on comes,
 * and is decided on again: only then it is counted.
 */
#include "checksum.h"
#include "port_ref.h"

#define BPF_MTU_CHK_SEGS 1

#define MAX_ROUTES 65536
#define MAX_LOCALS 8
#define CACHE_BITS 5
#define CACHE_SIZE (1 << CACHE_BITS)

/* Why a packet was left to the stack. */
enum fallback {
	FALLBACK_OFF,	 /* the tenant uses what the fast path does not carry */
	FALLBACK_STALE,	 /* the kernel's table changed, or nobody keeps the copy */
	FALLBACK_HOOK,	 /* netfilter, IPsec, or a device on top of the port */
	FALLBACK_UNUSUAL,	 /* no unicast, options or extension headers, lengths or checksum wrong */
	FALLBACK_TTL,	 /* ends here */
	FALLBACK_SOURCE,	 /* martian */
	FALLBACK_ROUTE,	 /* to the router itself, no route, or an unusual one */
	FALLBACK_UNRESOLVED, /* neighbour not known */
	FALLBACK_SIZE,	 /* larger than the port's MTU */
	FALLBACKS,
};

struct key {
	__u32 bits;
	__be32 address;
};

struct key6 {
	__u32 bits;
	struct in6_addr address;
};

struct nexthop {
	__u32 out; /* device, 0: the stack's */
	__u32 mtu;
	__u8 macs[12]; /* of the neighbour, of the port */
	__u32 why; /* out is 0: enum fallback; else not 0: the device's own MTU is larger */
	__u32 slot; /* of the port in the fabric; 0: none that is known */
};

/* A copy, and the kernel's version that it was read at. */
struct copy {
	__u32 version;
	__u32 on;
};

struct state {
	__u64 until; /* coarse ns since the machine started */
	__u64 changed; /* when one of the copies did last, ns; never twice the same */
	struct copy ip4, ip6;
	__be32 locals[MAX_LOCALS]; /* the router's IPv4 addresses */
};

/* What was looked up last, by receiver, on one processor: good while the copies
 * are those that it was found in. */
struct cached_route {
	__u64 changed;
	struct nexthop next;
	__be32 address;
};

struct cached_route6 {
	__u64 changed;
	struct nexthop next;
	struct in6_addr address;
};

struct route_cache {
	struct cached_route ip4[CACHE_SIZE];
	struct cached_route6 ip6[CACHE_SIZE];
};

struct count {
	__u64 packets, bytes;
	__u64 chained; /* packets that did not have to come in */
	__u64 fallbacks[FALLBACKS];
	enum fallback reasons[0]; /* names the indexes of fallbacks for Go */
};

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct state, 1, 0) states SEC(".maps");
MAP(BPF_MAP_TYPE_LPM_TRIE, struct key, struct nexthop, MAX_ROUTES, BPF_F_NO_PREALLOC) fib4 SEC(".maps");
MAP(BPF_MAP_TYPE_LPM_TRIE, struct key6, struct nexthop, MAX_ROUTES, BPF_F_NO_PREALLOC) fib6 SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct count, 1, 0) counts SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct route_cache, 1, 0) route_cache SEC(".maps");

/* Where a packet is decided on. */
struct place {
	struct net *net;
	struct net_device *dev; /* it comes in by */
	__u32 index;		/* of that device there */
	bool chained;		/* it has not come in yet */
};

/* Leaves a packet to the stack. */
static __always_inline int fall_back(struct __sk_buff *skb, const struct place *at, __u32 why)
{
	__u32 zero = 0;
	struct count *c;

	if (at->chained)
		return step_in(skb);
	c = bpf_map_lookup_elem(&counts, &zero);
	if (c && why < FALLBACKS)
		c->fallbacks[why]++;
	return TCX_NEXT;
}

static __always_inline bool local(const struct state *s, __be32 address)
{
#pragma unroll
	for (int i = 0; i < MAX_LOCALS; i++)
		if (s->locals[i] == address)
			return true;
	return false;
}

static __always_inline __u32 version4(struct net *net)
{
	return (__u32)net->ipv4.rt_genid.counter + net->ipv4.fib_seq;
}

static __always_inline __u32 version6(struct net *net)
{
	return (__u32)net->ipv6.fib6_sernum.counter + net->ipv6.fib6_main_tbl->fib_seq +
	       net->ipv6.fib6_local_tbl->fib_seq + net->ipv6.fib6_rules_ops->fib_rules_seq;
}

/* Of a packet built by segmentation offload, what goes onto the wire counts.
 * From the fabric the port's device is not to be seen, but that of its other
 * end. */
static __always_inline bool fits(struct __sk_buff *skb, const struct place *at, const struct nexthop *hop)
{
	__u32 out = at->chained ? FIRST_DEVICE + hop->slot : hop->out, mtu = 0;

	if (likely(skb->len <= hop->mtu + ETH_HLEN))
		return true;
	return skb->gso_size && !hop->why && bpf_check_mtu(skb, out, &mtu, 0, BPF_MTU_CHK_SEGS) == 0 && mtu <= hop->mtu;
}

/* Whether the stack would do no more than send it by hop; else says why not. */
static __always_inline bool carries(struct __sk_buff *skb, const struct place *at, const struct nexthop *hop, __u32 *why)
{
	*why = FALLBACK_ROUTE;
	if (likely(hop && hop->out && hop->out != at->index)) { /* back: the sender may be told of a shorter route */
		if (likely(fits(skb, at, hop)))
			return true;
		*why = FALLBACK_SIZE;
	} else if (hop && !hop->out) {
		*why = hop->why;
	}
	return false;
}

static __always_inline int send(struct __sk_buff *skb, const struct place *at, struct ethhdr *eth, const struct nexthop *hop)
{
	__u32 zero = 0;
	struct count *c = bpf_map_lookup_elem(&counts, &zero);

	*(__u64 *)eth = *(__u64 *)hop->macs;
	*(__u32 *)((void *)eth + 8) = *(__u32 *)(hop->macs + 8);
	COUNT(c, 1, skb->len);
	if (c)
		c->chained += at->chained;
	return at->chained ? leave_by(skb, hop->slot) : bpf_redirect_peer(hop->out, 0);
}

/* To one station, untagged; the caller has looked at skb->protocol. */
static __always_inline bool to_station(const struct __sk_buff *skb, const struct ethhdr *eth)
{
	return !mac_is_group(eth->h_dest) && !skb->vlan_present && eth->h_proto == (__be16)skb->protocol;
}

/* Read before a copy is looked at: what is found in one that changes meanwhile
 * is not good any more. */
static __always_inline __u64 changed(const struct state *s) { return *(const volatile __u64 *)&s->changed; }

/* The row of a word in the cache (Fibonacci hashing). */
static __always_inline __u32 cache_row(__u32 word) { return word * 0x9e3779b1U >> (32 - CACHE_BITS); }

static __always_inline struct nexthop *find4(const struct state *s, __be32 address)
{
	struct key key = { .bits = 32, .address = address };
	const __u64 since = changed(s);
	__u32 zero = 0;
	struct route_cache *all = bpf_map_lookup_elem(&route_cache, &zero);
	struct cached_route *r;
	struct nexthop *hop;

	if (unlikely(!all))
		return NULL;
	r = &all->ip4[cache_row(address)];
	if (likely(r->address == address && r->changed == since))
		return &r->next;
	hop = bpf_map_lookup_elem(&fib4, &key);
	if (!hop)
		return NULL;
	r->changed = since;
	r->address = address;
	r->next = *hop;
	return hop;
}

static __always_inline struct nexthop *find6(const struct state *s, const struct in6_addr *address)
{
	struct key6 key = { .bits = 128, .address = *address };
	const __be32 *a = address->u6_addr32;
	const __u64 since = changed(s);
	__u32 zero = 0;
	struct route_cache *all = bpf_map_lookup_elem(&route_cache, &zero);
	struct cached_route6 *r;
	struct nexthop *hop;

	if (unlikely(!all))
		return NULL;
	r = &all->ip6[cache_row(a[0] ^ a[1] ^ a[2] ^ a[3])];
	if (likely(ip6_equal(&r->address, address) && r->changed == since))
		return &r->next;
	hop = bpf_map_lookup_elem(&fib6, &key);
	if (!hop)
		return NULL;
	r->changed = since;
	r->address = key.address;
	r->next = *hop;
	return hop;
}

static __always_inline int forward4(struct __sk_buff *skb, const struct place *at, struct state *s)
{
	struct ethhdr *eth;
	struct iphdr *ip;
	struct nexthop *hop;
	__u32 why;

	if (!s->ip4.on)
		return fall_back(skb, at, FALLBACK_OFF);
	if (unlikely(s->ip4.version != version4(at->net) || bpf_ktime_get_coarse_ns() > s->until))
		return fall_back(skb, at, FALLBACK_STALE);
	if (unlikely(hooked4(at->net, at->dev)))
		return fall_back(skb, at, FALLBACK_HOOK);
	eth = reach(skb, ETH_HLEN + sizeof(*ip));
	if (!eth)
		return fall_back(skb, at, FALLBACK_UNUSUAL);
	ip = (void *)(eth + 1);
	if (!to_station(skb, eth) || *(__u8 *)ip != 0x45 || bpf_ntohs(ip->tot_len) + ETH_HLEN != skb->len || !ip4_intact(ip) ||
	    !ip4_is_ordinary(ip->daddr))
		return fall_back(skb, at, FALLBACK_UNUSUAL);
	if (ip->ttl <= 1)
		return fall_back(skb, at, FALLBACK_TTL);
	if (!ip4_is_ordinary(ip->saddr) || local(s, ip->saddr))
		return fall_back(skb, at, FALLBACK_SOURCE);
	hop = find4(s, ip->daddr);
	if (!carries(skb, at, hop, &why))
		return fall_back(skb, at, why);
	eth = reach(skb, ETH_HLEN + sizeof(*ip));
	if (!eth || !hop || (at->chained && !hop->slot))
		return fall_back(skb, at, FALLBACK_UNUSUAL);
	ip4_decrease_ttl((void *)(eth + 1));
	return send(skb, at, eth, hop);
}

/* Neither multicast (ff), nor of one link (fe), nor unspecified, loopback or
 * IPv4's (00). */
static __always_inline bool ordinary6(const struct in6_addr *address)
{
	return (__u8)(address->u6_addr8[0] - 1) < 0xfd;
}

/* Extension headers (IANA, IPv6 extension header types) are the stack's. */
static __always_inline bool plain6(__u8 next)
{
	const __u64 first = 1ULL << IPPROTO_HOPOPTS | 1ULL << IPPROTO_ROUTING | 1ULL << IPPROTO_FRAGMENT | 1ULL << 50 |
			    1ULL << 51 | 1ULL << IPPROTO_DSTOPTS;

	if (next < 64)
		return !(first >> next & 1);
	return next != 135 && next != 139 && next != 140 && next < 253;
}

/* The settings by which ip6_rcv and ip6_forward decide. */
static __always_inline bool forwards6(struct net *net, struct net_device *dev)
{
	struct inet6_dev *in = dev->ip6_ptr;

	return in && !in->cnf.disable_ipv6 && net->ipv6.devconf_all->forwarding;
}

static __always_inline int forward6(struct __sk_buff *skb, const struct place *at, struct state *s)
{
	struct ipv6hdr *ip;
	struct ethhdr *eth;
	struct nexthop *hop;
	__u32 why;

	if (!s->ip6.on || unlikely(!forwards6(at->net, at->dev)))
		return fall_back(skb, at, FALLBACK_OFF);
	if (unlikely(s->ip6.version != version6(at->net) || bpf_ktime_get_coarse_ns() > s->until))
		return fall_back(skb, at, FALLBACK_STALE);
	if (unlikely(hooked6(at->net, at->dev)))
		return fall_back(skb, at, FALLBACK_HOOK);
	eth = reach(skb, ETH_HLEN + sizeof(*ip));
	if (!eth)
		return fall_back(skb, at, FALLBACK_UNUSUAL);
	ip = (void *)(eth + 1);
	if (!to_station(skb, eth) || *(__u8 *)ip >> 4 != 6 ||
	    bpf_ntohs(ip->payload_len) + sizeof(*ip) + ETH_HLEN != skb->len || !plain6(ip->nexthdr) || !ordinary6(&ip->daddr))
		return fall_back(skb, at, FALLBACK_UNUSUAL);
	if (ip->hop_limit <= 1)
		return fall_back(skb, at, FALLBACK_TTL);
	if (!ordinary6(&ip->saddr))
		return fall_back(skb, at, FALLBACK_SOURCE);
	hop = find6(s, &ip->daddr);
	if (!carries(skb, at, hop, &why))
		return fall_back(skb, at, why);
	eth = reach(skb, ETH_HLEN + sizeof(*ip));
	if (!eth || !hop || (at->chained && !hop->slot))
		return fall_back(skb, at, FALLBACK_UNUSUAL);
	((struct ipv6hdr *)(eth + 1))->hop_limit--;
	return send(skb, at, eth, hop);
}

static __always_inline int decide(struct __sk_buff *skb, const struct place *at)
{
	__u32 zero = 0;
	struct state *s = bpf_map_lookup_elem(&states, &zero);

	if (s && likely(skb->protocol == bpf_htons(ETH_P_IP)))
		return forward4(skb, at, s);
	if (s && skb->protocol == bpf_htons(ETH_P_IPV6))
		return forward6(skb, at, s);
	return at->chained ? step_in(skb) : TCX_NEXT;
}

SEC("tc")
int vxrouter_fastpath(struct __sk_buff *skb)
{
	struct net_device *dev = device_of(skb);
	struct place at = { .net = dev->nd_net.net, .dev = dev, .index = skb->ifindex };

	return skb->pkt_type == PACKET_HOST ? decide(skb, &at) : TCX_NEXT;
}

/* Called by a link, for a packet that is for the port's Ethernet address. */
SEC("tc")
int vxrouter_chained(struct __sk_buff *skb)
{
	const struct port_ref *p = chained(skb);
	struct place at = { .chained = true };

	if (unlikely(!p))
		return step_in(skb);
	at.dev = device_at(p);
	if (unlikely(!is_valid(p, at.dev)))
		return step_in(skb);
	at.net = at.dev->nd_net.net;
	at.index = p->index;
	return decide(skb, &at);
}

SEC("tc")
int vxrouter_port_ref(struct __sk_buff *skb) { return make_port_ref(skb); }

/* These tell the agent, which runs them in the router's namespace, the versions
 * of the kernel's tables there. */
SEC("tc")
int vxrouter_version(struct __sk_buff *skb)
{
	return version4(device_of(skb)->nd_net.net);
}

SEC("tc")
int vxrouter_version6(struct __sk_buff *skb)
{
	return version6(device_of(skb)->nd_net.net);
}

LICENSE;
