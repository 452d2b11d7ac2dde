/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which path a flow takes. */
#pragma once

#include "tables.h"

/* Keyed by odd constants of splitmix64: not symmetric, and small differences of
 * addresses and ports reach all bits. */
static __always_inline __u32 hash_of(const struct flow_key *k)
{
	__u64 h = ((__u64)k->source << 32 | k->target) * 0xbf58476d1ce4e5b9ULL;

	h ^= h >> 29;
	h += ((__u64)k->ports << 8 | k->protocol) * 0x94d049bb133111ebULL;
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15ULL;
	return h >> 32;
}

static __always_inline struct path *path_of(__u32 id) { return bpf_map_lookup_elem(&paths, &id); }

static __always_inline bool is_up(__u32 id)
{
	const struct path *p = path_of(id);

	return p && p->up;
}

/* Index of the lowest bit of a number that has one. */
static __always_inline __u32 lowest(__u64 x)
{
	__u32 n = 0;

	if (!(__u32)x) {
		n += 32;
		x >>= 32;
	}
	if (!(x & 0xffff)) {
		n += 16;
		x >>= 16;
	}
	if (!(x & 0xff)) {
		n += 8;
		x >>= 8;
	}
	if (!(x & 0xf)) {
		n += 4;
		x >>= 4;
	}
	if (!(x & 3)) {
		n += 2;
		x >>= 2;
	}
	return n + !(x & 1);
}

/* The path of a slot; where that is down, that of another slot by other bits of
 * the number, and after some of those in vain any path that is up, so that all
 * the others share its flows, by weight. Turns are small numbers, whose bits are
 * mixed. NO_PATH: none is up. */
static __always_inline __u32 choose(const struct set *s, __u32 number)
{
	__u32 at = s->slots[number & (SHARES - 1)] & (CHOICES - 1);
	__u64 later;

	if (unlikely(!(s->alive >> at & 1))) {
		if (!s->alive)
			return NO_PATH;
#pragma unroll
		for (int i = 0; i < 4; i++) {
			number = (number + 1) * 0x9e3779b1u;
			at = s->slots[number >> 22 & (SHARES - 1)] & (CHOICES - 1);
			if (s->alive >> at & 1)
				return s->paths[at];
		}
		at = number >> 16 & (CHOICES - 1);
		later = s->alive >> at;
		at = (later ? at + lowest(later) : lowest(s->alive)) & (CHOICES - 1);
	}
	return s->paths[at];
}

/* Turns go through the slots in steps that visit all of them. */
static __always_inline __u32 next_turn(void)
{
	__u32 zero = 0, *turn = bpf_map_lookup_elem(&turns, &zero);

	return turn ? __sync_fetch_and_add(turn, 1) : 0;
}

/* The path of a flow that the table knows, unless it must or may leave it. */
static __always_inline bool stays(const struct set *s, __u32 set, const struct flow *f, __u64 now)
{
	if (f->set != set || !is_up(f->path))
		return false;
	return s->mode != MODE_FLOWLET || now - f->last <= s->gap;
}

/* Not atomic: two processors rarely send one flow at once, and then the loss of
 * a packet in a count changes nothing. */
static __always_inline void count_flow(struct flow *f, __u64 now, __u32 bytes, __u32 packets)
{
	f->packets += packets;
	f->bytes += bytes;
	f->last = now;
}

static __always_inline __u32 select(const struct set *s, __u32 set, const struct flow_key *k, __u32 hash, __u32 bytes, __u32 packets)
{
	struct flow fresh = {}, *f;
	__u64 now;

	if (s->mode == MODE_HASH)
		return choose(s, hash);
	now = s->mode == MODE_FLOWLET ? bpf_ktime_get_ns() : bpf_ktime_get_coarse_ns(); /* else for ageing only */
	f = bpf_map_lookup_elem(&flows, k);
	if (f && stays(s, set, f, now)) {
		count_flow(f, now, bytes, packets);
		return f->path;
	}
	if (s->mode == MODE_ROUND_ROBIN)
		fresh.path = choose(s, next_turn());
	else
		fresh.path = choose(s, s->mode == MODE_FLOWLET ? bpf_get_prandom_u32() : hash);
	fresh.set = set;
	fresh.packets = packets + (f ? f->packets : 0);
	fresh.bytes = bytes + (f ? f->bytes : 0);
	fresh.last = now;
	if (fresh.path != NO_PATH)
		bpf_map_update_elem(&flows, k, &fresh, BPF_ANY);
	return fresh.path;
}

/* Brings the flow table up to date. */
static __always_inline void settle(struct cached_flow *l)
{
	struct flow *f;

	if (!l->packets)
		return;
	if (l->tracked) {
		f = bpf_map_lookup_elem(&flows, &l->key);
		if (f)
			count_flow(f, bpf_ktime_get_coarse_ns(), l->bytes, l->packets);
	}
	l->packets = 0;
	l->bytes = 0;
}

static __always_inline bool same_flow(const struct flow_key *a, const struct flow_key *b)
{
	return a->source == b->source && a->target == b->target && a->ports == b->ports && a->protocol == b->protocol;
}

/* The path of a flow by the tables, OTHERS, or NO_PATH: none is up. *mode is
 * MODE_HASH unless the flow has an entry in the flow table. */
static __noinline __u32 look_up(const struct flow_key *k, __u32 hash, __u32 bytes, __u32 packets, __u32 *mode)
{
	struct prefix to = { .bits = 32, .address = k->target };
	__u32 *set, *path, tunnel = k->protocol >> 8;
	const struct set *s;

	if (tunnel) {
		path = bpf_map_lookup_elem(&tunnels, &tunnel);
		if (path)
			return *path;
	}
	set = bpf_map_lookup_elem(&prefixes, &to);
	if (!set)
		return OTHERS;
	s = bpf_map_lookup_elem(&sets, set);
	if (!s)
		return NO_PATH;
	*mode = s->mode;
	return select(s, *set, k, hash, bytes, packets);
}

/* The path of a flow. Most packets find it where the one before them left it:
 * the tables proper are asked once a tick, and after each change of theirs. */
static __always_inline __u32 path_for(const struct flow_key *k, __u32 bytes, __u32 packets, __u32 hash)
{
	__u32 at = hash >> 8 & (CACHED_FLOWS - 1), generation, mode = MODE_HASH, path;
	struct cached_flow *l = bpf_map_lookup_elem(&flow_cache, &at);
	const struct state *state = state_of();
	__u64 tick = bpf_jiffies64();

	if (!l || !state)
		return NO_PATH;
	generation = *(volatile const __u32 *)&state->generation; /* before the tables are read */
	path = l->path;
	if (l->tick == tick && l->generation == generation && same_flow(&l->key, k) && (path == OTHERS || is_up(path))) {
		l->packets += packets;
		l->bytes += bytes;
		return path;
	}
	settle(l);
	path = look_up(k, hash, bytes, packets, &mode);
	l->key = *k;
	l->path = path;
	l->tracked = mode != MODE_HASH;
	l->generation = generation;
	l->tick = mode == MODE_FLOWLET ? 0 : tick;
	return path;
}
