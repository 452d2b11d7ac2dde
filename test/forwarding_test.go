package test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	product "sublet/lab"
	"sublet/vnet"
)

// openVSwitch is a switch of a lab that Open vSwitch is, in user space, instead of the
// lab's own.
type openVSwitch struct {
	l       *lab
	name    string
	dir     string
	ports   []string
	control net.Listener // of the machine's loopback; leads to the switch
	others  int          // meters of others than the server
	daemon  *exec.Cmd
}

// needOpenVSwitch skips a test where it is not installed.
func needOpenVSwitch(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	for _, name := range []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ethtool"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not installed: tools/install-deps installs Open vSwitch and ethtool")
		}
	}
}

// listenForSwitch is the address of a switch that is still to come.
func listenForSwitch(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// openVSwitch replaces a switch of the lab. Its ports have the numbers of their order.
func (l *lab) openVSwitch(name, id string, control net.Listener, ports ...string) *openVSwitch {
	l.t.Helper()
	s := &openVSwitch{l: l, name: name, dir: filepath.Join(filepath.Dir(l.run), "ovs-"+name), ports: ports, control: control}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		l.t.Fatal(err)
	}
	s.command("ovsdb-tool", "create", s.dir+"/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
	s.start("ovsdb-server", "db.sock", s.dir+"/conf.db", "--remote=punix:"+s.dir+"/db.sock", "--unixctl="+s.dir+"/db.ctl")
	s.command("ovs-vsctl", "--db=unix:"+s.dir+"/db.sock", "--no-wait", "init")
	argv := []string{"--no-wait", "--db=unix:" + s.dir + "/db.sock", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
		"protocols=OpenFlow13", "other-config:datapath-id=" + id, "other-config:disable-in-band=true"}
	s.command("sysctl", "-qw", "net.ipv4.ip_forward=0")
	for i, port := range ports {
		s.command("ip", "address", "flush", "dev", port)
		s.command("ethtool", "-K", port, "tx", "off")
		argv = append(argv, "--", "add-port", "br0", port, "--", "set", "interface", port, fmt.Sprintf("ofport_request=%d", i+1))
	}
	s.command("ovs-vsctl", argv...)
	s.restart()
	go s.relay()
	return s
}

// command runs one in the switch's namespace.
func (s *openVSwitch) command(name string, args ...string) string {
	s.l.t.Helper()
	out, err := s.prepare(name, args...).CombinedOutput()
	if err != nil {
		s.l.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func (s *openVSwitch) prepare(name string, args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"--net=" + s.l.host(s.name), "--", name}, args...)...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+s.dir, "OVS_LOGDIR="+s.dir, "OVS_DBDIR="+s.dir)
	return cmd
}

// start starts a daemon, and waits until it answers.
func (s *openVSwitch) start(name, socket string, args ...string) *exec.Cmd {
	s.l.t.Helper()
	_ = os.Remove(filepath.Join(s.dir, socket))
	cmd := s.prepare(name, append(args, "-vconsole:off")...)
	if err := cmd.Start(); err != nil {
		s.l.t.Fatal(err)
	}
	s.l.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually(s.l.t, time.Minute, func() error {
		conn, err := net.Dial("unix", filepath.Join(s.dir, socket))
		if err == nil {
			conn.Close()
		}
		return err
	})
	return cmd
}

// restart starts the switch; one that runs is killed, and has no entries again.
func (s *openVSwitch) restart() {
	s.l.t.Helper()
	if s.daemon != nil {
		_ = s.daemon.Process.Kill()
		_ = s.daemon.Wait()
	}
	s.daemon = s.start("ovs-vswitchd", "br0.mgmt", "unix:"+s.dir+"/db.sock", "--unixctl="+s.dir+"/vs.ctl")
}

// relay leads the server to the switch, which no address of the machine does.
func (s *openVSwitch) relay() {
	for {
		from, err := s.control.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("unix", s.dir+"/br0.mgmt")
		if err != nil {
			from.Close()
			continue
		}
		pass := func(a, b net.Conn) { _, _ = io.Copy(a, b); a.Close(); b.Close() }
		go pass(from, to)
		go pass(to, from)
	}
}

func (s *openVSwitch) ofctl(command string, more ...string) string {
	s.l.t.Helper()
	return s.command("ovs-ofctl", append([]string{"-O", "OpenFlow13", command, "unix:" + s.dir + "/br0.mgmt"}, more...)...)
}

