/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links, switches and routers of one lease that follow one another on a host
 * decide on a frame in one go, where it left its node: a link's program calls
 * that of the switch or router which the frame enters (bpf_tail_call), and that
 * one the link's again by which the frame leaves. It so never steps into the
 * namespace in between. What a program does not decide there takes that step
 * after all, and meets the same program on the port.
 *
 * Linux ends a row after 33 calls; then, too, the frame takes the step.
 */
#pragma once

#include "packet.h"

/* Every device of a fabric has a number of its own on the host, DEVICES + slot. */
#define SLOTS 16384
#define DEVICES 0x100000

/* Index in skb->cb of the slot of the port that a frame enters or leaves by. */
#define ENTRANCE 0

/* In C the compiler may keep the word's address, which the verifier refuses. */
static __always_inline __u32 entrance(const struct __sk_buff *skb)
{
	__u32 slot;

	asm volatile("%0 = *(u32 *)(%1 + %2)"
		     : "=r"(slot)
		     : "r"(skb), "i"(__builtin_offsetof(struct __sk_buff, cb[ENTRANCE])));
	return slot;
}

/* The frame steps into the namespace behind the port. */
static __always_inline int step_in(struct __sk_buff *skb)
{
	return bpf_redirect_peer(DEVICES + entrance(skb), 0);
}
