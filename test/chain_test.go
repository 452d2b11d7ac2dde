package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

const chainSubstrate = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
links:
  - {ends: [h1, h2], capacity: 1Gbit}
`

// Programs of functions, as requests state them. The first passes everything from eth0 to
// eth1, the second the other way, too.
const (
	passesOn       = `[sh, -c, "tc qdisc add dev eth0 clsact && tc filter add dev eth0 ingress protocol all u32 match u32 0 0 action mirred egress redirect dev eth1 && exec sleep infinity"]`
	passesBothWays = `[sh, -c, "for way in 'eth0 eth1' 'eth1 eth0'; do set -- $way; tc qdisc add dev $1 clsact && tc filter add dev $1 ingress protocol all u32 match u32 0 0 action mirred egress redirect dev $2 || exit; done; exec sleep infinity"]`
)

// chainRequest is a chain of a firewall and a program of the tenant's, which passes
// everything from eth0 to eth1.
func chainRequest(network, far, rate string) string {
	return fmt.Sprintf(`network: %s
nodes:
  - {name: a, host: h1}
  - {name: b, host: %s}
functions:
  - {name: fw, host: h1, kind: firewall, rules: [{deny: {proto: tcp, dst_port: 81}}]}
  - name: ids
    host: %s
    run: `+passesOn+`
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: tcp, dst_port: 79-81}, via: [fw, ids], rate: %s}
`, network, far, far, rate)
}

// hops are those of the first chain of a network.
func (l *lab) hops(network string) []report.ChainHop {
	l.t.Helper()
	return decode[[]struct{ Hops []report.ChainHop }](l.t, l.must("chains", network, "-o", "json"))[0].Hops
}

// came is how many packets came to a hop of a network's chain.
func (l *lab) came(network, hop string) (packets uint64) {
	l.t.Helper()
	for _, h := range l.hops(network) {
		if h.Hop == hop {
			packets += h.Packets
		}
	}
	return packets
}

// Over two hosts and within one, packets that a chain takes pass its functions at
// its rate, others go beside it, and what a function denies does not arrive.
// It goes on without its agent, is mended, and leaves nothing.
func TestChain(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	for network, far := range map[string]string{"near": "h1", "far": "h2"} {
		s.up(chainRequest(network, far, "10Mbit"))
		for port := 80; port <= 82; port++ {
			greets(t, s.namespaceOf(node{far, vnet.LeaseID{Tenant: "root", Network: vnet.VNetID(network)}, "b"}), port)
		}
		s.passes(network)
	}
	s.asPlanned("h1", "h2")
	s.chainRate("far")
	s.checked("far", chainKept, "--duration", "1s")

	if text := s.must("chains", "far"); !strings.Contains(text, "denied") {
		t.Errorf("what the firewall denied is not counted:\n%s", text)
	}
	s.latencies("far", "fw", "ids")

	s.kill(agentOf("h2"))
	if _, ok := s.heard("far/a", s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "far"}, "b"), 80); !ok {
		t.Error("without its agent the chain ends")
	}
	s.start(agentOf("h2"))
	s.asPlanned("h1", "h2")
	s.must("down", "near", "far")
}

// latencies waits until the time that functions add is known; packets to a port at
// which nobody listens pass them.
func (s *supervisor) latencies(network string, functions ...string) {
	s.t.Helper()
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: vnet.VNetID(network)}, "b")
	eventually(s.t, time.Minute, func() error {
		s.must("exec", network+"/a", "--", "python3", "-c", fmt.Sprintf("import socket\nfor _ in range(200): socket.socket().connect_ex((%q, 79))", address))
		for _, h := range s.hops(network) {
			if slices.Contains(functions, h.Hop) && (h.Latency == 0 || h.Timed == 0) {
				return fmt.Errorf("no latency of %s: %+v", h.Hop, h)
			}
		}
		return nil
	})
}

// chainKept says what a check says of a chain other than that it is kept.
func chainKept(v vnet.Verdict, code int) error {
	if len(v.Chains) != 1 || v.Chains[0].Name != "web" || v.Chains[0].Rate != 10*vnet.Mbit || len(v.Chains[0].Hops) < 4 {
		return fmt.Errorf("exit code %d, chains %+v", code, v.Chains)
	}
	if came := v.Chains[0].Hops[1]; !v.Chains[0].OK || came.Hop != "fw" || came.Packets == 0 {
		return fmt.Errorf("exit code %d, %+v", code, v)
	}
	return broken(v, code)
}

// passes looks by which way packets of each port go.
func (s *supervisor) passes(network string) {
	s.t.Helper()
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: vnet.VNetID(network)}, "b")
	for _, c := range []struct {
		port          int
		arrives       bool
		taken, passes bool // by the chain; the firewall
	}{{82, true, false, false}, {81, false, true, false}, {80, true, true, true}} {
		fw, ids := s.came(network, "fw"), s.came(network, "ids")
		if _, ok := s.heard(network+"/a", address, c.port); ok != c.arrives {
			s.t.Errorf("%s: port %d arrives: %t", network, c.port, ok)
		}
		if taken := s.came(network, "fw") > fw; taken != c.taken {
			s.t.Errorf("%s: port %d comes to the firewall: %t", network, c.port, taken)
		}
		if passes := s.came(network, "ids") > ids; passes != c.passes {
			s.t.Errorf("%s: port %d comes to the program: %t", network, c.port, passes)
		}
	}
}

// chainRate sends for longer than a rate of 10 Mbit/s allows. How fast it may be is
// bounded from one side, so that a busy machine does not matter.
func (s *supervisor) chainRate(network string) {
	s.t.Helper()
	const bytes, least = 2_500_000, 1600 * time.Millisecond // 2 s
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: vnet.VNetID(network)}, "b")
	began := time.Now()
	s.must("exec", network+"/a", "--", "python3", "-c", fmt.Sprintf(`
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536); s.connect((%q, 80)); s.sendall(bytes(%d)); s.shutdown(1)
while s.recv(100): pass`, address, bytes))
	if took := time.Since(began); took < least {
		s.t.Errorf("%d bytes in %s at 10 Mbit/s", bytes, took)
	}
}

// A chain that is filled is tested while it lives, as one promise from end to end.
func TestChainIsProven(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(`network: proven
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
functions:
  - {name: fw, host: h2, kind: firewall, rules: [{deny: {proto: udp, dst_port: 9001}}]}
