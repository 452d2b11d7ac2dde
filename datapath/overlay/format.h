/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tables hold: entries, protocols, receiving ends; their maps. */
#pragma once

#include "checksum.h"
#include "contract.h"
#include "maps.h"

enum { HEADER = 112, IDENTIFIER = 16 };

/* Why a packet was dropped. */
enum drop {
	DROP_UNKNOWN,    /* no entry, or no tunnel of that number from that kind */
	DROP_UNRESOLVED, /* there is no route to the other end at the moment */
	DROP_TOO_BIG,    /* more than the path carries */
	DROP_NOT_CARRIED, /* not IP in a tunnel for IP, or more than two VLAN tags */
	DROP_MALFORMED,  /* outer headers that nobody sends */
	DROP_SENDER,     /* not from the tunnel's other end */
	DROP_PORT,       /* from a port that any user of the other end can have */
	DROP_INTERFACE,  /* by another interface than the tunnel's */
	DROP_CONGESTED,  /* marked on its way, but its sender cannot know marks (RFC 6040) */
	DROP_REFUSED,    /* the kernel could not change the packet */
	DROPS,
};

/* Indexes of what an inner packet may be. */
enum { INNER4, INNER6 };

/* Headers that have a writer of their own: their length, and where UDP, the word
 * of the inner protocol and the flow's byte are in them. Go reads that out of the
 * names. What fits none is written through a copy. */
enum shape {
	SHAPE_ANY,
	SHAPE_50_UDP34,
	SHAPE_70_UDP54,
	SHAPE_74_UDP34,
	SHAPE_38,
	SHAPE_42,
	SHAPE_42_FLOW41,
	SHAPE_34_WORD22,
	SHAPE_38_WORD36,
	SHAPE_46_UDP34_WORD42,
	SHAPES,
};

/* One entry: the complete outer headers, and what of them a packet changes.
 * Words are 16 bits as they lie in the packet. */
struct entry {
	__u64 flags;   /* of bpf_skb_adjust_room */
	__u32 device;  /* that packets leave by; 0: unresolved */
	__u32 slot;    /* of its counters */
	__u16 length;  /* of the header in use */
	__u16 room;    /* to make behind the Ethernet header */
	__u16 mtu;     /* of the inner packet */
	__u16 word_at; /* where a word names the inner protocol; 0: nowhere */
	__u16 word[2]; /* that word for IPv4 and IPv6 inside */
	__u16 sum[2];  /* the outer IPv4 header's sum without its length, likewise */
	__u16 udp_at;  /* of the UDP header; 0: none */
	__u16 port_first, port_count; /* source port = first + one of count by the hash */
	__u8 family;   /* outer: 4 or 6 */
	__u8 layer;    /* of what travels: 2 or 3 */
	__u8 flow_at;  /* of a byte for the flow's hash (NVGRE); 0: none */
	__u8 shape;    /* SHAPE_: which of the fast writers fits */
	__u8 whole;    /* datagrams to be cut stay whole: the other end can take them */
	__u8 stack;    /* the host's stack puts the headers on */
	__u8 pad[4];
	__u8 header[HEADER]; /* Ethernet, IP, UDP, tunnel */
	enum shape shapes[0]; /* names shape for Go */
};

/* Where packets of a device have their identifier. */
struct front {
	__u32 profile;
	__u16 offset;  /* bytes from the Ethernet header's start */
	__u16 bits;    /* 0 to 128; 0: all packets go by the one entry */
	__u32 longest; /* match the longest prefix instead of all bits */
};

/* prefix is 32 + the identifier's bits; the profile is always matched whole. */
struct name {
	__u32 prefix;
	__u32 profile; /* network order, for the trie */
	__u8 id[IDENTIFIER];
};

/* The kind of protocol that programs know. */
enum kind { KIND_VXLAN = 1, KIND_STACK = 10 };

