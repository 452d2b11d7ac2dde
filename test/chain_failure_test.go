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

// dyingRequest has three chains through one program, which stands by on another host for
// one of them. Programs are started by the test.
const dyingRequest = `network: dying
nodes:
  - {name: a, host: h1}
  - {name: b, host: h1}
functions:
  - {name: ids, host: h1, run: [sleep, infinity], standby: spare%s}
  - {name: spare, host: h2, run: [sleep, infinity]%s}
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: moved, from: a, to: b, match: {proto: udp, dst_port: 9000}, via: [ids], rate: 5Mbit, on-failure: reroute}
  - {name: past, from: a, to: b, match: {proto: udp, dst_port: 9001}, via: [ids], rate: 5Mbit, on-failure: bypass}
  - {name: strict, from: a, to: b, match: {proto: udp, dst_port: 9002}, via: [ids], rate: 5Mbit, on-failure: drop}
`

// passer is a function in user space: what comes by eth0 leaves by eth1.
const passer = `
import socket
i = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); i.bind(("eth0", 0))
o = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); o.bind(("eth1", 0))
while True:
    f, at = i.recvfrom(2000)
    if at[2] != 4: o.send(f) # 4: what leaves`

// awarePasser is one that gets packets with the header of chains.
var awarePasser = strings.Replace(passer, "if at[2] != 4:", "if at[2] != 4 and f[12:14] == b'\\x89\\x4f': f = f[:21] + bytes([f[21] - 1]) + f[22:];", 1)

// dying is what is seen of the chains of dyingRequest.
type dying struct {
	hops map[string]report.ChainHop // the first, by chain and hop
	came [3]int                     // packets that b got, by chain
}

func (s *supervisor) dying() (d dying, err error) {
	d.hops = make(map[string]report.ChainHop)
	var chains []struct {
		Name string
		Hops []report.ChainHop
	}
	if err := json.Unmarshal([]byte(s.must("chains", "dying", "-o", "json")), &chains); err != nil {
		return d, err
	}
	for _, c := range chains {
		for _, h := range c.Hops {
			d.hops[c.Name+" "+h.Hop] = h
		}
	}
	_, err = fmt.Sscan(s.must("exec", "dying/b", "--", "cat", "/tmp/came"), &d.came[0], &d.came[1], &d.came[2])
	return d, err
}

// soon waits until what is seen differs from before as a condition says.
func (s *supervisor) soon(what string, is func(was, now dying) bool) {
	s.t.Helper()
	var was, now dying
	var err error
	eventually(s.t, time.Minute, func() error { was, err = s.dying(); return err })
	eventually(s.t, time.Minute, func() error {
		if now, err = s.dying(); err == nil && !is(was, now) {
			err = fmt.Errorf("not yet %s: before %+v, now %+v", what, was, now)
		}
		return err
	})
}

// When a program that chains lead through is killed, their packets go to its standby on
// another host, past it, or are dropped and counted, as each chain says; the lease says
// why. When it runs again, all pass it.
func TestFunctionOfChainsDies(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.dies(passer, "", "")
	s.dies(awarePasser, ", nsh: aware", ", probe: true, patience: 400ms")
}

// dies has a program be the function and its standby, which are as is stated of both and of
// the function alone.
func (s *supervisor) dies(program, both, one string) {
	t := s.t
	t.Helper()
	s.up(fmt.Sprintf(dyingRequest, both+one, both))
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "dying"}, "b")
	s.must("exec", "-d", "dying/b", "--", "python3", "-c", `
import os, select, socket, time
all = []
for n in range(3): s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 9000 + n)); all.append(s)
came, last, gap, told = [0] * 3, [0] * 3, [0] * 3, 0
while True:
    for s in select.select(all, [], [], 0.1)[0]:
        n = all.index(s); s.recv(2000); came[n] += 1; now = time.monotonic()
        if last[n]: gap[n] = max(gap[n], now - last[n])
        last[n] = now
    if time.monotonic() - told > 0.1:
        told = time.monotonic(); f = open("/tmp/came.new", "w"); print(*came, *gap, file=f); f.close(); os.rename("/tmp/came.new", "/tmp/came")`)
	for _, n := range []string{"ids", "spare"} {
		s.must("exec", "-d", "dying/"+n, "--", "python3", "-c", program)
	}
	s.must("exec", "-d", "dying/a", "--", "python3", "-c", fmt.Sprintf(`
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, 11, 1) # no checksum, which a function would have to finish
while True:
    for n in range(3): s.sendto(bytes(200), (%q, 9000 + n))
    time.sleep(0.005)`, address))
	eventually(t, time.Minute, func() error { return s.runs("exec", "dying/b", "--", "test", "-e", "/tmp/came") })

	lives := func(was, now dying) bool {
		for n, chain := range []string{"moved", "past", "strict"} {
			if h := now.hops[chain+" ids"]; h.Dead || now.came[n] < was.came[n]+50 || h.Packets < was.hops[chain+" ids"].Packets+50 {
				return false
			}
		}
		return true
	}
	s.soon("through the program", lives)
	s.must("exec", "dying/ids", "--", "pkill", "-9", "python3")
	s.soon("past the program", func(was, now dying) bool {
		return now.hops["moved ids"].Dead && now.hops["strict ids"].Dead &&
			now.came[0] >= was.came[0]+50 && now.hops["moved spare"].Packets >= was.hops["moved spare"].Packets+50 &&
			now.came[1] >= was.came[1]+50 && now.hops["past ids"].Drops["dead"] == was.hops["past ids"].Drops["dead"] &&
			now.hops["strict ids"].Drops["dead"] >= was.hops["strict ids"].Drops["dead"]+50
	})
	before, err := s.dying()
	need(t, err)
	s.soon("told", func(_, now dying) bool {
		if now.came[2] != before.came[2] {
			t.Errorf("packets of the chain that drops arrive")
		}
		events := s.must("events", "dying")
		return strings.Contains(events, "function ids returns nothing") && strings.Contains(events, "go to its standby (chain moved)")
	})
	t.Logf("packets to each port, and the longest times without one: %s", s.must("exec", "dying/b", "--", "cat", "/tmp/came"))
	s.asPlanned("h1", "h2")
	s.must("exec", "-d", "dying/ids", "--", "python3", "-c", program)
	s.soon("through the program again", lives)
	eventually(t, time.Minute, func() error {
		if l := s.must("leases"); !strings.Contains(l, "running") {
			return fmt.Errorf("it does not run again: %s", l)
		}
		return nil
	})
	s.must("down", "dying")
}
