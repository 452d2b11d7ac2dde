package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/report"
)

// balancedRequest is a chain of a firewall and a balancer on one host to nodes on both.
func balancedRequest(nodes string) string {
	return fmt.Sprintf(`network: shop
nodes:
  - {name: a, host: h2}
  - {name: w1, host: h1}
  - {name: w2, host: h2}
  - {name: w3, host: h2}
functions:
  - {name: fw, host: h1, kind: firewall, rules: [{deny: {proto: tcp, dst_port: 81}}]}
  - {name: lb, host: h1, kind: balancer, service: 203.0.113.1, nodes: [%s], publish: 80, port: 8080}
links:
  - {ends: [a, w1], rate: 20Mbit}
  - {ends: [a, w2], rate: 20Mbit}
  - {ends: [a, w3], rate: 20Mbit}
chains:
  - {name: web, from: a, to: w1, match: {proto: tcp, dst_port: 80-81}, via: [fw, lb], rate: 10Mbit, reverse: mirror}
`, nodes)
}

// servesName answers connections with the node's name, line by line.
const servesName = `
import socket, threading
def serve(c):
    try:
        for _ in c.makefile("rb"): c.sendall(b"%[1]s\n")
    except OSError: pass
s = socket.create_server(("", 8080))
while True: c, _ = s.accept(); threading.Thread(target=serve, args=(c,), daemon=True).start()`

// serves starts the service at a node.
func (s *supervisor) serves(name string) {
	s.must("exec", "-d", "shop/"+name, "--", "python3", "-c", fmt.Sprintf(servesName, name))
}

// healthy waits until just these nodes of the balancer live.
func (s *supervisor) healthy(nodes ...string) {
	s.t.Helper()
	eventually(s.t, time.Minute, func() error {
		var chains []struct{ Hops []report.ChainHop }
		if err := json.Unmarshal([]byte(s.must("chains", "shop", "-o", "json")), &chains); err != nil {
			return err
		}
		var live []string
		for _, h := range chains[0].Hops {
			if name, ok := strings.CutPrefix(h.Hop, "backend "); ok && !h.Dead {
				live = append(live, name)
			}
		}
		if slices.Sort(live); !slices.Equal(live, nodes) {
			return fmt.Errorf("nodes %v live, want %v: %s", live, nodes, s.must("chains", "shop"))
		}
		return nil
	})
}

// served are who answers connections to the service, by node.
func (s *supervisor) served(connections int) map[string]int {
	s.t.Helper()
	by := make(map[string]int)
	text := s.must("exec", "shop/a", "--", "python3", "-c", fmt.Sprintf(`
import socket
for _ in range(%d):
    try: c = socket.create_connection(("203.0.113.1", 80), timeout=10); c.sendall(b"?\n"); print(c.makefile().readline().strip())
    except OSError as e: print(type(e).__name__)`, connections))
	for _, name := range strings.Fields(text) {
		by[name]++
	}
	return by
}

