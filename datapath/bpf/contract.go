// Code generated from include/contract.h by tools/contract; DO NOT EDIT.

package bpf

// skb->mark: the kind of a mark in its highest bits, a VNI in its lowest. A mark
// is of one kind at most. No bit of the kind: the VNI of the tunnel that a frame
// goes into, or came out of.
const (
	MarkVNI     = 0xffffff         // bits of the VNI
	MarkControl = 1 << 28          // beside a VNI or 0: control in band of an OpenFlow switch, which has a class of its own in the queue of its link
	MarkKind    = 7 << 29          // bits of the kind
	MarkProbe   = 1<<29 | 0x1b0001 // kind: a probe of this host's, by no chosen path; the low bits tell it from operators' marks
	MarkDecap   = 1 << 30          // kind: checked by overlay_rx; a VXLAN device of the kernel's takes the headers off
	MarkInbound = 1 << 31          // kind: out of a tunnel; goes to the peer of the device that it is on
)

// skb->cb, indexes of words. They last from one program to the one it calls.
const (
	CBSlot  = 0 // slot of the port that a frame enters or leaves by
	CBPort  = 1 // number of that port with its owner, when a port_ref is made
	CBSteps = 3 // steps that OpenFlow switches sent a frame straight on
)

// Numbers of devices in a lease's fabric: FIRST_DEVICE + slot. The kernel numbers
// other devices from 1 on. Slot 0 is of nothing.
const (
	Slots       = 16384
	FirstDevice = 0x100000
)

// skb->priority: the HTB class of the physical interface, CLASS_MAJOR << 16 |
// minor. Where a device between two programs clears it, the minor number is in
// skb->tc_index.
const (
	ClassMajor = 1
)

// UDP ports, host byte order.
const (
	PortLatency    = 840   // of probes between the ends of tunnels, both ports: only root of a host can send from it
	PortProbe      = 3785  // of probes (BFD echo, RFC 5881)
	PortEsp        = 4500  // of ESP behind UDP (RFC 3948)
	PortLISP       = 4341  // RFC 9300
	PortVXLAN      = 4789  // RFC 7348
	PortVXLANGPE   = 4790  // IANA
	PortGUE        = 6080  // draft-ietf-intarea-gue-09
	PortGeneve     = 6081  // RFC 8926
	PortDecap      = 14789 // of the decap device, within a host only
	PortRelayList  = 50862 // of packets with a relay list, docs/multipath.md
	PortNsh        = 61440 // NSH of service chains straight behind UDP; nobody assigned it, docs/chains-packets.md
	PortNshSource  = 60001 // source port that some senders of it use always
	PortUser       = 1024  // the first that any user of a host may send from
	PortStack      = 14790 // of VXLAN by the host's own stack (kernel-vxlan); nobody assigned it
	PortLeaseFirst = 751   // source ports of leases' tunnels, this one and those behind it: root's, and nothing to analysers (tshark -G decodes)
	PortLeaseCount = 102
	PortLeaseBase  = 768 // source ports of leases' chains, base | (hash & mask), likewise
	PortLeaseMask  = 63
	PortFlowFirst  = 0xc000 // source ports of other outer headers (RFC 6335, dynamic)
	PortFlowCount  = 0x4000
)

// The outer type of service: DSCP << 2 (RFC 2474). Best effort has 0. A tenant's
// own DSCP stays inside (RFC 2983, pipe); ECN is copied out (RFC 6040).
const (
	TOSLease = 0xa0 // CS5
	TOSProbe = 0xc0 // CS6, network control: probes tell of paths, not of queues
)

// The first word behind the UDP header of a probe, in the byte order of the host.
const (
	ProbeMagic = 0x69706c62
)

// A probe between the ends of a tunnel, behind its UDP header: the first word, in
// the byte order of the host, and where overlay_rx writes the time of its arrival.
const (
	LatencyMagic   = 0x6c61746e
	LatencyArrived = 32 // eight bytes, CLOCK_MONOTONIC in ns
)
