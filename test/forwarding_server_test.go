package test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	product "sublet/lab"
)

// callsAt leads connections to a port of the switch's own machine to an address of this
// one, where the server waits for switches.
func (s *openVSwitch) callsAt(port int, server string) {
	s.l.t.Helper()
	s.command("ip", "link", "set", "lo", "up")
	var waits net.Listener
	within(s.l.t, s.l.host(s.name), func() (err error) {
		waits, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		return err
	})
	s.l.t.Cleanup(func() { waits.Close() })
	go func() {
		for {
			from, err := waits.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				from.Close()
				continue
			}
			pass := func(a, b net.Conn) { _, _ = io.Copy(a, b); a.Close(); b.Close() }
			go pass(from, to)
			go pass(to, from)
		}
	}()
}

var cookieOf = regexp.MustCompile(`cookie=(0x[0-9a-f]+)`)

// cookies are those of a switch's entries, in order, with what each does.
func (s *openVSwitch) cookies() (list []string) {
	for line := range strings.Lines(s.ofctl("dump-flows")) {
		if m := cookieOf.FindStringSubmatch(line); m != nil {
			list = append(list, m[1]+line[strings.Index(line, "actions="):])
		}
	}
	slices.Sort(list)
	return list
}

// A server that is killed and started again, or stopped, finds the entries of a running
// lease in its switches, one that it connects to and one that connects to it over TLS:
// at no time is one missing, altered or there twice, and no packet of the lease is lost.
// While it is away, nothing changes either.
//
//	h1: a - s1 (Open vSwitch) - s2 (Open vSwitch, by TLS) - h2: b
func TestSwitchesOutliveTheServer(t *testing.T) {
	t.Parallel()
	needOpenVSwitch(t)
	c1, free := listenForSwitch(t), listenForSwitch(t)
	listen, dir := free.Addr().String(), t.TempDir()
	free.Close()
	ca, key := signedBy(t, dir, "ca", nil, nil)
	signedBy(t, dir, "server", ca, key)
	signedBy(t, dir, "s2", ca, key)
	s := newSupervisor(t, fmt.Sprintf(`hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
switches:
  - {name: s1, openflow: {connect: "tcp:%s", datapath_id: "a1"}, ports: {h1-s1: 1, s1-s2: 2}, entries: 5, meters: 5}
  - {name: s2, openflow: {listen: "%s", datapath_id: "a2", tls: {certificate: %[3]s/server.pem, key: %[3]s/server.key, ca: %[3]s/ca.pem}}, ports: {s2-h2: 1, s1-s2: 2}, entries: 5, meters: 5}
links:
  - {ends: [h1, s1], capacity: 50Mbit}
  - {ends: [s1, s2], capacity: 50Mbit}
  - {ends: [s2, h2], capacity: 50Mbit}
`, c1.Addr(), listen, dir))
	s1 := s.openVSwitch("s1", "00000000000000a1", c1, "to-h1", "to-s2")
	s2 := s.openVSwitch("s2", "00000000000000a2", listenForSwitch(t), "to-h2", "to-s1")
	s.direct("h1", "to-s1", product.PortAddress(2, 1))
	s.direct("h2", "to-s2", product.PortAddress(0, 0))
	s2.callsAt(6653, listen)
	s2.command("ovs-vsctl", "--no-wait", "--db=unix:"+s2.dir+"/db.sock", "set-ssl", dir+"/s2.key", dir+"/s2.pem", dir+"/ca.pem", "--", "set-controller", "br0", "ssl:127.0.0.1:6653")
	s.up(between("first", "10Mbit", ""))
	switches := []*openVSwitch{s1, s2}
	var before [2][]string
	for i, o := range switches {
		if before[i] = o.cookies(); o.has(2) != nil {
			t.Fatal(o.has(2))
		}
	}
	same := func() error {
		for i, o := range switches {
			if now := o.cookies(); !slices.Equal(now, before[i]) {
				return fmt.Errorf("%s has\n%s instead of\n%s", o.name, strings.Join(now, ""), strings.Join(before[i], ""))
			}
		}
		return nil
	}
	s.must("exec", "first/x", "-d", "--", "ping", "-q", "-i", "0.02", "-c", "300", "-W", "10", "y")
	s.kill(server)
	if err := same(); err != nil {
		t.Errorf("without a server: %v", err)
	}
	s.start(server)
	serves := func() error {
		r := s.sublet("leases", "-o", "json")
		if r.code != 0 || !strings.Contains(r.out, `"running"`) {
			return errors.New(r.out + r.err)
		}
		return nil
	}
	eventually(t, time.Minute, serves)
	for range 20 { // while it reads back, and settles
		if err := same(); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	eventually(t, time.Minute, serves)
	eventually(t, time.Minute, func() error {
		if text := s.must("logs", "first/x"); !strings.Contains(text, "300 packets transmitted, 300 received") {
			return errors.New(text)
		}
		return nil
	})
	s1.ofctl("del-flows", "udp") // it looks after them as before
	eventually(t, time.Minute, func() error { return s1.has(2) })
	s.must("down", "first")
	for _, o := range switches {
		eventually(t, time.Minute, func() error { return o.has(0) })
	}
}
