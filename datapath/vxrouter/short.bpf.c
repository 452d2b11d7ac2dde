//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The short way through a router (IPv4): at the ingress of its ports, a packet
 * that the router's stack would forward without doing anything more is sent to
 * the far end of the port it leaves by, as if the stack had sent it. Everything
 * else is left to the stack.
 *
 * The table is a copy of the kernel's. That it still is what the kernel would
 * use is asked of the kernel for each packet. Two counts there only grow:
 * rt_genid with every new route, change of a rule, an address or of forwarding
 * (rt_cache_flush in net/ipv4/{fib_frontend,fib_trie,devinet}.c), fib_seq with
 * every change of the best route to a prefix or of a next hop
 * (call_fib4_notifiers). Their sum must be the one the copy was read at.
 */
#include "checksum.h"

#define SECTION_CORE __attribute__((preserve_access_index))

/* What we read of the kernel, wherever its members lie (BTF relocations). */
typedef struct {
	int counter;
} atomic_t;
struct nf_hook_entries;
struct netns_nf {
	struct nf_hook_entries *hooks_ipv4[5];
} SECTION_CORE;
struct netns_ipv4 {
	atomic_t rt_genid;
	unsigned int fib_seq;
} SECTION_CORE;
struct netns_xfrm {
	unsigned int policy_count[6];
} SECTION_CORE;
struct net {
	struct netns_nf nf;
	struct netns_ipv4 ipv4;
	struct netns_xfrm xfrm;
} SECTION_CORE;
typedef struct {
	struct net *net;
} SECTION_CORE possible_net_t;
struct net_device {
	possible_net_t nd_net;
	struct nf_hook_entries *nf_hooks_ingress;
	void *rx_handler;
} SECTION_CORE;
struct sk_buff {
	struct net_device *dev;
} SECTION_CORE;

extern void *bpf_cast_to_kern_ctx(void *) __attribute__((section(".ksyms")));

#define NF_PRE_ROUTING 0
#define NF_FORWARD 2
#define NF_POST_ROUTING 4
#define BPF_MTU_CHK_SEGS 1
#define XFRM_OUT 1
#define XFRM_FWD 2

#define MAX_ROUTES 65536
#define MAX_LOCALS 8

/* Why a packet was left to the stack. The order is the one of Go's passes. */
enum pass {
	PASS_OFF,	 /* the tenant uses what the short way does not carry */
	PASS_STALE,	 /* the kernel's table changed, or nobody keeps the copy */
	PASS_HOOK,	 /* netfilter, IPsec, or a device on top of the port */
	PASS_UNUSUAL,	 /* no IPv4 unicast, options, lengths or checksum wrong */
	PASS_TTL,	 /* ends here */
	PASS_SOURCE,	 /* martian */
	PASS_ROUTE,	 /* to the router itself, no route, or an unusual one */
	PASS_UNRESOLVED, /* neighbour not known */
	PASS_SIZE,	 /* larger than the port's MTU */
	PASSES,
};

struct key {
	__u32 bits;
	__be32 address;
};

struct way {
	__u32 out; /* device, 0: the stack's */
	__u32 mtu;
	__u8 macs[12]; /* of the neighbour, of the port */
	__u32 why;     /* out is 0: enum pass */
};

struct state {
	__u64 until; /* coarse ns since the machine started */
	__u32 version; /* the copy was read at */
	__u32 on;
	__be32 locals[MAX_LOCALS]; /* the router's addresses */
};

struct count {
	__u64 packets, bytes;
	__u64 passed[PASSES];
};

#define MAP(kind, k, v, n, flags)                                                                                      \
	struct {                                                                                                       \
		__uint(type, kind);                                                                                    \
		__type(key, k);                                                                                        \
		__type(value, v);                                                                                      \
		__uint(max_entries, n);                                                                                \
		__uint(map_flags, flags);                                                                              \
		__uint(pinning, LIBBPF_PIN_BY_NAME);                                                                   \
	}

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct state, 1, 0) states SEC(".maps");
MAP(BPF_MAP_TYPE_LPM_TRIE, struct key, struct way, MAX_ROUTES, BPF_F_NO_PREALLOC) ways SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct count, 1, 0) counts SEC(".maps");

static __always_inline int pass(struct count *c, __u32 why)
{
	if (why < PASSES)
		c->passed[why]++;
	return TCX_NEXT;
}

/* 0, 127, multicast and class E are nobody's to forward. */
static __always_inline bool ordinary(__be32 address)
{
	__u8 first = address & 0xff;

	return first != 0 && first != 127 && first < 224;
}

