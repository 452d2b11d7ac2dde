package test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"sublet/datapath/kernel"
	product "sublet/lab"
)

// A lab whose host h2 lets machines join, and two networks with one each.
//
//	machine [wg] ==UDP== Internet [198.51.100.1] ==veth== [join0 203.0.113.7] h2 --1G-- h1
const joinSubstrate = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
links:
  - {ends: [h1, h2], capacity: 1Gbit}
joins:
  - {name: campus, host: h2, address: 203.0.113.7, ports: 51820-51821, capacity: 50Mbit}
`

func joinRequest(network, rate string) string {
	return fmt.Sprintf(`network: %s
nodes:
  - {name: web, host: h1}
  - {name: far, host: h1}
  - {name: laptop, join: any}
switches:
  - {name: lan, host: h1}
links:
  - {ends: [web, lan]}
  - {ends: [far, lan]}
  - {ends: [laptop, lan], rate: %s}
`, network, rate)
}

// outsider is one that is no host: WireGuard between a namespace of its own and the
// Internet of a lab.
type outsider struct {
	t    *testing.T
	ns   *os.File
	own  netip.Addr
	made *device.Device
}

// joinSettings reads what sublet join printed.
func joinSettings(text string) map[string]string {
	found := make(map[string]string)
	for _, line := range strings.Split(text, "\n") {
		if name, value, ok := strings.Cut(line, " = "); ok {
			found[name] = value
		}
	}
	return found
}

func keyHex(t *testing.T, key string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(b) != 32 {
		t.Fatalf("%q is no key: %v", key, err)
	}
	return hex.EncodeToString(b)
}

// outsider joins with settings.
func (l *lab) outsider(s map[string]string) *outsider {
	l.t.Helper()
	ns, err := kernel.NewNamespace(func() error { return nil })
	need(l.t, err)
	m := &outsider{t: l.t, ns: ns, own: netip.MustParsePrefix(s["Address"]).Addr()}
	l.t.Cleanup(m.leave)
	var between tun.Device
	mtu, err := strconv.Atoi(s["MTU"])
	need(l.t, err)
	need(l.t, kernel.In(ns, func() (err error) {
		if between, err = tun.CreateTUN("wg0", mtu); err != nil {
			return err
		}
		for _, args := range []string{"link set lo up", "addr add " + s["Address"] + " dev wg0", "link set wg0 up", "route add default dev wg0"} {
			if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
				return fmt.Errorf("ip %s: %w: %s", args, err, out)
			}
		}
		return nil
	}))
	m.made = device.NewDevice(between, outsideBind{conn.NewStdNetBind(), product.OutsideNamespace(labName(l.run))}, device.NewLogger(device.LogLevelSilent, ""))
	need(l.t, m.made.IpcSet(strings.Join([]string{
		"private_key=" + keyHex(l.t, s["PrivateKey"]), "public_key=" + keyHex(l.t, s["PublicKey"]), "endpoint=" + s["Endpoint"],
		"allowed_ip=0.0.0.0/0", "persistent_keepalive_interval=1",
	}, "\n")))
	need(l.t, m.made.Up())
	return m
}

// outsideBind opens its sockets in a namespace, also when the device comes up by
// itself, in a thread of its own.
type outsideBind struct {
	conn.Bind
	namespace string
}

func (b outsideBind) Open(port uint16) (receive []conn.ReceiveFunc, actual uint16, err error) {
	ns, err := kernel.OpenNamespace(b.namespace)
	if err != nil {
		return nil, 0, err
	}
	defer ns.Close()
	err = kernel.In(ns, func() (err error) {
		receive, actual, err = b.Bind.Open(port)
		return err
	})
	return receive, actual, err
}

func (m *outsider) leave() {
	if m.made != nil {
		m.made.Close()
		m.made = nil
		m.ns.Close()
	}
}

// ping says whether an address answers the machine, as from a source.
func (m *outsider) ping(to string, args ...string) error {
	return kernel.In(m.ns, func() error {
		out, err := exec.Command("ping", append([]string{"-n", "-c", "1", "-W", "0.4", to}, args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ping %s: %w: %s", to, err, out)
		}
		return nil
	})
}

// send fills a connection to a listener for a while; the rate at which bytes came.
func (m *outsider) send(to string, got *atomic.Int64) float64 {
	m.t.Helper()
	var c net.Conn
	need(m.t, kernel.In(m.ns, func() (err error) {
		c, err = net.DialTimeout("tcp4", to, 5*time.Second)
		return err
	}))
	defer c.Close()
	go func() {
		for buffer := make([]byte, 32<<10); ; {
			if _, err := c.Write(buffer); err != nil {
				return
			}
		}
	}()
	time.Sleep(time.Second) // until the queue is full
	before, start := got.Load(), time.Now()
	time.Sleep(2 * time.Second)
	return float64(got.Load()-before) * 8 / time.Since(start).Seconds()
}

// sink counts what comes to a port of a namespace.
func sink(t *testing.T, namespace string, port int) *atomic.Int64 {
	t.Helper()
	var at net.Listener
	within(t, namespace, func() (err error) {
		at, err = net.Listen("tcp4", fmt.Sprintf(":%d", port))
		return err
	})
	t.Cleanup(func() { at.Close() })
	got := new(atomic.Int64)
	go func() {
		for {
			c, err := at.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for buffer := make([]byte, 64<<10); ; {
					n, err := c.Read(buffer)
					got.Add(int64(n))
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	return got
}

// networkAddress is that of a node of office.
func (l *lab) networkAddress(node string) string {
	l.t.Helper()
	for _, line := range strings.Split(l.must("exec", "office/web", "--", "cat", "/etc/hosts"), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[1] == node {
			return f[0]
		}
	}
	l.t.Fatalf("no node %s", node)
	return ""
}

// joins waits until a machine reaches an address.
func (m *outsider) joins(to string) {
	m.t.Helper()
	eventually(m.t, 20*time.Second, func() error { return m.ping(to) })
}

// A machine becomes a node: it has the node's address and rate, reaches its network
// and is reached there, and nothing else. Wrong keys, keys of another network and
// keys that were revoked open nothing, and kills change nothing.
func TestSoakJoin(t *testing.T) {
	t.Parallel()
	l := newSupervisor(t, joinSubstrate)
	home := "/run/netns/" + labName(l.run) + "-h2"
	l.up(joinRequest("office", "20Mbit"))
	l.up(joinRequest("other", "20Mbit"))
	l.settled()
	address := l.networkAddress

	mine := joinSettings(l.must("join", "office", "--node", "laptop"))
	theirs := joinSettings(l.must("join", "other", "--node", "laptop"))
	m := l.outsider(mine)
	m.joins(address("web"))
	if m.own.String() != address("laptop") {
		t.Errorf("the machine has %s, and the node %s", m.own, address("laptop"))
	}
	eventually(t, 10*time.Second, func() error {
		if r := l.sublet("exec", "office/far", "--", "ping", "-n", "-c", "1", "-W", "1", "laptop"); r.code != 0 {
			return fmt.Errorf("the machine does not answer by name: %s%s", r.out, r.err)
		}
		return nil
	})
	l.joinedRate(m, address("web"))
	l.reachesOnlyItsOwn(m, home)
	l.wrongKeys(mine, theirs, address("web"))
	m = l.survivesKills(m, mine, address("web"))

	if r := l.sublet("exec", "office/laptop", "--", "true"); r.code == 0 || !strings.Contains(r.err, "joins") {
		t.Errorf("a command in the node: exit code %d, %s", r.code, r.err)
	}
	l.must("join", "office", "--node", "laptop", "--revoke")
	eventually(t, 10*time.Second, func() error {
		if m.ping(address("web")) == nil {
			return fmt.Errorf("a machine that was shut out reaches the network")
		}
		return nil
	})
	again := joinSettings(l.must("join", "office", "--node", "laptop", "--public-key", publicOf(t, mine["PrivateKey"])))
	if again["PrivateKey"] != "" {
		t.Error("a private key was made for a machine with its own")
	}
	m.joins(address("web"))

	l.must("down", "office")
	l.must("down", "other")
	l.settled()
	for _, kind := range []string{"join", "netns"} {
		if left := matches(filepath.Join(l.run, kind, "h2", "*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	within(t, home, func() error {
		c, err := net.ListenPacket("udp4", "203.0.113.7:51820")
		if err != nil {
			return fmt.Errorf("the port is not free again: %w", err)
		}
		return c.Close()
	})
	l.joinRefusals()
}

// joinedRate compares what passes with what the link has.
func (l *lab) joinedRate(m *outsider, web string) {
	l.t.Helper()
	got := sink(l.t, filepath.Join(l.run, "netns", "h1", "root.office.web"), 9000)
	eventually(l.t, 30*time.Second, func() error {
		rate := m.send(web+":9000", got)
		if rate > 20.5e6 {
			l.t.Fatalf("the machine sends %.1f Mbit/s over a link of 20", rate/1e6)
		}
		if rate < 17e6 {
			return fmt.Errorf("the machine sends %.1f Mbit/s over a link of 20", rate/1e6)
		}
		l.t.Logf("the machine sends %.1f Mbit/s of payload over a link of 20", rate/1e6)
		return nil
	})
}

// reachesOnlyItsOwn tries what a machine that leads everything into the tunnel must
// not reach, and to be somebody else.
func (l *lab) reachesOnlyItsOwn(m *outsider, home string) {
	l.t.Helper()
	addressed(l.t, home, "lo", "10.99.0.1/32")
	var tries sync.WaitGroup
	for what, to := range map[string]string{
		"the host": "203.0.113.7", "another address of the host": "10.99.0.1", "what is outside": product.OutsideAddress.String(),
		"metadata": "169.254.169.254", "multicast": "224.0.0.1", "a broadcast": "255.255.255.255",
	} {
		tries.Go(func() {
			if m.ping(to, "-b") == nil {
				l.t.Errorf("%s (%s) answers the machine", what, to)
			}
		})
	}
	tries.Wait()
	const stranger = "10.200.0.1"
	need(l.t, kernel.In(m.ns, func() error { return exec.Command("ip", "addr", "add", stranger+"/32", "dev", "wg0").Run() }))
	if m.ping(l.networkAddress("web"), "-I", stranger) == nil {
		l.t.Error("a source that is not the machine's was answered")
	}
	ns := filepath.Join(l.run, "netns", "h2", "root.office.laptop")
	within(l.t, ns, func() error {
		out, err := exec.Command("ip", "-6", "addr", "show", "dev", "wg0").CombinedOutput()
		if err == nil && len(out) > 0 {
			l.t.Errorf("the tunnel has IPv6: %s", out)
		}
		return nil
	})
}

// wrongKeys tries to join without being asked to.
func (l *lab) wrongKeys(mine, theirs map[string]string, web string) {
	l.t.Helper()
	var tries sync.WaitGroup
	try := func(what string, s map[string]string) {
		m := l.outsider(s)
		tries.Go(func() {
			for range 4 {
				if m.ping(web) == nil {
					l.t.Errorf("%s opens the network", what)
				}
			}
			m.leave()
		})
	}
	defer tries.Wait()
	with := func(s map[string]string, name, value string) map[string]string {
		changed := map[string]string{name: value}
		for k, v := range s {
			if k != name {
				changed[k] = v
			}
		}
		return changed
	}
	try("a key of nobody", with(mine, "PrivateKey", base64.StdEncoding.EncodeToString([]byte("this is a key of nobody at all!!"))))
	try("the key of the other network", with(mine, "PrivateKey", theirs["PrivateKey"]))
	try("the other network's end", with(mine, "Endpoint", theirs["Endpoint"]))
}

// survivesKills kills the agent, and the tunnel's process.
func (s *supervisor) survivesKills(m *outsider, keys map[string]string, web string) *outsider {
	s.t.Helper()
	s.kill(agentOf("h2"))
	eventually(s.t, 10*time.Second, func() error { return m.ping(web) })
	before := s.tunnels()
	s.start(agentOf("h2"))
	s.settled()
	if after := s.tunnels(); !slices.Equal(after, before) {
		s.t.Errorf("a new agent replaced processes %v by %v", before, after)
	}
	eventually(s.t, 10*time.Second, func() error { return m.ping(web) })
	for _, pid := range before {
		need(s.t, syscall.Kill(pid, syscall.SIGKILL))
	}
	eventually(s.t, 20*time.Second, func() error {
		if now := s.tunnels(); len(now) != len(before) || slices.Equal(now, before) {
			return fmt.Errorf("processes %v that were killed are now %v", before, now)
		}
		return nil
	})
	s.settled()
	m.leave() // it would try again within 15 s
	m = s.outsider(keys)
	m.joins(web)
	for _, pid := range s.tunnels() {
		s.hasNoRights(pid)
	}
	return m
}

// tunnels lists the processes of tunnels that end on h2.
func (s *supervisor) tunnels() (pids []int) {
	group := filepath.Join(product.Cgroup(s.run), "h2", "root.office.laptop.join", "cgroup.procs")
	for _, file := range matches("/sys/fs/cgroup/"+group, "/sys/fs/cgroup/*/"+group) {
		text, _ := os.ReadFile(file)
		for _, f := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// hasNoRights looks at a process that carries packets.
func (s *supervisor) hasNoRights(pid int) {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	need(s.t, err)
	if !strings.Contains(string(status), "Uid:\t65534\t65534\t65534") || !strings.Contains(string(status), "CapEff:\t0000000000000000") || !strings.Contains(string(status), "NoNewPrivs:\t1") {
		s.t.Errorf("the tunnel's process has rights: %s", status)
	}
}

func publicOf(t *testing.T, private string) string {
	t.Helper()
	key, err := wgtypes.ParseKey(private)
	need(t, err)
	return key.PublicKey().String()
}

// joinRefusals are answers to those who ask for what is not there.
func (l *lab) joinRefusals() {
	l.t.Helper()
	for what, c := range map[string]struct {
		request, says string
		code          int
	}{
		"more than the place carries": {joinRequest("big", "60Mbit"), "place to join campus has 50Mbit", 3},
		"best effort":                 {"network: best\nnodes: [{name: a}, {name: laptop, join: any}]\nlinks: [{ends: [a, laptop]}]\n", "needs a rate", 2},
		"another place":               {"network: no\nnodes: [{name: a}, {name: laptop, join: none}]\nlinks: [{ends: [a, laptop], rate: 1Mbit}]\n", "no place to join \"none\"", 3},
		"two links":                   {"network: two\nnodes: [{name: a}, {name: b}, {name: laptop, join: any}]\nlinks: [{ends: [a, laptop], rate: 1Mbit}, {ends: [b, laptop], rate: 1Mbit}]\n", "has link", 2},
		"programs":                    {"network: run\nnodes: [{name: a}, {name: laptop, join: any, run: [[sleep, inf]]}]\nlinks: [{ends: [a, laptop], rate: 1Mbit}]\n", "set up there", 2},
		"three at two ports":          {"network: three\nnodes: [{name: a, join: any}, {name: b, join: any}, {name: c, join: any}]\nswitches: [{name: s}]\nlinks: [{ends: [a, s], rate: 1Mbit}, {ends: [b, s], rate: 1Mbit}, {ends: [c, s], rate: 1Mbit}]\n", "all ports", 3},
	} {
		if r := l.sublet("up", l.file("request.yaml", c.request)); r.code != c.code || !strings.Contains(r.err+r.out, c.says) {
			l.t.Errorf("%s: exit code %d, %s%s", what, r.code, r.out, r.err)
		}
	}
}

func need(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
