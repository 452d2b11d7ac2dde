//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What becomes of a frame that enters a virtual link by one of its ends.
 *
 * Every device of a fabric has a number of its own on the host, FIRST_DEVICE +
 * slot, so that one program serves all of them; a frame out of a tunnel comes by
 * its lease's trunk with the tunnel's VNI as mark.
 */
#include "chain.h"
#include "maps.h"
#include "packet.h"

LICENSE;

enum action {
	FWD_CLOSED, /* leads nowhere: the link is not complete */
	FWD_PEER,   /* to the node behind a port, at once */
	FWD_SWITCH, /* to the switch behind a port, at once, whomever it is for */
	FWD_QUEUE,  /* to what is behind a port, through the port's token bucket */
	FWD_TUNNEL, /* to the trunk's other end, in the host's namespace */
	FWD_SPREAD, /* the same, each flow by one of several tunnels */
	FWD_DIVIDE, /* the same, each numbered frame by one of several tunnels */
	FWD_MERGE,  /* to the process that puts numbered frames back into order */
};

enum drop {
	DROP_CLOSED,   /* the end leads nowhere */
	DROP_STRANGER, /* came by another device than the end's */
	DROP_UNKNOWN,  /* bears no tunnel's VNI; counted in slot 0 */
	DROP_UNTAKEN,  /* nobody encapsulates what comes out of a trunk; in slot 0 */
	DROPS,
};

/* struct end: 'from' and 'device' are interface numbers in the fabric. */
struct end {
	__u32 from;     /* frames of this end come in by it */
	__u32 device;   /* and leave by it: the other port, or the trunk */
	__u32 mark;     /* VNI, if by a tunnel */
	__u32 priority; /* HTB class of the physical interface, if by a tunnel */
	enum action action;
	__u8 mac[6]; /* of the node behind the other port */
	__u8 control; /* frames of control have a class of their own: see controls */
	__u8 gre;     /* if by a tunnel: its headers are those of NVGRE, see uncounted() */
};

#define CONTROLS 16

/* struct controllers: controllers of OpenFlow switches in band, and gateways to them. */
struct controllers {
	__u32 count;
	struct controller {
		struct in6_addr address; /* of IPv4 as ::ffff:0:0/96 */
		__be16 port;	       /* 0: a gateway */
	} list[CONTROLS];
};

#define BRANCHES 8

/* struct branch: one of the tunnels that flows are spread over. */
struct branch {
	__u16 units; /* its weight; 0: there is none */
	__u8 gre;    /* as in struct end */
	__u8 zero;
	__u32 mark, priority;
};

/* struct spread: the tunnels of a link's paths, by their numbers. */
struct spread {
	struct branch branches[BRANCHES];
};

/* struct divided: how far each of the tunnels is, in bytes by weight, and the least
 * of them. Only the thread of one process sends numbered frames of a link. */
struct divided {
	__u64 least, ahead[BRANCHES];
};

/* What a numbered frame has behind its addresses (datapath/impair, merge.go). */
struct tag {
	__be16 type;
	__u8 path, epoch;
	__be32 number;
};

enum { TAG_AT = 12, TAG_TYPE = 0x88b5 };

/* struct counts: of frames as on a wire, each segment of a large packet one. */
struct counts {
	__u64 packets;
	__u64 bytes;
	__u64 uncounted; /* bytes of headers that an old kernel's queue does not see, see uncounted() */
	__u64 drops[DROPS];
	enum drop causes[0]; /* names the indexes of drops for Go */
};

/* struct record says whose a slot is, and what a tunnel was planned to be. No
 * program reads it. A trunk has no link. */
struct record {
	__u8 tenant[40], network[40], link[40];
	__u32 index, end;
	__u8 is_tunnel, list; /* bytes of the relay list that its packets get */
	__u16 units;	     /* of the link's flows; 0: its only path */
	__u32 vni, uplink, mtu;
	__u16 minor;
	__u8 best_effort, standby; /* standby: of a link that sends nothing, see plan.VxLink */
	__u16 address; /* bytes of local and remote that count */
	__u8 protocol; /* by its number in vnet.LeaseEncapsulations */
	__u8 zero;
	__u8 local[16], remote[16];
	__u64 shaped;     /* tenants' frames, byte/s; 0: not here */
	__u64 rate, ceil; /* outer frames, byte/s */
};

MAP(BPF_MAP_TYPE_ARRAY, __u32, struct end, SLOTS, 0) ends SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct counts, SLOTS, 0) counters SEC(".maps");

/* Programs that decide on frames for the switch or router behind a slot's port,
 * without a step into its namespace. */
PROGRAMS(SLOTS) chain SEC(".maps");

/* VNI to the slot of the tunnel's end. */
MAP(BPF_MAP_TYPE_HASH, __u32, __u32, SLOTS, BPF_F_NO_PREALLOC) tunnels SEC(".maps");

/* A port's slot to the tunnels of its link's paths. */
MAP(BPF_MAP_TYPE_HASH, __u32, struct spread, SLOTS, BPF_F_NO_PREALLOC) spreads SEC(".maps");

