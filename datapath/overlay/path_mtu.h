/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets that are too big, and what their senders are told. */
#pragma once

#include "inner.h"
#include "too_big.h"

/* Whether the packet, or each it will be cut into, fits. */
static __always_inline bool fits(const struct __sk_buff *skb, const struct entry *e, const struct inner *in)
{
	if (skb->gso_size) /* and IPv4 with UDP or TCP, the least there is */
		return skb->gso_size + (in->next == IPPROTO_UDP ? 28 : 40) <= e->mtu;
	return skb->len - ETH_HLEN <= e->mtu;
}

/* A packet that is too big is dropped, and its sender told, as a router with
 * the tunnel's MTU would. Of TCP to be cut that is left to the next one that
 * is not: the kernel does not shorten it. */
static __always_inline int too_big(struct __sk_buff *skb, const struct entry *e, const struct inner *in, bool answer)
{
	__u32 mtu = e->mtu;

	drop(e->slot, DROP_TOO_BIG);
	if (answer && !skb->gso_size && !in->count &&
	    (in->version == INNER4 ? tell4(skb, mtu) : in->version == INNER6 && tell6(skb, mtu)))
		return bpf_redirect_peer(skb->ifindex, 0);
	return TCX_DROP;
}
