/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tables of service chains hold, and what a packet carries with it from
 * one step of its chain to the next. */
#pragma once

#include "checksum.h"
#include "contract.h"
#include "maps.h"

enum { RULES = 64, BACKENDS = 64, CHOICES = 251, SLOTS_OF_HOPS = 8192, METADATA = 16, STATED = 64, CONTEXT = 244, OUTER_MOST = 80 };

/* Why a packet was dropped. */
enum drop {
	DROP_UNKNOWN_PATH,
	DROP_WRONG_INDEX, /* the path is known, this index of it is not */
	DROP_TTL,
	DROP_MALFORMED,
	DROP_OAM,          /* the O bit, where nobody speaks OAM */
	DROP_TOO_BIG,      /* for the path to the next host */
	DROP_DENIED,       /* by a firewall */
	DROP_NO_PORT,      /* NAT has none left for this destination */
	DROP_NO_STATE,     /* an answer to nothing that NAT knows */
	DROP_NO_BACKEND,
	DROP_LIMITED,
	DROP_UNKNOWN_FLOW, /* came out of a function, and nobody knows of which path */
	DROP_FRAGMENT,     /* a function needs ports, and the packet has none */
	DROP_SENDER,       /* not from a host of the chain */
	DROP_REFUSED,      /* the kernel could not change the packet */
	DROP_DEAD,         /* for a node that returns nothing any more */
	DROPS,
};

/* What a hop does; each is a program that is called. */
enum step {
	STEP_NONE,
	STEP_FIREWALL,
	STEP_NAT,
	STEP_BALANCER,
	STEP_LIMIT,
	STEP_MIRROR,
	STEP_NODE,
	STEP_AWARE,
	STEP_REMOTE,
	STEP_EGRESS,
	STEP_JUMP, /* goes on with another path and index */
	STEP_CLASSIFIER, /* the same, if a rule says so */
	STEP_SHAPE, /* waits for its rate */
	STEPS,
};

/* struct counts: a large packet counts as what it will be cut into. */
struct counts {
	__u64 packets;
	__u64 bytes;
	__u64 returned; /* from a node that is a function, or a queue; of a classifier: to another path */
	__u64 timed;	/* packets whose time here was taken */
	__u64 spent;	/* by these, ns */
	__u64 drops[DROPS];
	enum drop causes[0]; /* names the indexes of drops for Go */
};

enum { FAIL_UNWATCHED, FAIL_DROP, FAIL_BYPASS, FAIL_REROUTE };

/* struct hop: the row of a path and index. */
struct hop {
	__u32 step;
	__u32 slot;     /* of its counters */
	__u32 function; /* its number, or that of the next host */
	__u32 device;   /* that frames leave by */
	__u32 back;     /* that they come back by; of a queue: the port where its path begins */
	__u8 mac[6];    /* written over the destination */
	__u8 writes;    /* the destination */
	__u8 reverse;   /* from the far side */
	__u8 shared;    /* the node is on several paths: flows tell them apart */
	__u8 enters; /* a mirror's copies come in by the device */
	__u8 fails;  /* FAIL_: what becomes of packets while the node is dead */
	__u8 below;  /* a balancer's: how far below those of its backends packets go on */
	__u8 typed;  /* a queue's: its path has metadata */
	__u32 instead; /* path << 8 | index: where a jump leads, or a packet past a dead node; a queue's class */
	enum step steps[0]; /* names step for Go */
};

/* struct path: whose a path is, and the metadata that packets get where it begins. */
struct path {
	__u32 plane;
	__u8 typed; /* MD type of the metadata; 0: there is none */
	__u8 size;  /* bytes of it */
	__u16 pad;
	__u8 metadata[STATED];
};

/* struct plane: one lease's chains on this host. */
struct plane {
	struct in6_addr local; /* IPv4 in the last four bytes */
	__u32 device;	       /* by which packets from other hosts get into the fabric */
	__u32 slot;	       /* of drops without a hop */
	__u32 oam;
	__u32 compat; /* senders may use port 60001 */
};

