/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the programs and the agent share: modes, forms, outcomes, maps. */
#pragma once

#include "checksum.h"
#include "contract.h"
#include "kernel.h"
#include "maps.h"

/* When packets from the fabric go past the stack. */
enum shortcut { SHORTCUT_FREE, SHORTCUT_ALWAYS, SHORTCUT_NEVER, SHORTCUTS };

enum {
	RELAYS = 8,   /* of a path */
	CHOICES = 64, /* paths of a prefix, one bit each */
	SHARES = 1024, /* by which weights are rounded */
	IPH = 20,
	UDPH = 8,
	GREH = 4,
	IP6H = 40,
	SRH = 8,  /* in front of its segments */
	SID = 16, /* a segment */
	LISTH = 4, /* in front of the addresses of a relay list */
	NO_PATH = 0xffffffff,
	OTHERS = 0xfffffffe, /* in place of a path: the target has no prefix here */
	CACHED_FLOWS = 2048, /* flows of a processor that find their path in one look-up */
	CACHED_ADDRESSES = 1024, /* addresses allowed by a list without a look-up of prefixes */
};

/* The form of a path's relay list on the wire. */
enum form { FORM_IPIP, FORM_GRE, FORM_UDP, FORM_SRV6, FORMS };

/* FORM_UDP is one UDP header, its destination port PORT_RELAY_LIST, checksum 0, and
 * behind it the list of what the packet visits after its present target:
 *
 *   version 1 (4 bits), addresses (4), what is inside (4), visited (4),
 *   port (16), addresses (32 each)
 *
 * WHOLE: an IPv4 packet is inside; the relay that finds all visited takes
 * everything off. TUNNEL: the list was put into a tunnel's packet behind its
 * UDP header; its last address is the packet's own target. The relay that sends
 * it there takes the list out and puts the port back. */
enum { WHOLE, TUNNEL, LIST_VERSION = 1 };

struct list {
	__u8 first;  /* version, addresses */
	__u8 second; /* inside, visited */
	__be16 port;
};

/* How a flow gets its path. */
enum mode { MODE_HASH, MODE_FLOW, MODE_FLOWLET, MODE_ROUND_ROBIN, MODES };

/* What became of a packet. */
enum outcome {
	OUTCOME_SPREAD, /* left by a path */
	OUTCOME_NATIVE, /* no path is up: left as it was */
	OUTCOME_TOO_BIG, /* headers do not fit into the interface's MTU: sender told, or left as it was */
	OUTCOME_REFUSED, /* the kernel could not add headers: left as it was */
	OUTCOME_RELAYED, /* a header was taken off */
	OUTCOME_DROP_SOURCE, /* dropped: from no sender of the fabric */
	OUTCOME_DROP_CHECKSUM, /* dropped: outer header damaged */
	OUTCOME_DROP_FRAGMENT, /* dropped: fragments of tunnel packets are never sent */
	OUTCOME_DROP_MALFORMED, /* dropped: options, wrong lengths, or no IPv4 inside */
	OUTCOME_DROP_NESTED, /* dropped: more headers for this node than a path has */
	OUTCOME_DROP_OUTSIDE, /* dropped: what is inside is not for the fabric */
	OUTCOME_DROP_CONGESTED, /* dropped: marked on its way, but its sender knows no marks (RFC 6040) */
	OUTCOME_ECHOED, /* a probe of this host came back */
	OUTCOME_DROP_FORGED, /* dropped: looks like a probe, but this host did not send it */
	OUTCOME_FORWARDED, /* another's, sent to its next hop past the stack */
	OUTCOMES,
};

struct prefix {
	__u32 bits;
	__be32 address;
};

/* The paths to a prefix. Replaced as a whole: packets see the old or the new. */
struct set {
	struct prefix name; /* the first of those that lead here */
	enum mode mode;
	__u32 count;
	__u64 gap;   /* ns without a packet after which a flowlet may move */
	__u64 alive; /* paths that are up */
	__u32 paths[CHOICES];
	__u8 slots[SHARES]; /* index of a path; each has its weight's part of them */
};

/* All headers of a path, outermost first, with length, tos and checksum 0; of
 * FORM_SRV6 the source and then the segments, 16 bytes each. */
struct path {
	__u32 up;
	__u32 count; /* of relays */
	enum form form;
	__u8 headers[RELAYS][IPH]; /* bytes: bit fields have no Go type */
	__u16 sums[RELAYS]; /* of each header's words, as they lie in memory */
};

struct flow_key {
	__be32 source, target;
	__u32 ports;
	__u32 protocol; /* and above it the number of a tunnel */
};