// Connections to the service of a balancer are spread over its nodes; each stays where it
// is while others come, nodes die, live again, are taken out and put in. What one that is
// dead would have had the others get.
func TestChainIsBalanced(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(balancedRequest("w1, w2"))
	s.healthy()
	for _, name := range []string{"w1", "w2", "w3"} {
		s.serves(name)
	}
	s.healthy("w1", "w2")
	if by := s.served(40); by["w1"] == 0 || by["w2"] == 0 || by["w1"]+by["w2"] != 40 {
		t.Fatalf("40 connections were answered by %v: %s", by, s.must("chains", "shop"))
	}
	if text := s.must("chains", "shop"); !strings.Contains(text, "backend w2") || !strings.Contains(text, "from w2") {
		t.Errorf("nodes are not shown:\n%s", text)
	}
	s.asPlanned("h1", "h2")
	s.checked("shop", broken, "--duration", "1s")

	// Connections that stay: each says once a second who answers it.
	s.must("exec", "-d", "shop/a", "--", "python3", "-c", `
import os, socket, time
all = [socket.create_connection(("203.0.113.1", 80), timeout=10) for _ in range(20)]
files = [c.makefile() for c in all]
first, changed, ended = [None] * 20, 0, [False] * 20
n = 0
while True:
    for i, c in enumerate(all):
        if ended[i]: continue
        try: c.sendall(b"?\n"); who = files[i].readline().strip()
        except OSError: who = ""
        if not who: ended[i] = True
        elif first[i] is None: first[i] = who
        elif who != first[i]: changed += 1
    n += 1
    open("/tmp/state.new", "w").write(f"{n} {changed} {sum(ended)} {first.count('w1')}"); os.rename("/tmp/state.new", "/tmp/state")
    time.sleep(0.2)`)
	var rounds, changed, ended, atW1 int
	staying := func() {
		eventually(t, time.Minute, func() error {
			said := s.sublet("exec", "shop/a", "--", "cat", "/tmp/state")
			before := rounds
			if _, err := fmt.Sscan(said.out, &rounds, &changed, &ended, &atW1); err != nil {
				return fmt.Errorf("%s%s", said.out, said.err)
			}
			if rounds < before+3 {
				rounds = before
				return fmt.Errorf("round %d", rounds)
			}
			return nil
		})
	}
	staying()
	file := s.file("shop.yaml", balancedRequest("w3, w1, w2"))
	eventually(t, time.Minute, func() error {
		said := s.sublet("apply", file)
		if said.code != 0 || !strings.Contains(said.out, "function of lb") {
			return fmt.Errorf("apply: exit code %d, %s%s", said.code, said.out, said.err)
		}
		return nil
	})
	s.healthy("w1", "w2", "w3")
	if by := s.served(60); by["w3"] == 0 || by["w1"]+by["w2"]+by["w3"] != 60 {
		t.Errorf("with a third node 60 connections were answered by %v", by)
	}
	if staying(); changed != 0 || ended != 0 || atW1 == 0 {
		t.Errorf("when a node came, of 20 connections (%d at w1) %d moved and %d ended", atW1, changed, ended)
	}

	s.must("exec", "shop/w2", "--", "pkill", "-9", "python3")
	s.healthy("w1", "w3")
	if by := s.served(40); by["w1"] == 0 || by["w3"] == 0 || by["w1"]+by["w3"] != 40 {
		t.Errorf("without w2 40 connections were answered by %v: %s", by, s.must("chains", "shop"))
	}
	if staying(); changed != 0 || ended != 20-atW1 {
		t.Errorf("when w2 died, of 20 connections (%d at w1) %d moved and %d ended", atW1, changed, ended)
	}
	eventually(t, time.Minute, func() error {
		if events := s.must("events", "shop"); !strings.Contains(events, "node w2 does not answer balancer lb") {
			return fmt.Errorf("events: %s", events)
		}
		return nil
	})
	s.must("exec", "shop/w3", "--", "ip", "link", "set", "eth0", "down") // answers nothing at all
	s.healthy("w1")
	if by := s.served(10); by["w1"] != 10 {
		t.Errorf("with w1 alone 10 connections were answered by %v", by)
	}
	s.must("exec", "shop/w3", "--", "ip", "link", "set", "eth0", "up")
	s.serves("w2")
	s.healthy("w1", "w2", "w3")

	s.kill(agentOf("h1"))
	if by := s.served(10); by["w1"]+by["w2"]+by["w3"] != 10 {
		t.Errorf("without the balancer's agent 10 connections were answered by %v", by)
	}
	s.start(agentOf("h1"))
	s.healthy("w1", "w2", "w3")
	s.asPlanned("h1", "h2")
	file = s.file("less.yaml", balancedRequest("w1"))
	eventually(t, time.Minute, func() error { return s.runs("apply", file) })
	s.healthy("w1")
	if by := s.served(10); by["w1"] != 10 {
		t.Errorf("of w1 alone 10 connections were answered by %v", by)
	}
	if staying(); changed != 0 || ended != 20-atW1 {
		t.Errorf("in the end, of 20 connections (%d at w1) %d moved and %d ended", atW1, changed, ended)
	}
	s.must("down", "shop")
}