/* struct sender: who may send to a plane. */
struct sender {
	struct in6_addr from;
	__u32 plane;
};

/* struct rule: of a classifier or firewall. Addresses and masks of IPv4 are in
 * the last four bytes. Ports in host order. */
struct rule {
	__u64 from[2], from_mask[2], to[2], to_mask[2];
	__u16 from_low, from_high, to_low, to_high;
	__u16 vlan, vlan_mask;
	__u8 proto, proto_mask, dscp, dscp_mask;
	__u8 family; /* 0: both */
	__u8 ports;  /* they matter */
	__u8 typed;  /* its path has metadata */
	__u8 pad;
	__u32 at; /* path << 8 | index; 0 of a classifier on a path: stays; of a firewall: 1 denies */
};

struct rules {
	__u32 count;
	__u32 otherwise; /* of a firewall: 1 denies */
	__u32 plane;
	__u32 pad;
	struct rule rules[RULES];
};

/* struct remote: how packets get to another host of the chain. */
struct remote {
	__u64 flags; /* of bpf_skb_adjust_room */
	__u32 device; /* of the fabric, that leads to the host's namespace */
	__u32 priority;
	__u16 length; /* of the outer headers in front of NSH */
	__u16 udp_at;
	__u16 mtu; /* of the outer IP packet */
	__u16 port_base, port_mask;
	__u16 sum; /* of the outer IPv4 header without its length */
	__u8 family;
	__u8 pad[3];
	__u8 header[OUTER_MOST];
};

/* struct side: the end of a function's port. */
struct side {
	__u32 function;
	__u32 plane;
	__u32 shared;
	__u32 aware; /* of a function that knows NSH: the slot of its first hop; else 0 */
	__u32 watched;
};

/* struct life: whether a node that is watched still returns packets. It is dead when
 * WAITING packets have waited for one window at least, and none came back. While it
 * is, now and then a copy of a packet is sent in, which comes back when it works
 * again. Processors write without a lock: what they miss of one another is a packet. */
struct life {
	__u64 start; /* of the window, ns */
	__u64 window;
	__u64 tried; /* when the last copy was sent in */
	__u64 deaths;
	__u32 early; /* packets without an answer: from before the window */
	__u32 late;  /* and in it */
	__u32 dead;
	__u32 answers; /* copies and probes that came back */
};

enum { WAITING = 8 };

/* struct conn_key: a flow as a function met it. */
struct conn_key {
	__u64 from[2], to[2];
	__u16 from_port, to_port;
	__u8 proto;
	__u8 kind; /* CONN_ */
	__u16 pad;
	__u32 device; /* CONN_NODE: that it comes back by */
};

enum { CONN_OUT, CONN_IN, CONN_NODE, CONN_BACKEND };

/* struct conn: what is remembered of a flow. */
struct conn {
	__u32 address; /* NAT */
	__u16 port;
	__u16 backend;
	__u32 at;   /* node: where it goes on */
	__u32 base; /* node: the header's first word */
	__u32 slot; /* node: of the hop */
	__u32 typed; /* node: it had metadata of type 2 */
	__u8 metadata[METADATA];
};

/* struct probe: a packet whose time in a node is taken. */
struct probe {
	__u64 since; /* ns; 0: none is on its way */
	__u64 print;
};

struct nat {
	__u32 first;  /* address, host order */
	__u32 number; /* of addresses */
	__u16 low, high;
};

struct backend {
	__u32 address; /* network order */
	__u32 at;      /* 0: stays on the path */
	__u8 mac[6];
	__u8 writes;
	__u8 down;
};

struct balancer {
	__u32 address; /* network order */
	__u16 port;    /* host order; 0: any */
	__u16 count;
	struct backend backends[BACKENDS];
	__u8 choices[CHOICES + 5]; /* Maglev: hash to backend; 255: none */
	__u16 target;	 /* port at backends in the place of port, host order; 0: the same */
	__u16 pad;
};