/* A slot to what is control of those frames that enter by its end. */
MAP(BPF_MAP_TYPE_HASH, __u32, struct controllers, SLOTS, BPF_F_NO_PREALLOC) controls SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, __u32, struct divided, SLOTS, BPF_F_NO_PREALLOC) divisions SEC(".maps");

MAP(BPF_MAP_TYPE_HASH, __u32, struct record, SLOTS, BPF_F_NO_PREALLOC) records SEC(".maps");

static __always_inline int drop(__u32 slot, enum drop cause)
{
	return DROP((struct counts *)bpf_map_lookup_elem(&counters, &slot), cause);
}

/* Bytes before the data of each segment: Ethernet, up to two VLAN tags, IP,
 * TCP or UDP. 0: something else, such as a tenant's own tunnel. */
static __always_inline __u32 header_bytes(struct __sk_buff *skb, bool *tcp)
{
	__u32 at = 12;
	__be16 type = 0;
	__u8 b[20], next;

	for (int i = 0; i < 3; i++) {
		if (bpf_skb_load_bytes(skb, at, &type, 2))
			return 0;
		at += 2;
		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		at += 2;
	}
	if (bpf_skb_load_bytes(skb, at, b, 20))
		return 0;
	if (type == bpf_htons(ETH_P_IP)) {
		next = b[9];
		at += (b[0] & 15) * 4;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		next = b[6];
		at += 40;
	} else {
		return 0;
	}
	if (next == IPPROTO_UDP)
		return at + 8;
	if (next != IPPROTO_TCP || bpf_skb_load_bytes(skb, at + 12, b, 1))
		return 0;
	*tcp = true;
	return at + (b[0] >> 4) * 4;
}

/* Counts a frame. Of large ones of TCP it says how long the header of each
 * segment is, else 0. */
static __always_inline __u32 count(struct __sk_buff *skb, struct counts *c)
{
	__u32 bytes = skb->len, packets = 1, size = skb->gso_size, header = 0;
	bool tcp = false;

	if (unlikely(size)) {
		header = header_bytes(skb, &tcp);
		if (header < bytes) {
			packets = (bytes - header + size - 1) / size;
			bytes += (packets - 1) * header;
		}
	}
	COUNT(c, packets, bytes);
	return tcp && header < skb->len ? header : 0;
}

/* What the headers of a tunnel's packet are, and where the queue of a kernel
 * before Linux 6.17 begins to look for a TCP header: behind the outer IPv4
 * header, where it finds UDP's, or GRE's. What it takes for that header's length
 * are the highest bits of the VNI of VXLAN and Geneve, and behind GRE with its key
 * those of the fifth byte of the frame (qdisc_pkt_len_init in net/core/dev.c). Over
 * IPv6 both are 20 bytes more. */
enum { OUTER = 50, OUTER_GRE = 42, OUTER_SEEN = 34, VNI_LENGTH = 20, GRE_SEES = 4 };

/* Counts the headers of a large TCP frame that such a queue leaves out: it also
 * takes those it does not see for data of one more segment. */
static __always_inline void uncounted(struct __sk_buff *skb, struct counts *c, __u32 header, bool gre)
{
	__u32 size = skb->gso_size, outer = gre ? OUTER_GRE : OUTER, words = skb->mark >> VNI_LENGTH & 15;
	__u8 byte = 0;

	if (unlikely(gre) && !bpf_skb_load_bytes(skb, GRE_SEES, &byte, 1))
		words = byte >> 4;
	__u32 seen = OUTER_SEEN + words * 4;
	__u32 further = (skb->len - header - 1) / size, further_seen = (skb->len + outer - seen - 1) / size;
	__u64 all = (__u64)further * (header + outer), told = (__u64)further_seen * seen;

	if (all > told)
		c->uncounted += all - told;
}

/* A frame that did not come through a port's queue is taken for the node's own
 * by its stack, whatever its address (bpf_redirect_peer): so only one that is. */
static __always_inline bool is_for(struct __sk_buff *skb, const struct end *e)
{
	void *data = data_of(skb);

	return data + ETH_HLEN <= end_of(skb) && mac_equal(data, e->mac);
}

/* Chooses a tunnel for a frame by its flow, so that a flow keeps its order:
 * each gets flows by its weight. False: there is none. */
static __always_inline bool choose(struct __sk_buff *skb, __u32 slot, bool *gre)
{
	struct spread *s = bpf_map_lookup_elem(&spreads, &slot);
	__u32 all = 0, at;

	if (!s)
		return false;
	for (int i = 0; i < BRANCHES; i++)
		all += s->branches[i].units;
	at = (__u64)bpf_get_hash_recalc(skb) * all >> 32;
	for (int i = 0; i < BRANCHES; i++) {
		struct branch *b = &s->branches[i];

		if (at < b->units) {
			skb->mark = b->mark;
			skb->priority = b->priority;
			*gre = b->gre;
			return true;
		}
		at -= b->units;
	}
	return false;
}