/* How packets of one protocol look behind the outer IP header. */
struct format {
	__u32 kind;
	__u8 layer;      /* of what is inside: 2, 3 */
	__u8 udp;        /* 8 with a UDP header, else 0 */
	__u8 length;     /* of the tunnel header, without what varies */
	__u8 id_at;      /* of the 32 bits with the identifier in it; 0xff: told by sender */
	__u8 id_shift;   /* right, to get the identifier out of them */
	__u8 vary_at;    /* of a byte that gives the length of options; 0xff: none */
	__u8 vary_mask;
	__u8 vary_less;  /* of the units, how many are counted in length */
	__be32 match, mask; /* what the first four bytes must be */
	__u8 check_at;   /* of one more byte that must be check; 0xff: none */
	__u8 check;
	__u8 next_at;    /* of a byte that must be 4 or 41, as the inner version; 0xff: none */
	__u8 version;    /* of the inner IP: 4, 6; 0: as it says */
	__u8 stack;      /* checked, then left to the host's stack */
	__u8 pad[3];
	enum kind kinds[0]; /* names kind for Go */
};

/* The receiving end of a tunnel. */
struct tunnel_end {
	struct in6_addr remote, local; /* IPv4 in the last four bytes, the rest 0 */
	__u32 uplink; /* interface that its packets come in by; 0: any */
	__u32 target; /* whose peer takes what was inside */
	__u32 mark;
	__u32 slot;
	__u16 ports;  /* source ports are below; 0: any */
	__u8 deliver; /* DELIVER_ */
	__u8 many;    /* any of its senders may send, instead of remote */
	__u8 pad[2];
	__u8 ethernet[12]; /* addresses in front of what came without */
	__u8 pad2[2];
};

/* One of the senders of an end with many, by its key. */
struct sender {
	__u64 end;
	struct in6_addr address;
};

enum { DELIVER_PEER, DELIVER_INGRESS };

struct counts {
	__u64 sent, sent_bytes;         /* packets on the wire, bytes of inner frames */
	__u64 received, received_bytes; /* likewise */
	__u64 drops[DROPS];
	enum drop causes[0]; /* names the indexes of drops for Go */
};

MAP(BPF_MAP_TYPE_HASH, __u32, struct entry, 1 << 17, BPF_F_NO_PREALLOC) entries SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, __u32, struct front, 1 << 10, BPF_F_NO_PREALLOC) fronts SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, struct name, struct entry, 1 << 17, BPF_F_NO_PREALLOC) names SEC(".maps");

MAP(BPF_MAP_TYPE_LPM_TRIE, struct name, struct entry, 1 << 17, BPF_F_NO_PREALLOC) prefixes SEC(".maps");

/* Protocols, by IP protocol << 24 | UDP port, or EtherType of GRE with
 * GRE_KEY if there is a key. */
#define GRE_KEY (1u << 16)

MAP(BPF_MAP_TYPE_HASH, __u32, struct format, 32, 0) formats SEC(".maps");

/* Receiving ends, by kind << 32 | identifier. */
MAP(BPF_MAP_TYPE_HASH, __u64, struct tunnel_end, 1 << 17, BPF_F_NO_PREALLOC) ends SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, struct sender, __u32, 1 << 17, BPF_F_NO_PREALLOC) senders SEC(".maps");

/* Addresses of this host that tunnels end at. */
MAP(BPF_MAP_TYPE_HASH, struct in6_addr, __u32, 1 << 10, BPF_F_NO_PREALLOC) locals SEC(".maps");

/* Counters by slot; slot 0 is for what belongs to no entry. */
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct counts, 1 << 12, 0) hits SEC(".maps");

/* The item of the plan that an entry was made for, as JSON. For user space only. */
struct owner {
	__u8 text[640];
};

MAP(BPF_MAP_TYPE_HASH, __u32, struct owner, 1 << 17, BPF_F_NO_PREALLOC) owners SEC(".maps");

/* The device whose queue segments packets (GSO), so that they come back in pieces. */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u32, 1, 0) gso_device SEC(".maps");

/* The UDP port, in network order, of a VXLAN device of the kernel's that takes
 * the headers off large packets of datagrams; 0: there is none. */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u32, 1, 0) decap_port SEC(".maps");

/* The VXLAN device of the kernel's by which packets of the host's stack leave and arrive;
 * 0: there is none. */
MAP(BPF_MAP_TYPE_ARRAY, __u32, __u32, 1, 0) stack_device SEC(".maps");

static __always_inline int drop(__u32 slot, enum drop why)
{
	return DROP((struct counts *)bpf_map_lookup_elem(&hits, &slot), why);
}
