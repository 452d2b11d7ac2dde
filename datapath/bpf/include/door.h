/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Doors of a switch or router: its ports as seen from the fabric, for programs
 * that run there in their stead (entrance.h). */
#pragma once

#include "entrance.h"
#include "kernel.h"

#define DOORS 256
#define IFF_UP 1

/* struct door: a port, in the row slot % DOORS; of two ports with the same row
 * one has it. The kernel's addresses of the port's device and namespace are
 * read with care (bpf_rdonly_cast): where there is neither any more, what is
 * read there is not what it must be. */
struct door {
	__u64 net;
	__u64 dev;
	__u32 slot;
	__u32 index; /* of the device in its namespace */
	__u32 port;  /* what its owner calls it */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DOORS);
	__type(key, __u32);
	__type(value, struct door);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} doors SEC(".maps");

/* vxlink's program for frames that leave. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} onward SEC(".maps");

static __always_inline const struct door *entered(struct __sk_buff *skb)
{
	__u32 slot = entrance(skb), row = slot % DOORS;
	const struct door *d = bpf_map_lookup_elem(&doors, &row);

	return d && d->slot == slot && slot ? d : NULL;
}

static __always_inline struct net_device *door_device(const struct door *d)
{
	return bpf_rdonly_cast((void *)d->dev, bpf_core_type_id_kernel(struct net_device));
}

static __always_inline bool empty(const struct list_head *l) { return (__u64)l->next == (__u64)l; }

/* Whether frames for the port may be decided on here: its device is what it
 * was when the door was made, and nobody captures what comes in by it. */
static __always_inline bool opens(const struct door *d, struct net_device *dev)
{
	struct net *net = dev->nd_net.net;

	if ((__u64)net != d->net || dev->ifindex != d->index || !(dev->flags & IFF_UP) || !empty(&dev->ptype_all))
		return false;
	return !bpf_core_field_exists(net->ptype_all) || empty(&net->ptype_all);
}

/* Goes on by the link of a slot's port; without its program, as if the owner
 * had sent the frame by the port. */
static __always_inline int leave(struct __sk_buff *skb, __u32 slot)
{
	skb->cb[ENTRANCE] = slot;
	bpf_tail_call(skb, &onward, 0);
	return bpf_redirect(DEVICES + slot, BPF_F_INGRESS);
}

/* Run by the agent in the owner's namespace, on a port, to make its door:
 * skb->cb says the slot and what the owner calls the port. */
static __always_inline int make_door(struct __sk_buff *skb)
{
	struct net_device *dev = device_of(skb);
	__u32 slot = entrance(skb), row = slot % DOORS;
	struct door *d = bpf_map_lookup_elem(&doors, &row);

	if (!d)
		return 1;
	d->slot = 0;
	d->net = (__u64)dev->nd_net.net;
	d->dev = (__u64)dev;
	d->index = dev->ifindex;
	d->port = skb->cb[ENTRANCE + 1];
	*(volatile __u32 *)&d->slot = slot;
	return 0;
}
