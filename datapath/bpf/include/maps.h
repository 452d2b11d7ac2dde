/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Maps and counters, as all programs declare and use them. */
#pragma once

#include "packet.h"

/* A map that is pinned by its name; flags are BPF_F_. Use: MAP(...) name SEC(".maps"); */
#define MAP(kind, k, v, n, flags) \
	struct { \
		__uint(type, kind); \
		__type(key, k); \
		__type(value, v); \
		__uint(max_entries, n); \
		__uint(map_flags, flags); \
		__uint(pinning, LIBBPF_PIN_BY_NAME); \
	}

/* An array of programs, for tail calls. */
#define PROGRAMS(n) MAP(BPF_MAP_TYPE_PROG_ARRAY, __u32, __u32, n, 0)

/* The only row of a map of one. */
#define ROW0(map) ({ __u32 row_ = 0; bpf_map_lookup_elem(map, &row_); })

/* Adds packets and bytes to counters, if there are any. */
#define COUNT(counters, n, size) \
	({ \
		typeof(counters) c_ = (counters); \
		if (c_) { \
			c_->packets += (n); \
			c_->bytes += (size); \
		} \
	})

/* Counts a drop by its cause, and is the verdict. */
#define DROP(counters, cause) \
	({ \
		typeof(counters) c_ = (counters); \
		if (c_) \
			c_->drops[cause]++; \
		TCX_DROP; \
	})
