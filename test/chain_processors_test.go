package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// autoRequest is a chain through a program that copies packets, whose processor time
// follows the load.
const autoRequest = `network: auto
nodes:
  - {name: a}
  - {name: b}
functions:
  - name: ids
    cpu: auto
    run:
      - python3
      - -c
      - |
        import socket
        come, go = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2))
        come.bind(("eth0", 0)); go.bind(("eth1", 0))
        while True:
            packet, where = come.recvfrom(65536)
            if where[2] != socket.PACKET_OUTGOING:
                try: go.send(packet)
                except OSError: pass
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: udp, dst_port: 9}, via: [ids], rate: 5Mbit}
`

// A function with processor time by the load begins with the core that is booked for
// it, is given what its chain takes, and goes on passing packets. An agent that
// begins anew takes up what it finds, and changes nothing else.
func TestProcessorsFollowTheLoad(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "hosts:\n  - {name: h1, cpu: 2, memory: 4GiB}\n")
	s.up(autoRequest)
	if given := s.given("auto"); given != vnet.Core {
		t.Errorf("before there is load it has %s cores, and one is booked", given)
	}
	s.sends("auto", 20*time.Second)
	eventually(t, 60*time.Second, func() error {
		if given := s.given("auto"); given == 0 || given > vnet.Core/2 {
			return fmt.Errorf("at 5 Mbit/s it has %s cores", given)
		}
		return nil
	})
	s.asPlanned("h1")
	s.kill(agentOf("h1"))
	s.start(agentOf("h1"))
	s.asPlanned("h1")
	before := s.came("auto", "out")
	s.sends("auto", 2*time.Second)
	eventually(t, 30*time.Second, func() error {
		if after := s.came("auto", "out"); after < before+100 {
			return fmt.Errorf("%d packets came to the end", after-before)
		}
		return nil
	})
	s.must("down", "auto")
}

// A function that costs more than its profile says has of what no node of the machine has,
// beyond what is booked for it, and keeps that while the agent looks at what is there.
// Other labs beside it would take just that.
func TestFunctionsBorrowProcessors(t *testing.T) {
	s := newSupervisor(t, "hosts:\n  - {name: h1, cpu: 2, memory: 4GiB}\n")
	s.up(strings.NewReplacer("cpu: auto", "cpu: auto\n    profile: {fixed_s: 1e-05}",
		"try: go.send(packet)", "try: sum(range(2000)); go.send(packet)").Replace(autoRequest))
	booked := s.given("auto")
	if booked > vnet.Core/50 {
		t.Fatalf("it has %s cores at first, by a profile of 10 us", booked)
	}
	s.sends("auto", 2*time.Minute)
	for range 2 {
		eventually(t, 60*time.Second, func() error {
			if given := s.given("auto"); given <= booked {
				return fmt.Errorf("at 5 Mbit/s it has %s cores, as booked", given)
			}
			return nil
		})
		s.asPlanned("h1")
	}
	s.must("down", "auto")
}

// given is what the function of a network's chain has of processors.
func (l *lab) given(network string) vnet.CPU {
	l.t.Helper()
	var chains []struct{ Hops []report.ChainHop }
	need(l.t, json.Unmarshal([]byte(l.must("chains", network, "-o", "json")), &chains))
	for _, h := range chains[0].Hops {
		if h.Hop == "ids" {
			return h.CPU
		}
	}
	return 0
}

// sends has a node send packets of the chain for so long, in the background.
func (s *supervisor) sends(network string, length time.Duration) {
	s.t.Helper()
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: vnet.VNetID(network)}, "b")
	s.must("exec", "-d", network+"/a", "--", "python3", "-c", fmt.Sprintf(`
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); end = time.time() + %f
while time.time() < end: s.sendto(bytes(500), (%q, 9)); time.sleep(0.0008)`, length.Seconds(), address))
}

// A rate that costs a function more than a core by its profile is refused with exit code
// 3 and the highest that does not as an offer, which is admitted when it is taken.
func TestRatesAboveACoreAreOffered(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "hosts:\n  - {name: h1, cpu: 2, memory: 4GiB}\n")
	request := s.file("much.yaml", `network: much
nodes: [{name: a}, {name: b}]
functions:
  - {name: ids, run: [sleep, infinity], cpu: auto, profile: {fixed_s: 1e-4, packet_bytes: 500}}
links: [{ends: [a, b], rate: 10Mbit}]
chains:
  - {name: web, from: a, to: b, match: {proto: udp, dst_port: 9}, via: [ids], rate: 100Mbit}
`)
	if r := s.sublet("up", request); r.code != 3 || !strings.Contains(r.err, "takes 2.50 cores by its profile") {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	if r := s.sublet("leases", "much"); r.code == 0 {
		t.Errorf("what was refused is there: %s", r.out)
	}
	s.must("up", request, "--accept")
	chains := decode[[]struct {
		Rate vnet.Rate `json:"rate_bps"`
	}](t, s.must("chains", "much", "-o", "json"))
	if rate := chains[0].Rate; rate < 37*vnet.Mbit || rate > 39*vnet.Mbit {
		t.Errorf("the chain has %s", rate)
	}
	s.must("down", "much")
}