static __always_inline bool local(const struct state *s, __be32 address)
{
#pragma unroll
	for (int i = 0; i < MAX_LOCALS; i++)
		if (s->locals[i] == address)
			return true;
	return false;
}

/* A sum of 20 bytes that is right is 0xffff when folded. */
static __always_inline bool intact(const struct iphdr *ip)
{
	const __u32 *w = (const void *)ip;
	__u64 sum = (__u64)w[0] + w[1] + w[2] + w[3] + w[4];

	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static __always_inline __u32 version(struct net *net)
{
	return (__u32)net->ipv4.rt_genid.counter + net->ipv4.fib_seq;
}

/* Something else of the stack's wants to see packets. */
static __always_inline bool hooked(struct net *net, struct net_device *dev)
{
	return net->nf.hooks_ipv4[NF_PRE_ROUTING] || net->nf.hooks_ipv4[NF_FORWARD] ||
	       net->nf.hooks_ipv4[NF_POST_ROUTING] || dev->nf_hooks_ingress || dev->rx_handler ||
	       net->xfrm.policy_count[XFRM_OUT] || net->xfrm.policy_count[XFRM_FWD];
}

/* Of a packet built by segmentation offload, what goes onto the wire counts. */
static __always_inline bool fits(struct __sk_buff *skb, const struct way *w)
{
	__u32 out = w->out, length = 0;

	if (likely(skb->len <= w->mtu + ETH_HLEN))
		return true;
	return skb->gso_size && bpf_check_mtu(skb, out, &length, 0, BPF_MTU_CHK_SEGS) == 0;
}

SEC("tc")
int vxrouter_short(struct __sk_buff *skb)
{
	struct key key = { .bits = 32 };
	struct sk_buff *kernel;
	struct net_device *dev;
	struct state *s;
	struct count *c;
	struct ethhdr *eth;
	struct iphdr *ip;
	struct net *net;
	struct way *w;
	__u32 zero = 0;

	if (skb->protocol != bpf_htons(ETH_P_IP) || skb->pkt_type != PACKET_HOST)
		return TCX_NEXT;
	s = bpf_map_lookup_elem(&states, &zero);
	c = bpf_map_lookup_elem(&counts, &zero);
	if (!s || !c)
		return TCX_NEXT;
	if (!s->on)
		return pass(c, PASS_OFF);
	kernel = bpf_cast_to_kern_ctx(skb);
	dev = kernel->dev;
	net = dev->nd_net.net;
	if (unlikely(s->version != version(net) || bpf_ktime_get_coarse_ns() > s->until))
		return pass(c, PASS_STALE);
	if (unlikely(hooked(net, dev)))
		return pass(c, PASS_HOOK);
	eth = reach(skb, ETH_HLEN + sizeof(*ip));
	if (!eth)
		return pass(c, PASS_UNUSUAL);
	ip = (void *)(eth + 1);
	if (mac_is_group(eth->h_dest) || skb->vlan_present || eth->h_proto != bpf_htons(ETH_P_IP) || *(__u8 *)ip != 0x45 ||
	    bpf_ntohs(ip->tot_len) + ETH_HLEN != skb->len || !intact(ip) || !ordinary(ip->daddr))
		return pass(c, PASS_UNUSUAL);
	if (ip->ttl <= 1)
		return pass(c, PASS_TTL);
	if (!ordinary(ip->saddr) || local(s, ip->saddr))
		return pass(c, PASS_SOURCE);
	key.address = ip->daddr;
	w = bpf_map_lookup_elem(&ways, &key);
	if (!w)
		return pass(c, PASS_ROUTE);
	if (!w->out)
		return pass(c, w->why);
	if (w->out == skb->ifindex) /* the sender may be told of a shorter way */
		return pass(c, PASS_ROUTE);
	if (!fits(skb, w))
		return pass(c, PASS_SIZE);
	eth = reach(skb, ETH_HLEN + sizeof(*ip));
	if (!eth)
		return pass(c, PASS_UNUSUAL);
	ip = (void *)(eth + 1);
	ip4_decrease_ttl(ip);
	*(__u64 *)eth = *(__u64 *)w->macs;
	*(__u32 *)((void *)eth + 8) = *(__u32 *)(w->macs + 8);
	c->packets++;
	c->bytes += skb->len;
	return bpf_redirect_peer(w->out, 0);
}

/* Tells the agent, which runs it in the router's namespace, the version of the
 * kernel's table there. */
SEC("tc")
int vxrouter_version(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return version(kernel->dev->nd_net.net);
}

LICENSE;