/* The division of a slot's frames, which begins with its first. */
static __always_inline struct divided *division(__u32 slot)
{
	struct divided *d = bpf_map_lookup_elem(&divisions, &slot), none = {};

	if (d)
		return d;
	bpf_map_update_elem(&divisions, &slot, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&divisions, &slot);
}

/* Chooses a tunnel for a numbered frame, the one that is least ahead after it, and
 * writes it into the tag. A tunnel that is new begins where the last one is. */
static __always_inline bool divide(struct __sk_buff *skb, __u32 slot)
{
	struct spread *s = bpf_map_lookup_elem(&spreads, &slot);
	struct divided *d = division(slot);
	__u64 best = ~0ULL, least = ~0ULL;
	__u32 chosen = BRANCHES;
	__be16 type;
	__u8 path;

	if (!s || !d || bpf_skb_load_bytes(skb, TAG_AT, &type, sizeof(type)) || type != bpf_htons(TAG_TYPE))
		return false;
	for (__u32 i = 0; i < BRANCHES; i++) {
		__u32 units = s->branches[i].units;
		__u64 from = d->ahead[i], after;

		if (!units)
			continue;
		if (from < d->least)
			from = d->ahead[i] = d->least;
		if (from < least)
			least = from;
		after = from + ((__u64)skb->len << 8) / units;
		if (after < best) {
			best = after;
			chosen = i;
		}
	}
	if (chosen >= BRANCHES)
		return false;
	d->least = least;
	d->ahead[chosen] = best;
	path = chosen;
	skb->mark = s->branches[chosen].mark;
	skb->priority = s->branches[chosen].priority;
	return bpf_skb_store_bytes(skb, TAG_AT + __builtin_offsetof(struct tag, path), &path, 1, 0) == 0;
}

/* To what is behind a port: to its program, or else to the port. */
static __always_inline int enter(struct __sk_buff *skb, __u32 device)
{
	skb->cb[CB_SLOT] = device - FIRST_DEVICE;
	bpf_tail_call(skb, &chain, device - FIRST_DEVICE);
	return bpf_redirect_peer(device, 0);
}

#include "control.h"

/* A frame that entered by a slot's end, which is the one of a device. */
static __always_inline int forward(struct __sk_buff *skb, __u32 slot, __u32 device)
{
	struct end *e = bpf_map_lookup_elem(&ends, &slot);
	struct counts *c = bpf_map_lookup_elem(&counters, &slot);
	__u32 large;

	if (!e || !c)
		return drop(0, DROP_UNKNOWN);
	if (unlikely(e->action == FWD_CLOSED))
		return drop(slot, DROP_CLOSED);
	if (unlikely(e->from != device))
		return drop(slot, DROP_STRANGER);
	large = count(skb, c);
	skb->mark = e->mark;
	skb->priority = e->priority;
	__u32 control = unlikely(e->control) && is_control(skb, slot) ? MARK_CONTROL : 0;

	if (unlikely(e->action == FWD_SPREAD)) {
		bool gre = false;

		if (!choose(skb, slot, &gre))
			return drop(slot, DROP_CLOSED);
		skb->mark |= control;
		if (large)
			uncounted(skb, c, large, gre);
		return bpf_redirect_peer(e->device, 0);
	}
	if (unlikely(e->action == FWD_DIVIDE)) {
		if (!divide(skb, slot))
			return drop(slot, DROP_CLOSED);
		return bpf_redirect_peer(e->device, 0);
	}
	if (unlikely(e->action == FWD_MERGE)) { /* tags are no bytes of the tenant's */
		c->bytes -= sizeof(struct tag);
		return bpf_redirect(e->device, 0);
	}
	if (unlikely(control))
		skb->mark |= control;
	if (e->action == FWD_TUNNEL) {
		if (unlikely(large))
			uncounted(skb, c, large, e->gre);
		return bpf_redirect_peer(e->device, 0);
	}
	if (e->action == FWD_SWITCH || (e->action == FWD_PEER && is_for(skb, e)))
		return enter(skb, e->device);
	return bpf_redirect(e->device, 0);
}

/* On a port's device in the fabric: a frame of the node. */
SEC("tc")
int vxlink_port(struct __sk_buff *skb)
{
	return forward(skb, skb->ifindex - FIRST_DEVICE, skb->ifindex);
}

/* Called by a switch's or router's program: a frame that leaves it by a port. */
SEC("tc")
int vxlink_next(struct __sk_buff *skb)
{
	__u32 slot = slot_of(skb);

	return forward(skb, slot, FIRST_DEVICE + slot);
}

/* On a trunk's end in the fabric: a frame out of a tunnel. */
SEC("tc")
int vxlink_trunk(struct __sk_buff *skb)
{
	__u32 vni = skb->mark;
	__u32 *slot = bpf_map_lookup_elem(&tunnels, &vni);

	if (!slot)
		return drop(0, DROP_UNKNOWN);
	return forward(skb, *slot, skb->ifindex);
}

/* On a trunk's end in the host's namespace, behind the program that
 * encapsulates: without that one, frames end here and not in the host. */
SEC("tc")
int vxlink_closed(struct __sk_buff *skb)
{
	return drop(0, DROP_UNTAKEN);
}
