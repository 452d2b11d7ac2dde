package test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

const movingRequest = `network: moving
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
functions:
  - {name: cl, host: h1, kind: classifier, rules: [{match: {proto: udp, dst_port: 9000}, chain: strict}]}
  - {name: fw, host: h2, kind: firewall, rules: [{deny: {proto: udp, dst_port: 9002}}]}
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: strict, from: a, to: b, match: {proto: udp, dst_port: 9002}, via: [cl, fw], rate: 5Mbit}
  - {name: plain, from: a, to: b, match: {proto: udp, dst_port: 9000-9001}, via: [cl], rate: 5Mbit}
`

// A classifier on a chain moves packets to another chain that leads through it too: they
// pass what follows there, and arrive.
func TestPacketsChangeTheirChain(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(movingRequest)
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "moving"}, "b")
	s.must("exec", "-d", "moving/b", "--", "python3", "-c", `
import select, socket
all = []
for n in (9000, 9001): s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", n)); all.append(s)
while True:
    for s in select.select(all, [], [])[0]: b, who = s.recvfrom(100); s.sendto(b, who)`)
	asks := func(port int) error {
		return s.runs("exec", "moving/a", "--", "python3", "-c", fmt.Sprintf(
			"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(b'?', (%q, %d)); s.recv(9)", address, port))
	}
	at := func(chain, hop string) (packets uint64) {
		var chains []struct {
			Name string
			Hops []report.ChainHop
		}
		need(t, json.Unmarshal([]byte(s.must("chains", "moving", "-o", "json")), &chains))
		for _, c := range chains {
			for _, h := range c.Hops {
				if c.Name == chain && h.Hop == hop {
					packets += h.Packets
				}
			}
		}
		return packets
	}
	for _, c := range []struct {
		port  int
		moved bool
	}{{9001, false}, {9000, true}} {
		classified, strict := at("plain", "cl"), at("strict", "fw")
		eventually(t, time.Minute, func() error { return asks(c.port) })
		if at("plain", "cl") == classified {
			t.Errorf("port %d: nothing came to the classifier", c.port)
		}
		if moved := at("strict", "fw") > strict; moved != c.moved {
			t.Errorf("port %d: goes on by the other chain: %t", c.port, moved)
		}
	}
	s.asPlanned("h1", "h2")
	s.must("down", "moving")
}
