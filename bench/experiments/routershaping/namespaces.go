package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"sublet/bench/harness"
	"sublet/measure/probe"
	"sublet/vnet"
)

// linuxRouter is one namespace that routes between three senders and its
// physical interface:
//
//	snd0..2 -- router [HTB] nic -- far -- rcv0..2
func linuxRouter(_ context.Context, exe string) (setup, error) {
	return namespaces(linuxName, exe, func(n names, i int) {
		n.join(n.sender(i), "eth0", fmt.Sprintf("10.1.%d.2/24", i), n.router(), fmt.Sprint("snd", i), fmt.Sprintf("10.1.%d.1/24", i))
		n.route(n.sender(i), "default", fmt.Sprintf("10.1.%d.1", i))
	})
}

// namespaceRouters put a routing namespace between each sender and the
// machine's own, as Xen's domains were:
//
//	snd0..2 -- vr0..2 -- router [HTB] nic -- far -- rcv0..2
func namespaceRouters(_ context.Context, exe string) (setup, error) {
	return namespaces(namespaceName, exe, func(n names, i int) {
		vr := n.virtual(i)
		n.namespace(vr)
		n.join(n.sender(i), "eth0", fmt.Sprintf("10.1.%d.2/24", i), vr, "snd", fmt.Sprintf("10.1.%d.1/24", i))
		n.join(vr, "eth0", fmt.Sprintf("10.3.%d.2/24", i), n.router(), fmt.Sprint("vr", i), fmt.Sprintf("10.3.%d.1/24", i))
		n.route(n.sender(i), "default", fmt.Sprintf("10.1.%d.1", i))
		n.route(vr, "default", fmt.Sprintf("10.3.%d.1", i))
		n.route(n.router(), fmt.Sprintf("10.1.%d.0/24", i), fmt.Sprintf("10.3.%d.2", i))
	})
}

// namespaces builds what both have in common, with near for each flow's side
// of the router.
func namespaces(name, exe string, near func(n names, i int)) (setup, error) {
	n := names{prefix: fmt.Sprintf("rc%d-", os.Getpid()), lines: new([]string)}
	s := setup{name: name, start: harness.InNamespaces(exe), stop: n.remove}
	n.namespace(n.router())
	n.namespace(n.far())
	n.join(n.router(), "nic", "10.9.0.1/24", n.far(), "nic", "10.9.0.2/24")
	n.route(n.router(), "10.2.0.0/16", "10.9.0.2")
	n.route(n.far(), "default", "10.9.0.1")
	for i, limit := range caps {
		n.namespace(n.sender(i))
		n.namespace(n.receiver(i))
		n.join(n.receiver(i), "eth0", fmt.Sprintf("10.2.%d.2/24", i), n.far(), fmt.Sprint("rcv", i), fmt.Sprintf("10.2.%d.1/24", i))
		n.route(n.receiver(i), "default", fmt.Sprintf("10.2.%d.1", i))
		near(n, i)
		s.targets = append(s.targets, probe.Target{
			Link: fmt.Sprint("f", i+1), From: n.sender(i), To: n.receiver(i), FromIf: "eth0", ToIf: "eth0",
			FromAddr: netip.AddrFrom4([4]byte{10, 1, byte(i), 2}), ToAddr: netip.AddrFrom4([4]byte{10, 2, byte(i), 2}),
			MTU: vnet.DefaultMTU, Alloc: limit,
		})
	}
	n.shape()
	return s, harness.Commands(*n.lines...)
}

// names of the namespaces of this run, and the commands that make them.
type names struct {
	prefix string
	lines  *[]string
}

func (n names) router() string        { return n.prefix + "router" }
func (n names) far() string           { return n.prefix + "far" }
func (n names) sender(i int) string   { return fmt.Sprint(n.prefix, "snd", i) }
func (n names) receiver(i int) string { return fmt.Sprint(n.prefix, "rcv", i) }
func (n names) virtual(i int) string  { return fmt.Sprint(n.prefix, "vr", i) }

func (n names) add(format string, args ...any) {
	*n.lines = append(*n.lines, fmt.Sprintf(format, args...))
}

// namespace makes one that forwards.
func (n names) namespace(ns string) {
	n.add("ip netns add %s", ns)
	n.add("ip -n %s link set lo up", ns)
	n.add("ip netns exec %s sysctl -qw net.ipv4.ip_forward=1", ns)
}

// join makes a veth pair between two namespaces.
func (n names) join(a, device, address, b, peer, peerAddress string) {
	n.add("ip -n %s link add %s type veth peer name %s netns %s", a, device, peer, b)
	n.add("ip -n %s addr add %s dev %s", a, address, device)
	n.add("ip -n %s addr add %s dev %s", b, peerAddress, peer)
	n.add("ip -n %s link set %s up", a, device)
	n.add("ip -n %s link set %s up", b, peer)
}

func (n names) route(ns, to, via string) { n.add("ip -n %s route add %s via %s", ns, to, via) }

// shape caps each flow at the egress interface: HTB classes with rate and
// ceil, and queues of 50 ms.
func (n names) shape() {
	n.add("tc -n %s qdisc add dev nic root handle 1: htb", n.router())
	for i, limit := range caps {
		n.add("tc -n %s class add dev nic parent 1: classid 1:%d htb rate %dbit ceil %dbit burst 128k cburst 128k", n.router(), i+1, limit, limit)
		n.add("tc -n %s qdisc add dev nic parent 1:%d bfifo limit %d", n.router(), i+1, limit.BytesPerSecond()/20)
		n.add("tc -n %s filter add dev nic parent 1: protocol ip prio 1 u32 match ip dst 10.2.%d.0/24 flowid 1:%d", n.router(), i, i+1)
	}
}

// remove deletes what this run made.
func (n names) remove() error {
	entries, err := os.ReadDir("/run/netns")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), n.prefix) {
			err = errors.Join(err, harness.Commands("ip netns del "+e.Name()))
		}
	}
	return err
}
