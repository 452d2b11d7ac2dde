package test

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// backRequest is a chain over two hosts whose packets come back through a program
// and a NAT.
const backRequest = `network: back
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
functions:
  - name: ids
    host: h1
    run: ` + passesBothWays + `
  - {name: nat, host: h2, kind: nat, prefix: 198.51.100.0/28, ports: 20000-20999}
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: tcp, dst_port: 80}, via: [ids, nat], rate: 10Mbit, reverse: mirror, transport: gpe, compat: 60001}
`

// Behind a NAT a server sees an address of its prefix; answers come back through the
// functions in the opposite order, at the chain's rate, and arrive. What the chain
// does not take goes beside it, with its own address.
func TestChainComesBack(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(backRequest)
	prefix, id := netip.MustParsePrefix("198.51.100.0/28"), vnet.LeaseID{Tenant: "root", Network: "back"}
	address := s.addressOf("h1", id, "b")
	decoded := s.decoded("h1")
	for port, behind := range map[int]bool{80: true, 81: false} {
		s.must("exec", "-d", "back/b", "--", "python3", "-c", fmt.Sprintf(`
import socket
s = socket.create_server(("", %[1]d))
while True: c, who = s.accept(); open("/tmp/served.%[1]d", "a").write("a"); c.sendall(("%%s:%%d\n" %% who).encode() + bytes(200000)); c.close()`, port))
		var seen netip.AddrPort
		before := s.came("back", "ids")
		eventually(t, 30*time.Second, func() error {
			said := s.sublet("exec", "back/a", "--", "python3", "-c", fmt.Sprintf(`
import socket
s = socket.create_connection((%q, %d), timeout=3); f = s.makefile("rb"); who = f.readline(); rest = f.read()
assert len(rest) == 200000, len(rest); print(who.decode().strip())`, address, port))
			if said.code != 0 {
				return fmt.Errorf("exit code %d: %s", said.code, said.err)
			}
			var err error
			seen, err = netip.ParseAddrPort(strings.TrimSpace(said.out))
			return err
		})
		if prefix.Contains(seen.Addr()) != behind || behind && (seen.Port() < 20000 || seen.Port() > 20999) {
			t.Errorf("at port %d a is seen as %s", port, seen)
		}
		// About 140 packets of the answer, and as many acknowledgements or half of them.
		if through := s.came("back", "ids") - before; behind && through < 150 || !behind && through != 0 {
			t.Errorf("port %d: %d packets through the program", port, through)
		}
	}
	decoded()
	s.asPlanned("h1", "h2")
	// Beside the server at port 80 the chain is measured by frames that it does not get.
	served := func() string { return s.must("exec", "back/b", "--", "cat", "/tmp/served.80") }
	before := served()
	s.checked("back", broken, "--duration", "1s")
	if after := served(); after != before {
		t.Errorf("the server at port 80 was called %d times by then, and %d after the check", len(before), len(after))
	}
	s.must("down", "back")
}

// decoded begins to listen at a host for packets of chains over VXLAN-GPE, and what it
// returns wants tshark to find in them the port that the chain states, and nothing wrong.
func (s *supervisor) decoded(host string) func() {
	capture := dumped(s.t, s.hostNamespace(host), "-i", "any", "-c", "10", "udp dst port 4790")
	return func() {
		s.t.Helper()
		file := capture()
		if file == "" {
			return
		}
		out, err := exec.Command("tshark", "-r", file, "--disable-protocol", "http", "-T", "fields", "-E", "separator=;", "-E", "occurrence=f",
			"-e", "udp.srcport", "-e", "_ws.malformed", "-e", "nsh.mdtype", "-e", "nsh.nextproto").Output()
		if want := strings.Repeat("60001;;2;3\n", 10); err != nil || string(out) != want {
			s.t.Errorf("tshark says %v:\n%s", err, out)
		}
	}
}