links:
  - {ends: [a, b], rate: 20Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: udp, dst_port: 9000-9001}, via: [fw], rate: 1Mbit}
`)
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "proven"}, "b")
	s.must("exec", "-d", "proven/a", "--", "python3", "-c", fmt.Sprintf(`
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for port in (9000, 9001): s.sendto(bytes(1000), (%q, port))
    time.sleep(0.004)`, address))
	eventually(t, 2*time.Minute, func() error {
		var list []vnet.Proof
		need(t, json.Unmarshal([]byte(s.must("proof", "proven", "-o", "json")), &list))
		for _, p := range list {
			switch {
			case p.Link == "chain web" && p.Tested > 0 && (p.From != "a" || p.To != "b" || p.Min != vnet.Mbit):
				t.Fatalf("the chain's proof is %+v", p)
			case p.Link == "chain web" && p.Tested > 0:
				return nil
			case strings.HasPrefix(p.Link, "web"):
				t.Fatalf("a segment has a proof: %+v", p)
			}
		}
		return fmt.Errorf("the chain is not tested: %+v", list)
	})
	s.must("down", "proven")
}

// A chain of IPv6 takes what its match says, over two hosts and back, and a firewall of
// it denies by addresses of IPv6.
func TestChainOfIPv6(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(`network: six
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
functions:
  - {name: fw, host: h1, kind: firewall, rules: [{deny: {proto: tcp, dst: "2001:db8:1::2", dst_port: 81}}]}
links:
  - ends: [{node: a, address: ["10.0.7.1/24", "2001:db8:1::1/64"]}, {node: b, address: ["10.0.7.2/24", "2001:db8:1::2/64"]}]
    rate: 50Mbit
chains:
  - {name: web, from: a, to: b, match: {proto: tcp, src: "2001:db8:1::/64", dst: "2001:db8:1::/64"}, via: [fw], rate: 10Mbit, reverse: mirror}
`)
	refused := func(family, address string, port int) error { // by b, at which nobody listens
		return s.runs("exec", "six/a", "--", "python3", "-c", fmt.Sprintf(
			"import errno, socket, sys\ns = socket.socket(socket.%s); s.settimeout(2)\nsys.exit(s.connect_ex((%q, %d)) != errno.ECONNREFUSED)", family, address, port))
	}
	before := s.came("six", "fw")
	eventually(t, time.Minute, func() error { return refused("AF_INET6", "2001:db8:1::2", 80) })
	if came := s.came("six", "fw") - before; came < 2 {
		t.Errorf("%d packets of a connection and its answer came to the firewall", came)
	}
	before = s.came("six", "fw")
	if refused("AF_INET6", "2001:db8:1::2", 81) == nil {
		t.Error("what the firewall denies is answered")
	}
	if s.came("six", "fw") == before {
		t.Error("what is not answered did not come to the firewall")
	}
	before = s.came("six", "fw")
	eventually(t, time.Minute, func() error { return refused("AF_INET", "10.0.7.2", 81) })
	if s.came("six", "fw") != before {
		t.Error("packets of IPv4 went through the chain")
	}
	s.must("down", "six")
}

// Chains of IPv6, of a DSCP and of packets with a tag are measured over two hosts by
// packets that they take. With what rate these arrive is a matter of other tests.
func TestChecksOfChainsBySetBits(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(`network: bits
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
functions:
  - {name: fw, host: h1, kind: firewall, rules: [{deny: {proto: tcp, dst_port: 9}}]}
links:
  - ends: [{node: a, address: ["10.0.7.1/24", "2001:db8:1::1/64"]}, {node: b, address: ["10.0.7.2/24", "2001:db8:1::2/64"]}]
    rate: 50Mbit
chains:
  - {name: six, from: a, to: b, match: {proto: tcp, src: "2001:db8:1::/64", dst: "2001:db8:1::/64", dst_port: 80}, via: [fw], rate: 2Mbit}
  - {name: classed, from: a, to: b, match: {proto: tcp, dst_port: 81, dscp: 46}, via: [fw], rate: 2Mbit}
  - {name: datagrams, from: a, to: b, match: {proto: udp, dst_port: 81, dscp: 10}, via: [fw], rate: 2Mbit}
  - {name: tagged, from: a, to: b, match: {proto: udp, dst_port: 82, vlan: 7}, via: [fw], rate: 2Mbit}
`)
	s.checked("bits", func(v vnet.Verdict, code int) error {
		for _, c := range v.Chains {
			if c.Outcome == vnet.Broken || c.Measured == 0 || c.Hops[1].Hop != "fw" || c.Hops[1].Packets < 20 {
				return fmt.Errorf("exit code %d, %s is measured with %s: %+v", code, c.Name, c.Measured, c)
			}
		}
		if len(v.Chains) != 4 {
			return fmt.Errorf("chains %+v", v.Chains)
		}
		return nil
	}, "--duration", "1s")
	s.must("down", "bits")
}
