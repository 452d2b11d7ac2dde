/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What programs read of the kernel's own structures, wherever their members
 * lie (BTF relocations). */
#pragma once

#include "packet.h"

enum { NF_PRE_ROUTING = 0, NF_FORWARD = 2, NF_POST_ROUTING = 4 }; /* linux/netfilter.h */
enum { XFRM_OUT = 1, XFRM_FWD = 2 };                              /* linux/xfrm.h */
enum { RP_FILTER = 8 };                                           /* linux/ip.h, counted from 1 */

#define SECTION_CORE __attribute__((preserve_access_index))

typedef struct {
	int counter;
} atomic_t;
struct list_head {
	struct list_head *next;
} SECTION_CORE;
struct nf_hook_entries;
struct netns_nf {
	struct nf_hook_entries *hooks_ipv4[5];
	struct nf_hook_entries *hooks_ipv6[5];
} SECTION_CORE;
struct ipv4_devconf {
	int data[RP_FILTER];
} SECTION_CORE;
struct in_device {
	struct ipv4_devconf cnf;
} SECTION_CORE;
struct netns_ipv4 {
	struct ipv4_devconf *devconf_all;
	__u8 sysctl_fib_multipath_hash_policy;
	atomic_t rt_genid;
	unsigned int fib_seq;
} SECTION_CORE;
struct ipv6_devconf {
	__s32 disable_ipv6;
	__s32 forwarding;
} SECTION_CORE;
struct inet6_dev {
	struct ipv6_devconf cnf;
} SECTION_CORE;
struct fib6_table {
	unsigned int fib_seq;
} SECTION_CORE;
struct fib_rules_ops {
	unsigned int fib_rules_seq;
} SECTION_CORE;
struct netns_ipv6 {
	struct ipv6_devconf *devconf_all;
	struct fib6_table *fib6_main_tbl;
	struct fib6_table *fib6_local_tbl;
	struct fib_rules_ops *fib6_rules_ops;
	atomic_t fib6_sernum;
} SECTION_CORE;
struct netns_xfrm {
	unsigned int policy_count[6];
} SECTION_CORE;
struct net {
	struct list_head ptype_all; /* Linux 6.16 */
	struct netns_nf nf;
	struct netns_ipv4 ipv4;
	struct netns_ipv6 ipv6;
	struct netns_xfrm xfrm;
} SECTION_CORE;
typedef struct {
	struct net *net;
} SECTION_CORE possible_net_t;
struct mini_Qdisc;
struct bpf_mprog_bundle {
	__u32 count;
} SECTION_CORE;
struct bpf_mprog_entry {
	struct bpf_mprog_bundle *parent;
} SECTION_CORE;
struct tcx_entry {
	struct mini_Qdisc *miniq;
	struct bpf_mprog_bundle bundle;
} SECTION_CORE;
struct net_device {
	struct bpf_mprog_entry *tcx_ingress;
	unsigned int flags;
	int ifindex;
	possible_net_t nd_net;
	struct list_head ptype_all;
	struct in_device *ip_ptr;
	struct inet6_dev *ip6_ptr;
	struct nf_hook_entries *nf_hooks_ingress;
	void *rx_handler;
} SECTION_CORE;
struct sk_buff {
	struct net_device *dev;
} SECTION_CORE;

/* What libbpf's bpf_core_read.h calls so. */
#define bpf_core_field_exists(field) __builtin_preserve_field_info(field, 2)
#define bpf_core_field_offset(field) __builtin_preserve_field_info(field, 0)
#define bpf_core_type_id_kernel(type) __builtin_btf_type_id(*(type *)0, 1)

extern void *bpf_cast_to_kern_ctx(void *) __attribute__((section(".ksyms")));
extern void *bpf_rdonly_cast(const void *, __u32) __attribute__((section(".ksyms")));

static __always_inline struct net_device *device_of(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return kernel->dev;
}

/* Something else of the stack's wants to see packets. */
static __always_inline bool hooked(struct net *net, struct net_device *dev)
{
	if (bpf_core_field_exists(dev->nf_hooks_ingress) && dev->nf_hooks_ingress)
		return true;
	if (bpf_core_field_exists(net->xfrm) && (net->xfrm.policy_count[XFRM_OUT] || net->xfrm.policy_count[XFRM_FWD]))
		return true;
	return dev->rx_handler;
}

static __always_inline bool hooked4(struct net *net, struct net_device *dev)
{
	if (bpf_core_field_exists(net->nf.hooks_ipv4) && (net->nf.hooks_ipv4[NF_PRE_ROUTING] || net->nf.hooks_ipv4[NF_FORWARD] || net->nf.hooks_ipv4[NF_POST_ROUTING]))
		return true;
	return hooked(net, dev);
}

static __always_inline bool hooked6(struct net *net, struct net_device *dev)
{
	if (bpf_core_field_exists(net->nf.hooks_ipv6) && (net->nf.hooks_ipv6[NF_PRE_ROUTING] || net->nf.hooks_ipv6[NF_FORWARD] || net->nf.hooks_ipv6[NF_POST_ROUTING]))
		return true;
	return hooked(net, dev);
}

/* Programs of traffic control beside the one that asks look at what comes in. */
static __always_inline bool classified(struct net_device *dev)
{
	struct bpf_mprog_entry *entry;
	struct bpf_mprog_bundle *all;
	struct tcx_entry *both;

	if (!bpf_core_field_exists(dev->tcx_ingress))
		return true;
	entry = dev->tcx_ingress;
	if (!entry)
		return false;
	all = entry->parent;
	if (!all || all->count > 1)
		return true;
	both = bpf_rdonly_cast((void *)all - bpf_core_field_offset(((struct tcx_entry *)0)->bundle), bpf_core_type_id_kernel(struct tcx_entry));
	return both->miniq;
}

/* Paths of equal cost are chosen by more than addresses and ports. */
static __always_inline bool chooses_deep(struct net *net)
{
	return bpf_core_field_exists(net->ipv4.sysctl_fib_multipath_hash_policy) && net->ipv4.sysctl_fib_multipath_hash_policy > 1;
}

/* The kernel looks whether packets come from where answers would go. */
static __always_inline bool filters4(struct net *net, struct net_device *dev)
{
	struct in_device *in = dev->ip_ptr;

	return net->ipv4.devconf_all->data[RP_FILTER - 1] || !in || in->cnf.data[RP_FILTER - 1];
}
