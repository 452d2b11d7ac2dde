/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The datapath contract: every number by which two programs, or a program and
 * an agent, understand each other. docs/datapath.md has where each of them is
 * written and read along a packet's path.
 *
 * contract.go is made of this file by "go generate ./datapath/bpf", which reads
 * comments and lines of the form "NAME = value, comment", and nothing else.
 */
#pragma once

/* skb->mark: the kind of a mark in its highest bits, a VNI in its lowest. A mark
 * is of one kind at most. No bit of the kind: the VNI of the tunnel that a frame
 * goes into, or came out of. */
enum mark {
	MARK_VNI = 0xffffff, /* bits of the VNI */
	MARK_CONTROL = 1u << 28, /* beside a VNI or 0: control in band of an OpenFlow switch, which has a class of its own in the queue of its link */
	MARK_KIND = 7u << 29, /* bits of the kind */
	MARK_PROBE = 1u << 29 | 0x1b0001, /* kind: a probe of this host's, by no chosen path; the low bits tell it from operators' marks */
	MARK_DECAP = 1u << 30, /* kind: checked by overlay_rx; a VXLAN device of the kernel's takes the headers off */
	MARK_INBOUND = 1u << 31, /* kind: out of a tunnel; goes to the peer of the device that it is on */
};

/* skb->cb, indexes of words. They last from one program to the one it calls. */
enum cb {
	CB_SLOT = 0, /* slot of the port that a frame enters or leaves by */
	CB_PORT = 1, /* number of that port with its owner, when a port_ref is made */
	CB_STEPS = 3 /* steps that OpenFlow switches sent a frame straight on */
};

/* Numbers of devices in a lease's fabric: FIRST_DEVICE + slot. The kernel numbers
 * other devices from 1 on. Slot 0 is of nothing. */
enum device {
	SLOTS = 16384,
	FIRST_DEVICE = 0x100000
};

/* skb->priority: the HTB class of the physical interface, CLASS_MAJOR << 16 |
 * minor. Where a device between two programs clears it, the minor number is in
 * skb->tc_index. */
enum class {
	CLASS_MAJOR = 1
};

/* UDP ports, host byte order. */
enum udp_port {
	PORT_LATENCY = 840, /* of probes between the ends of tunnels, both ports: only root of a host can send from it */
	PORT_PROBE = 3785, /* of probes (BFD echo, RFC 5881) */
	PORT_ESP = 4500, /* of ESP behind UDP (RFC 3948) */
	PORT_LISP = 4341, /* RFC 9300 */
	PORT_VXLAN = 4789, /* RFC 7348 */
	PORT_VXLAN_GPE = 4790, /* IANA */
	PORT_GUE = 6080, /* draft-ietf-intarea-gue-09 */
	PORT_GENEVE = 6081, /* RFC 8926 */
	PORT_DECAP = 14789, /* of the decap device, within a host only */
	PORT_RELAY_LIST = 50862, /* of packets with a relay list, docs/multipath.md */
	PORT_NSH = 61440, /* NSH of service chains straight behind UDP; nobody assigned it, docs/chains-packets.md */
	PORT_NSH_SOURCE = 60001, /* source port that some senders of it use always */
	PORT_USER = 1024, /* the first that any user of a host may send from */
	PORT_STACK = 14790, /* of VXLAN by the host's own stack (kernel-vxlan); nobody assigned it */
	PORT_LEASE_FIRST = 751, /* source ports of leases' tunnels, this one and those behind it: root's, and nothing to analysers (tshark -G decodes) */
	PORT_LEASE_COUNT = 102,
	PORT_LEASE_BASE = 768, /* source ports of leases' chains, base | (hash & mask), likewise */
	PORT_LEASE_MASK = 63,
	PORT_FLOW_FIRST = 0xc000, /* source ports of other outer headers (RFC 6335, dynamic) */
	PORT_FLOW_COUNT = 0x4000
};

/* The outer type of service: DSCP << 2 (RFC 2474). Best effort has 0. A tenant's
 * own DSCP stays inside (RFC 2983, pipe); ECN is copied out (RFC 6040). */
enum tos {
	TOS_LEASE = 0xa0, /* CS5 */
	TOS_PROBE = 0xc0 /* CS6, network control: probes tell of paths, not of queues */
};

/* The first word behind the UDP header of a probe, in the byte order of the host. */
enum magic {
	PROBE_MAGIC = 0x69706c62
};

/* A probe between the ends of a tunnel, behind its UDP header: the first word, in
 * the byte order of the host, and where overlay_rx writes the time of its arrival. */
enum latency {
	LATENCY_MAGIC = 0x6c61746e,
	LATENCY_ARRIVED = 32 /* eight bytes, CLOCK_MONOTONIC in ns */
};
