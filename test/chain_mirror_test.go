package test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// mirrorRequest is a chain of a and b on one host, whose packets are copied to a node
// on another. What comes to its port 81 is denied behind the mirror.
const mirrorRequest = `network: copies
nodes:
  - {name: a, host: h1}
  - {name: b, host: h1}
  - {name: c, host: h2}
functions:
  - {name: copy, host: h1, kind: mirror, to: c}
  - {name: fw, host: h1, kind: firewall, rules: [{deny: {proto: udp, dst_port: 81}}]}
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: udp}, via: [copy, fw], rate: 10Mbit}
`

// A mirror's node gets a copy of each packet of the chain, also of those that are
// denied behind it, and nothing else; the packets go on. The link for copies is booked,
// and goes with the mirror.
func TestChainIsMirrored(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(mirrorRequest)
	id := vnet.LeaseID{Tenant: "root", Network: "copies"}
	address := s.addressOf("h1", id, "b")
	s.must("exec", "-d", "copies/c", "--", "python3", "-c", `
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind(("eth0", 0))
open("/tmp/ready", "w").close()
while True:
    f = s.recv(2000)
    if f[12:14] == b"\x08\x00" and f[23] == 17: open("/tmp/copies", "a").write("%d\n" % int.from_bytes(f[36:38], "big"))`)
	s.must("exec", "-d", "copies/b", "--", "python3", "-c", `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 80)); open("/tmp/ready", "w").close()
while True: s.recv(2000); open("/tmp/came", "a").write("80\n")`)
	for _, n := range []string{"b", "c"} {
		eventually(t, time.Minute, func() error { return s.runs("exec", "copies/"+n, "--", "test", "-e", "/tmp/ready") })
	}
	const packets = 50
	s.must("exec", "copies/a", "--", "python3", "-c", fmt.Sprintf(`
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(%d):
    for port in (80, 81): s.sendto(bytes(600), (%q, port))
    time.sleep(0.002)`, packets, address))
	lines := func(node, file string) string {
		return "test $(grep -c . " + file + ") -ge " + strconv.Itoa(map[string]int{"b": packets, "c": 2 * packets}[node]) + " && cat " + file
	}
	for node, file := range map[string]string{"b": "/tmp/came", "c": "/tmp/copies"} {
		var text string
		eventually(t, time.Minute, func() error {
			said := s.sublet("exec", "copies/"+node, "--", "sh", "-c", lines(node, file))
			if text = said.out; said.code != 0 {
				return fmt.Errorf("%s has not got them: %s", node, s.sublet("exec", "copies/"+node, "--", "wc", file).out)
			}
			return nil
		})
		denied := strings.Count(text, "81\n")
		if all := strings.Count(text, "\n"); node == "c" && (denied != packets || all != 2*packets) || node == "b" && all != packets {
			t.Errorf("%s got %d packets, %d of them to port 81", node, all, denied)
		}
	}
	if said := s.sublet("exec", "copies/c", "--", "ip", "-o", "-4", "addr", "show", "eth0"); strings.TrimSpace(said.out) != "" {
		t.Errorf("the interface of copies has an address: %s", said.out)
	}
	s.asPlanned("h1", "h2")

	file := s.file("copies.yaml", strings.Replace(mirrorRequest, "via: [copy, fw]", "via: [fw]", 1))
	eventually(t, time.Minute, func() error { return s.runs("apply", file) })
	eventually(t, time.Minute, func() error {
		if said := s.sublet("exec", "copies/c", "--", "ip", "link", "show", "eth0"); said.code == 0 {
			return fmt.Errorf("the interface of copies is still there")
		}
		return nil
	})
	s.asPlanned("h1", "h2")
	s.must("down", "copies")
}