struct bpf_spin_lock {
	__u32 val;
};

struct limit {
	struct bpf_spin_lock lock;
	__u32 burst;  /* bytes */
	__u64 rate;   /* byte/s */
	__u64 last;   /* ns */
	__u64 tokens; /* bytes, in 1/1000000000 */
};

/* What a packet's headers say. Addresses of IPv4 are in the last four bytes;
 * ports in host order, an echo's number stands for both. */
struct flow {
	__u64 from[2], to[2];
	__u16 from_port, to_port;
	__u16 vlan;
	__u16 at; /* of what follows the IP header */
	__u16 ip; /* of the IP header */
	__u8 proto, dscp;
	__u8 family;   /* 0: not IP */
	__u8 ports;    /* are known */
	__u8 fragment; /* not the first */
	__u8 bad;
	__u8 discovers; /* neighbours, as ARP does (RFC 4861): the link's, not a chain's */
};

/* struct walk: a packet on its chain. One per processor: programs of one packet
 * follow one another without another packet's in between. */
struct walk {
	__u64 since; /* ns, when a timed packet came to its hop; 0: it has come to none */
	__u32 turn;  /* counts packets that began to walk */
	__u32 timed;
	__u32 at; /* path << 8 | index */
	__u32 base; /* first word of the header, host order */
	__u32 entry; /* port by which the classifier got it; 0: otherwise */
	__u32 context; /* bytes of metadata */
	__u32 parsed;
	__u32 pad;
	struct hop hop;
	struct flow flow;
	__u8 out[OUTER_MOST];
	__u8 nsh[8 + CONTEXT + 4];
};

MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct walk, 1, 0) walks SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct counts, SLOTS_OF_HOPS, 0) counters SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct hop, SLOTS_OF_HOPS, BPF_F_NO_PREALLOC) hops SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct path, SLOTS_OF_HOPS, BPF_F_NO_PREALLOC) paths SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct plane, 1024, BPF_F_NO_PREALLOC) planes SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, struct sender, __u32, 4096, BPF_F_NO_PREALLOC) senders SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, struct in6_addr, __u32, 1024, BPF_F_NO_PREALLOC) locals SEC(".maps");

/* By the device's number in the fabric. */
MAP(BPF_MAP_TYPE_HASH, __u32, struct rules, 4096, BPF_F_NO_PREALLOC) classifiers SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct side, 4096, BPF_F_NO_PREALLOC) sides SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct life, 4096, BPF_F_NO_PREALLOC) lives SEC(".maps"); /* by the function's number */
MAP(BPF_MAP_TYPE_HASH, __u32, struct conn, 4096, BPF_F_NO_PREALLOC) memories SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct probe, 4096, BPF_F_NO_PREALLOC) probes SEC(".maps"); /* by the device that it comes back by */

/* By the number of a device in the host's namespace: the interface. */
MAP(BPF_MAP_TYPE_HASH, __u32, __u32, 1024, BPF_F_NO_PREALLOC) uplinks SEC(".maps");

/* By the function's number, or the remote's. */
MAP(BPF_MAP_TYPE_HASH, __u32, struct rules, 4096, BPF_F_NO_PREALLOC) firewalls SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct nat, 4096, BPF_F_NO_PREALLOC) nats SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct balancer, 4096, BPF_F_NO_PREALLOC) balancers SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct limit, 4096, BPF_F_NO_PREALLOC) limits SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, __u32, struct remote, 4096, BPF_F_NO_PREALLOC) remotes SEC(".maps");

/* Flows of a function, a table for each: no tenant's flows push out another's. */
struct flows_of_one {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(key_size, sizeof(struct conn_key));
	__uint(value_size, sizeof(struct conn));
	__uint(max_entries, 1);
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__type(key, __u32);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__array(values, struct flows_of_one);
} conns SEC(".maps");

PROGRAMS(STEPS) steps SEC(".maps");
