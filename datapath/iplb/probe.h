/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Probes of paths that come back. */
#pragma once

#include "tables.h"

/* A probe comes back as the packet that was inside: UDP to this host. Numbers
 * only grow: one that arrives late, or again, says nothing new. */
static __always_inline int hear(const struct probe_text *text)
{
	__u32 path = text->path;
	struct probe *p = bpf_map_lookup_elem(&probes, &path);

	if (!p || p->secret != text->secret)
		return became(OUTCOME_DROP_FORGED, TCX_DROP);
	if ((__s32)(text->number - p->heard) > 0) {
		p->at = bpf_ktime_get_ns();
		p->heard = text->number;
	}
	return became(OUTCOME_ECHOED, TCX_DROP);
}
