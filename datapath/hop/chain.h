/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links, switches and routers of one lease that follow one another on a host
 * decide on a frame in one go, where it left its node: a link's program calls
 * that of the switch or router behind a port (bpf_tail_call), and that one calls
 * the link's again by which the frame leaves. The frame so never steps into the
 * namespace in between. What a program does not decide there takes that step,
 * and meets the same program on the port.
 *
 * Linux ends a chain after 33 calls; then, too, the frame takes the step.
 */
#pragma once

#include "contract.h"
#include "packet.h"

/* The slot of the port that a frame enters or leaves by. In C the compiler may
 * keep the word's address, which the verifier refuses. */
static __always_inline __u32 slot_of(const struct __sk_buff *skb)
{
	__u32 slot;

	asm volatile("%0 = *(u32 *)(%1 + %2)"
		     : "=r"(slot)
		     : "r"(skb), "i"(__builtin_offsetof(struct __sk_buff, cb[CB_SLOT])));
	return slot;
}

/* The frame steps into the namespace behind the port. */
static __always_inline int step_in(struct __sk_buff *skb)
{
	return bpf_redirect_peer(FIRST_DEVICE + slot_of(skb), 0);
}
