package test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/datapath/kernel"
	product "sublet/lab"
)

// A lab whose host h2 has a way out, to a namespace that stands for the Internet.
//
//	h1 --1G-- h2 [out0 192.0.2.2] ==veth== [h2-out0 192.0.2.1] Internet
//	             [lo   10.99.0.1]          [lo   198.51.100.1, 203.0.113.1]
//
// The Internet knows a way back to the other address of h2.
const natSubstrate = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
links:
  - {ends: [h1, h2], capacity: 1Gbit}
nat:
  - {name: campus, host: h2, interface: out0, pool: 192.0.2.10-192.0.2.11, via: 192.0.2.1, capacity: 100Mbit, publish: 8000-8999, refuse: [203.0.113.0/24]}
`

func natRequest(network, rate, publish string) string {
	return fmt.Sprintf(`network: %s
nodes:
  - {name: web, host: h1}
routers:
  - {name: out, nat: campus, publish: [%s]}
links:
  - {ends: [web, out], rate: %s}
`, network, publish, rate)
}

// outsideDevice leads from the Internet to h2.
const outsideDevice = "h2-out0"

// internet gives the hosts and the Internet their addresses; the path of the file
// of the latter.
func (l *lab) internet() string {
	l.t.Helper()
	outside := product.OutsideNamespace(labName(l.run))
	home := "/run/netns/" + labName(l.run) + "-h2"
	addressed(l.t, home, "out0", "192.0.2.2/24")
	addressed(l.t, home, "lo", "10.99.0.1/32")
	addressed(l.t, outside, "lo", "203.0.113.1/32")
	within(l.t, outside, func() error {
		return exec.Command("ip", "route", "add", "10.99.0.1/32", "via", "192.0.2.2").Run()
	})
	return outside
}

func addressed(t *testing.T, namespace, device, address string) {
	t.Helper()
	within(t, namespace, func() error {
		c, err := kernel.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		l, err := c.LinkByName(device)
		if err != nil {
			return err
		}
		p := netip.MustParsePrefix(address)
		return errors.Join(c.Do(kernel.UpLink(l.Index)), c.AddAddress(kernel.Address{Index: l.Index, Local: p.Addr(), Reach: p.Masked()}))
	})
}

// greets answers each connection to a port in a namespace with the address that it
// came from, then reads all that comes.
func greets(t *testing.T, namespace string, port int) {
	t.Helper()
	var at net.Listener
	within(t, namespace, func() (err error) {
		at, err = net.Listen("tcp4", fmt.Sprintf(":%d", port))
		return err
	})
	t.Cleanup(func() { at.Close() })
	go func() {
		for {
			c, err := at.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
				fmt.Fprintln(c, host)
				c.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
}

// heard is what a node hears of a greeter.
func (l *lab) heard(node, address string, port int) (string, bool) {
	r := l.sublet("exec", node, "--", "timeout", "3", "bash", "-c", fmt.Sprintf("cat </dev/tcp/%s/%d", address, port))
	return strings.TrimSpace(r.out), r.code == 0
}

// A network with a way out reaches what is outside from an address of the pool, is
// reached by the ports that it publishes, and by nothing else; and nothing of the
// host, of other leases or of what the operator refuses is reached by it.
func TestWayOut(t *testing.T) {
	l := newLab(t, natSubstrate)
	outside := l.internet()
	home := "/run/netns/" + labName(l.run) + "-h2"
	greets(t, outside, 80)
	greets(t, home, 7777)
	l.up(natRequest("shop", "20Mbit", `"8080:web:80"`))
	l.up("network: other\nnodes: [{name: web, host: h1}]\ninternet: {rate: 20Mbit, publish: ['8080:web:80']}\n")
	l.settled()
	if got, ok := l.heard("other/web", "198.51.100.1", 80); !ok || got != l.outside("other").String() {
		t.Errorf("outside, the short word's web came from %q", got)
	}

	mine := l.outside("shop")
	if got, ok := l.heard("shop/web", "198.51.100.1", 80); !ok || got != mine.String() {
		t.Errorf("outside, web came from %q, not from %s", got, mine)
	}
	for what, to := range map[string]struct {
		address string
		port    int
	}{
		"the host's address on the interface": {"192.0.2.2", 7777}, "another address of the host": {"10.99.0.1", 7777},
		"what the operator refuses": {"203.0.113.1", 80}, "a port that the other lease publishes": {l.outside("other").String(), 8080},
		"an address that is link-local": {"169.254.169.254", 80},
	} {
		if got, ok := l.heard("shop/web", to.address, to.port); ok {
			t.Errorf("%s was reached, and said %q", what, got)
		}
	}
	l.publishes(outside, mine)
	l.spoofs(outside)
	if r := l.sublet("exec", "shop/out", "--", "true"); r.code == 0 || !strings.Contains(r.err, "way out") {
		t.Errorf("a command in the way out: exit code %d, %s", r.code, r.err)
	}
	l.refusesOutside()
	l.checked("shop", broken, "--duration", "2s")
	l.must("down", "shop")
	l.must("down", "other")
	l.settled()
	if left := matches(filepath.Join(l.run, "nat", "h2", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// outside is the outer address of a network's router.
func (l *lab) outside(network string) netip.Addr {
	l.t.Helper()
	for _, v := range l.leases() {
		if v.Network == network {
			for _, a := range v.Mapping.Outside {
				return a
			}
		}
	}
	l.t.Fatalf("no network %s", network)
	return netip.Addr{}
}

// publishes connects from outside to the port that is published and to others.
func (l *lab) publishes(outside string, to netip.Addr) {
	l.t.Helper()
	web := filepath.Join(l.run, "netns", "h1", "root.shop.web")
	greets(l.t, web, 80)
	greets(l.t, web, 8081)
	dial := func(port int) (err error) {
		within(l.t, outside, func() error {
			var c net.Conn
			if c, err = net.DialTimeout("tcp4", fmt.Sprintf("%s:%d", to, port), time.Second); err == nil {
				c.Close()
			}
			return nil
		})
		return err
	}
	eventually(l.t, 10*time.Second, func() error { return dial(8080) })
	for _, port := range []int{80, 8081, 22} {
		if dial(port) == nil {
			l.t.Errorf("port %d is open outside, and was not published", port)
		}
	}
}

// spoofs sends packets from a source that is not the network's.
func (l *lab) spoofs(outside string) {
	l.t.Helper()
	before := passed(l.t, outside, outsideDevice).packetsIn
	l.sublet("exec", "shop/web", "--", "bash", "-c", "ip address add 198.18.7.7/32 dev lo && ping -c 20 -i 0.05 -W 1 -I 198.18.7.7 198.51.100.1")
	if after := passed(l.t, outside, outsideDevice).packetsIn; after-before >= 20 {
		l.t.Errorf("%d packets of a source that is not the network's came out", after-before)
	}
}

// refusesOutside asks for more than is offered.
func (l *lab) refusesOutside() {
	l.t.Helper()
	for what, c := range map[string]struct{ text, says string }{
		"a third address":        {natRequest("third", "1Mbit", ""), "addresses of way out campus are taken"},
		"more than the capacity": {natRequest("large", "90Mbit", ""), "way out campus has 60Mbit of 100Mbit free"},
		"a port out of range":    {natRequest("port", "1Mbit", `"80:web:80"`), "lets ports 8000-8999 be published, not 80"},
		"an unknown way out":     {strings.Replace(natRequest("none", "1Mbit", ""), "campus", "beach", 1), `no way out "beach"`},
	} {
		r := l.sublet("up", l.file("refused.yaml", c.text))
		if r.code != 3 || !strings.Contains(r.out+r.err, c.says) {
			l.t.Errorf("%s: exit code %d\n%s%s", what, r.code, r.out, r.err)
		}
	}
}

// A way out that is damaged while its agent is dead works again when the agent does.
func TestWayOutIsMended(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, natSubstrate)
	outside := s.internet()
	greets(t, outside, 80)
	s.up(natRequest("shop", "20Mbit", ""))
	s.settled()
	s.kill(agentOf("h2"))
	if _, ok := s.heard("shop/web", "198.51.100.1", 80); !ok {
		t.Error("nothing gets out without the agent")
	}
	gateway := filepath.Join(s.run, "netns", "h2", "root.shop.out")
	within(t, gateway, func() error { return exec.Command("ip", "link", "del", "wan0").Run() })
	s.start(agentOf("h2"))
	eventually(t, 20*time.Second, func() error {
		if _, ok := s.heard("shop/web", "198.51.100.1", 80); !ok {
			return errors.New("outside is not reached")
		}
		return nil
	})
	s.must("down", "shop")
	s.settled()
}

// A node cannot answer another as if that were outside, and so send packets out
// that nobody translates.
func TestNoAnswersAsOthers(t *testing.T) {
	t.Parallel()
	l := newLab(t, natSubstrate)
	outside := l.internet()
	l.up(`network: shop
