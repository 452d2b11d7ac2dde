/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What programs read of the kernel's own structures, wherever their members
 * lie (BTF relocations). */
#pragma once

#include "packet.h"

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
struct netns_ipv4 {
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
struct net_device {
	unsigned int flags;
	int ifindex;
	possible_net_t nd_net;
	struct list_head ptype_all;
	struct inet6_dev *ip6_ptr;
	struct nf_hook_entries *nf_hooks_ingress;
	void *rx_handler;
} SECTION_CORE;
struct sk_buff {
	struct net_device *dev;
} SECTION_CORE;

/* What libbpf's bpf_core_read.h calls so. */
#define bpf_core_field_exists(field) __builtin_preserve_field_info(field, 2)
#define bpf_core_type_id_kernel(type) __builtin_btf_type_id(*(type *)0, 1)

extern void *bpf_cast_to_kern_ctx(void *) __attribute__((section(".ksyms")));
extern void *bpf_rdonly_cast(const void *, __u32) __attribute__((section(".ksyms")));

static __always_inline struct net_device *device_of(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return kernel->dev;
}
