/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which addresses headers may be from and for. */
#pragma once

#include "tables.h"

/* Where an address has its place in small tables. */
static __always_inline __u32 near(__be32 address) { return address * 0x9e3779b1u >> 20; } /* 12 bits */

/* Whether headers are taken off at an address. */
static __always_inline bool is_local(__be32 address)
{
	const struct state *state = state_of();
	__u32 at = near(address);

	if (!state || !(state->locals[at >> 6 & 63] >> (at & 63) & 1))
		return false;
	return bpf_map_lookup_elem(&locals, &address) != NULL;
}

enum acl { ACL_SENDERS, ACL_INNER };

/* Whether a list has an address. Those it has are remembered. */
static __always_inline bool allowed(const enum acl list, __be32 address)
{
	struct prefix p = { .bits = 32, .address = address };
	const struct state *state = state_of();
	__u32 at = list * CACHED_ADDRESSES + (near(address) & (CACHED_ADDRESSES - 1));
	__u64 *seen = bpf_map_lookup_elem(&acl_cache, &at), now;

	if (!seen || !state)
		return false;
	now = (__u64)*(volatile const __u32 *)&state->acl_gen << 32 | address;
	if (likely(*seen == now))
		return true;
	if (!(list == ACL_SENDERS ? bpf_map_lookup_elem(&senders, &p) : bpf_map_lookup_elem(&allowed_inner, &p)))
		return false;
	*seen = now; /* if they changed meanwhile, acl_gen did too */
	return true;
}