// has wants so many entries of leases, whose actions are as told, and a meter for each
// and for the rest.
func (s *openVSwitch) has(entries int) error {
	flows, meters := s.ofctl("dump-flows"), s.ofctl("dump-meters")
	got := 0
	for line := range strings.Lines(flows) {
		if strings.Contains(line, "tp_dst=4789") && strings.Contains(line, "actions=meter:") && strings.Contains(line, ",output:") {
			got++
		}
	}
	if got != entries || strings.Count(meters, "type=drop") != entries+1+s.others || !strings.Contains(flows, "NORMAL") {
		return fmt.Errorf("%s has not %d entries and %d meters:\n%s%s", s.name, entries, entries+1+s.others, flows, meters)
	}
	return nil
}

// direct lets a host reach the address of another without the lab's routers.
func (l *lab) direct(host, device string, to netip.Addr) {
	l.t.Helper()
	for _, argv := range [][]string{
		{"ip", "route", "replace", to.String() + "/32", "dev", device},
		{"ethtool", "-K", device, "tx", "off"}, // a switch in user space passes unfinished checksums on
	} {
		cmd := exec.Command("nsenter", append([]string{"--net=" + l.host(host), "--"}, argv...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			l.t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
}

// fewMeters are the switches of a line, each with meters for two links.
const fewMeters = `
  - {name: s1, openflow: {%s, datapath_id: "a1"}, ports: {h1-s1: 1, s1-s2: 2}, entries: 5, meters: 5}
  - {name: s2, openflow: {%s, datapath_id: "a2"}, ports: {s2-h2: 1, s1-s2: 2}, entries: 5, meters: 5}`

// labOfLine is h1 - s1 - s2 - h2. Of how s1 and s2 are reached the substrate says what is
// given.
func labOfLine(t *testing.T, switches, first, second string) *lab {
	t.Helper()
	return newLab(t, `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
switches:`+fmt.Sprintf(switches, first, second)+`
links:
  - {ends: [h1, s1], capacity: 50Mbit}
  - {ends: [s1, s2], capacity: 50Mbit}
  - {ends: [s2, h2], capacity: 50Mbit}
`)
}

// lineOfSwitches has Open vSwitch as s1 and s2.
func lineOfSwitches(t *testing.T, switches string) (l *lab, s1, s2 *openVSwitch) {
	t.Helper()
	needOpenVSwitch(t)
	c1, c2 := listenForSwitch(t), listenForSwitch(t)
	l = labOfLine(t, switches, fmt.Sprintf("connect: %q", "tcp:"+c1.Addr().String()), fmt.Sprintf("connect: %q", "tcp:"+c2.Addr().String()))
	s1 = l.openVSwitch("s1", "00000000000000a1", c1, "to-h1", "to-s2")
	s2 = l.openVSwitch("s2", "00000000000000a2", c2, "to-h2", "to-s1")
	l.directLine()
	return l, s1, s2
}

// directLine lets the hosts of a line reach each other by its switches alone.
func (l *lab) directLine() {
	l.t.Helper()
	l.direct("h1", "to-s1", product.PortAddress(2, 1))
	l.direct("h2", "to-s2", product.PortAddress(0, 0))
}

// unleased sends from a host twice as much as any link carries, besides all leases.
func (l *lab) unleased(host, to string) (stop func()) {
	l.t.Helper()
	var conn net.Conn
	within(l.t, l.host(host), func() (err error) {
		conn, err = net.Dial("udp", to)
		return err
	})
	const size, burst, every = 1400, 18, 2 * time.Millisecond // 100 Mbit/s
	done := make(chan struct{})
	go func() {
		defer close(done)
		frame := make([]byte, size)
		for {
			for range burst {
				if _, err := conn.Write(frame); errors.Is(err, net.ErrClosed) {
					return
				}
			}
			time.Sleep(every)
		}
	}()
	stop = sync.OnceFunc(func() { conn.Close(); <-done })
	l.t.Cleanup(stop)
	return stop
}

const overSwitches = `network: %s
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links: [{name: ab, ends: [a, b], rate: 10Mbit}]
`

// A link over two OpenFlow switches that others make has entries and meters in both,
// and keeps its rate beside traffic that belongs to no lease. What is lost or altered
// comes back, also after the switch is killed; what goes with the lease is gone.
// Admission refuses what the switches have no entries for.
//
//	h1: a - s1 (Open vSwitch) - s2 (Open vSwitch) - h2: b
func TestLeaseOverOpenVSwitch(t *testing.T) {
	l, s1, s2 := lineOfSwitches(t, fewMeters)
	l.up(fmt.Sprintf(overSwitches, "first"))
	for _, s := range []*openVSwitch{s1, s2} {
		if err := s.has(2); err != nil {
			t.Fatal(err) // it runs only when they are there
		}
	}
	l.up(fmt.Sprintf(overSwitches, "second"))
	r := l.sublet("up", l.file("request.yaml", fmt.Sprintf(overSwitches, "third")))
	if r.code != 3 || !strings.Contains(r.err, "switch s1 has 0 of 4 entries free in this window, and the network needs 2") {
		t.Errorf("a third network: exit code %d\n%s", r.code, r.err)
	}
	s1.ofctl("del-flows", "udp")
	s2.ofctl("mod-flows", "udp,actions=drop")
	eventually(t, time.Minute, func() error { return s1.has(4) })
	eventually(t, time.Minute, func() error { return s2.has(4) })
	eventually(t, time.Minute, func() error {
		if out := l.must("events", "first"); !strings.Contains(out, "s1: entry of link ab") || !strings.Contains(out, "s2: entry of link ab") {
			return fmt.Errorf("no event tells of repairs:\n%s", out)
		}
		return nil
	})
	s1.restart()
	eventually(t, time.Minute, func() error { return s1.has(4) })
	eventually(t, time.Minute, func() error { return l.crosses("first/a", "b") })
	l.must("down", "first")
	eventually(t, time.Minute, func() error { return s1.has(2) })
	eventually(t, time.Minute, func() error { return l.crosses("second/a", "b") })
	l.must("down", "second")
	eventually(t, time.Minute, func() error { return s2.has(0) })
	l.up(fmt.Sprintf(overSwitches, "third"))
	l.unleased("h1", product.PortAddress(2, 1).String()+":9")
	l.checked("third", broken)
}

// chainOverSwitches is a chain between two hosts, carried by a transport after which its
// network is called.
func chainOverSwitches(transport string) string {
	return fmt.Sprintf(`network: %s
nodes: [{name: a, host: h1}, {name: b, host: h2}]
functions: [{name: fw, kind: firewall, host: h2, rules: [{deny: {proto: udp, dst_port: 23}}]}]
links: [{name: ab, ends: [a, b], rate: 2Mbit}]
chains: [{name: web, from: a, to: b, match: {proto: udp, dst_port: 9000}, via: [fw], rate: 8Mbit, transport: %s}]
`, transport, transport)
}

// A chain between hosts has entries and meters of its own in switches of the substrate, by
// the port of its transport, and all its packets take them.
func TestChainOverOpenVSwitch(t *testing.T) {
	t.Parallel()
	const packets = 200
	l, s1, s2 := lineOfSwitches(t, fewMeters)
	for transport, port := range map[string]int{"udp": 61440, "gpe": 4790} {
		l.up(chainOverSwitches(transport))
		l.must("exec", transport+"/a", "--", "python3", "-c", fmt.Sprintf(`
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); b = socket.gethostbyname("b"), 9000
for _ in range(%d): s.sendto(bytes(200), b); time.sleep(0.01)`, packets))
		eventually(t, time.Minute, func() error {
			if came := l.came(transport, "out"); came != packets {
				return fmt.Errorf("transport %s: %d packets of %d arrived", transport, came, packets)
			}
			return errors.Join(s1.carried(port, packets), s2.carried(port, packets))
		})
		l.must("down", transport)
		eventually(t, time.Minute, func() error { return errors.Join(s1.has(0), s2.has(0)) })
	}
}

// It keeps its rate beside traffic that belongs to no lease.
func TestSoakChainOverOpenVSwitchKeepsItsRate(t *testing.T) {
	l, _, _ := lineOfSwitches(t, fewMeters)
	l.up(chainOverSwitches("udp"))
	l.unleased("h1", product.PortAddress(2, 1).String()+":9")
	l.checked("udp", brokenChain)
}

// brokenChain says what a check found broken, a chain below nine tenths of its rate too.
func brokenChain(v vnet.Verdict, code int) error {
	if len(v.Chains) != 1 || v.Chains[0].Measured < v.Chains[0].Rate*9/10 {
		return fmt.Errorf("exit code %d, chains %+v", code, v.Chains)
	}
	return nil
}

// carried wants an entry by which so many packets to a port of UDP left by a meter.
func (s *openVSwitch) carried(port, least int) error {
	flows := s.ofctl("dump-flows")
	for line := range strings.Lines(flows) {
		_, count, _ := strings.Cut(line, "n_packets=")
		packets := 0
		_, _ = fmt.Sscanf(count, "%d", &packets)
		if packets >= least && strings.Contains(line, fmt.Sprintf("tp_dst=%d ", port)) && strings.Contains(line, "actions=meter:") {
			return nil
		}
	}
	return fmt.Errorf("%s has no entry for port %d that %d packets took:\n%s", s.name, port, least, flows)
}