struct flow {
	__u32 path;
	__u32 set;
	__u64 packets, bytes;
	__u64 last; /* ns */
};

struct counts {
	__u64 packets, bytes;
};

/* Where a flow went lately, and what it carried since its entry in the flow
 * table was last brought up to date. Sound for one tick and one generation. */
struct cached_flow {
	struct flow_key key;
	__u64 tick;       /* jiffies */
	__u32 generation; /* of the tables */
	__u32 path;
	__u32 packets, tracked;
	__u64 bytes;
};

/* Where a flow goes from here. Sound for one tick. */
struct hop {
	struct flow_key key; /* tos above the protocol */
	__u64 tick;
	__u32 from, to; /* devices */
	__u16 target[3], source[3];
	__u32 mtu;
};

/* What the programs must see at once of what user space changed. */
struct state {
	__u32 generation; /* one more with each change of sets, prefixes, flows */
	__u32 acl_gen;    /* likewise, of senders and allowed_inner; never 0 */
	__u32 tunnels;    /* some have a path of their own */
	enum shortcut shortcut; /* when packets from the fabric go to their next hop past the stack */
	__u32 wires_gso;  /* all wires carry large packets, since they are within this kernel */
	__u32 unused;
	__u64 locals[64]; /* a bit for each address of this node, by near() */
	enum outcome outcomes[0]; /* names them for Go */
};

/* The last probe of a path that came back. */
struct probe {
	__u64 secret; /* of this path's probes, drawn by the agent */
	__u64 at;     /* ns */
	__u32 heard;  /* its number; they are sent in order from 1 */
	__u32 unused;
};

/* What a probe carries behind its UDP header, in the byte order of the host,
 * which is the only one to read it. */
struct probe_text {
	__u32 magic, path;
	__u64 secret;
	__u32 number, unused;
};

MAP(BPF_MAP_TYPE_LPM_TRIE, struct prefix, __u32, 1 << 16, BPF_F_NO_PREALLOC) prefixes SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, __u32, struct set, 1 << 14, BPF_F_NO_PREALLOC) sets SEC(".maps");

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct path, 8192, 0) paths SEC(".maps");

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct counts, 8192, 0) loads SEC(".maps");

/* A flood of new flows pushes out the ones longest unused, and no more. */
MAP(BPF_MAP_TYPE_LRU_HASH, struct flow_key, struct flow, 1 << 16, 0) flows SEC(".maps");

/* The path of a tunnel, by its number (VXLAN, Geneve), whatever its target. */
MAP(BPF_MAP_TYPE_HASH, __u32, __u32, 8192, BPF_F_NO_PREALLOC) tunnels SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, __u32, struct probe, 8192, BPF_F_NO_PREALLOC) probes SEC(".maps");

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct cached_flow, CACHED_FLOWS, 0) flow_cache SEC(".maps");

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct hop, CACHED_FLOWS, 0) hops SEC(".maps");

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct state, 1, 0) states SEC(".maps");

/* Addresses that were found in senders (the first CACHED_ADDRESSES) and in
 * allowed_inner: address, and above it acl_gen at that time. */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u64, 2 * CACHED_ADDRESSES, 0) acl_cache SEC(".maps");

/* Next turn of round robin. */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u32, 1, 0) turns SEC(".maps");

/* Addresses at which this node takes headers off. */
MAP(BPF_MAP_TYPE_HASH, __be32, __u32, 256, 0) locals SEC(".maps");

/* Outer source addresses of the fabric's senders. */
MAP(BPF_MAP_TYPE_LPM_TRIE, struct prefix, __u32, 1 << 16, BPF_F_NO_PREALLOC) senders SEC(".maps");

/* Where packets may go when their headers are off. */
MAP(BPF_MAP_TYPE_LPM_TRIE, struct prefix, __u32, 1 << 16, BPF_F_NO_PREALLOC) allowed_inner SEC(".maps");

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, OUTCOMES, 0) outcomes SEC(".maps");

static __always_inline int became(enum outcome what, int verdict)
{
	__u32 key = what;
	__u64 *n = bpf_map_lookup_elem(&outcomes, &key);

	if (n)
		(*n)++;
	return verdict;
}

static __always_inline struct state *state_of(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&states, &zero);
}

/* Not IPv4, or of a VLAN, which is a network of its own. */
static __always_inline bool is_foreign(const struct __sk_buff *skb)
{
	return skb->protocol != bpf_htons(ETH_P_IP) || skb->vlan_present;
}