nodes: [{name: a, host: h1}, {name: b, host: h1}]
routers: [{name: out, nat: campus}]
links:
  - {ends: [a, out], rate: 5Mbit}
  - {ends: [b, out], rate: 5Mbit}
`)
	l.settled()
	l.must("exec", "-d", "shop/b", "--", "python3", "-uc", `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 4000))
print("listens")
while True: s.sendto(*s.recvfrom(100))`)
	eventually(t, 5*time.Second, func() error {
		if out := l.must("logs", "shop/b"); !strings.Contains(out, "listens") {
			return errors.New(out)
		}
		return nil
	})
	ask := func(source string) string {
		return strings.TrimSpace(l.must("exec", "shop/a", "--", "bash", "-c", `ip address replace 198.51.100.1/32 dev lo; python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((sys.argv[1], 5000)); s.settimeout(1)
for i in range(30): s.sendto(b"x", ("b", 4000)); time.sleep(0.02)
try: print(s.recv(10).decode())
except TimeoutError: print("nothing")' "$0"; ip address delete 198.51.100.1/32 dev lo`, source))
	}
	if got := ask("0.0.0.0"); got != "x" {
		t.Fatalf("nodes behind the way out do not reach each other: %s", got)
	}
	before := passed(t, outside, outsideDevice).packetsIn
	ask("198.51.100.1")
	if after := passed(t, outside, outsideDevice).packetsIn; after-before >= 25 {
		t.Errorf("%d packets came out that nobody translated", after-before)
	}
}
