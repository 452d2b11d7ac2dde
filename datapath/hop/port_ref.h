/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ports of a switch or router as seen from the fabric, for its program that is
 * called there (chain.h). */
#pragma once

#include "chain.h"
#include "kernel.h"
#include "maps.h"

#define PORT_REFS 256
#define IFF_UP 1

/* A port, in the row slot % PORT_REFS; of two ports with the same row one has it.
 * The kernel's addresses of the port's device and namespace are read with care
 * (bpf_rdonly_cast): where there is neither any more, what is read there is not
 * what it must be. */
struct port_ref {
	__u64 net;
	__u64 dev;
	__u32 slot;
	__u32 index; /* of the device in its namespace */
	__u32 port;  /* the owner's number of it */
	__u32 pad;
};

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct port_ref, PORT_REFS, 0) port_refs SEC(".maps");

/* The links' program for frames that leave. */
PROGRAMS(1) next SEC(".maps");

/* The port that the frame is handed over by; NULL: none of ours. */
static __always_inline const struct port_ref *chained(struct __sk_buff *skb)
{
	__u32 slot = slot_of(skb), row = slot % PORT_REFS;
	const struct port_ref *p = bpf_map_lookup_elem(&port_refs, &row);

	return p && p->slot == slot && slot ? p : NULL;
}

static __always_inline struct net_device *device_at(const struct port_ref *p)
{
	return bpf_rdonly_cast((void *)p->dev, bpf_core_type_id_kernel(struct net_device));
}

static __always_inline bool empty(const struct list_head *l) { return (__u64)l->next == (__u64)l; }

/* Whether frames for the port may be decided on here: its device is what it
 * was when the reference was made, and nobody captures what comes in by it. */
static __always_inline bool is_valid(const struct port_ref *p, struct net_device *dev)
{
	struct net *net = dev->nd_net.net;

	if ((__u64)net != p->net || dev->ifindex != p->index || !(dev->flags & IFF_UP) || !empty(&dev->ptype_all))
		return false;
	return !bpf_core_field_exists(net->ptype_all) || empty(&net->ptype_all);
}

/* Goes on by the link of a slot's port; without its program, as if the owner
 * had sent the frame by the port. */
static __always_inline int leave_by(struct __sk_buff *skb, __u32 slot)
{
	skb->cb[CB_SLOT] = slot;
	bpf_tail_call(skb, &next, 0);
	return bpf_redirect(FIRST_DEVICE + slot, BPF_F_INGRESS);
}

/* Run by the agent in the owner's namespace, on a port, to make its reference:
 * skb->cb has the slot, and the owner's number of the port. */
static __always_inline int make_port_ref(struct __sk_buff *skb)
{
	struct net_device *dev = device_of(skb);
	__u32 slot = slot_of(skb), row = slot % PORT_REFS;
	struct port_ref *p = bpf_map_lookup_elem(&port_refs, &row);

	if (!p)
		return 1;
	p->slot = 0;
	p->net = (__u64)dev->nd_net.net;
	p->dev = (__u64)dev;
	p->index = dev->ifindex;
	p->port = skb->cb[CB_PORT];
	*(volatile __u32 *)&p->slot = slot;
	return 0;
}
