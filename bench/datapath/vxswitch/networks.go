package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/measure/pktgen"
)

// network is two places joined by a forwarder, which is a process or nothing.
type network struct {
	name     string
	from, to pktgen.Place
	process  int
	cleanup  []func()
}

func (n *network) close() {
	for i := len(n.cleanup) - 1; i >= 0; i-- {
		n.cleanup[i]()
	}
}

// namespaces makes vxbN-a, vxbN-b and vxbN-s, in which the forwarder is.
func (n *network) namespaces() error {
	for _, end := range []string{"a", "b", "s"} {
		ns := n.ns(end)
		if err := harness.Commands("ip netns add "+ns, "ip -n "+ns+" link set lo up", "ip netns exec "+ns+" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"); err != nil {
			return err
		}
		n.cleanup = append(n.cleanup, func() { harness.Commands("ip netns del " + ns) })
	}
	return nil
}

func (n *network) ns(end string) string { return "vxb" + n.name + "-" + end }

// places opens both ends, whose devices are called eth0.
func (n *network) places() (err error) {
	for i, end := range []string{"a", "b"} {
		address := fmt.Sprintf("10.8.0.%d", i+1)
		if err := harness.Commands("ip -n "+n.ns(end)+" addr add "+address+"/24 dev eth0", "ip -n "+n.ns(end)+" link set eth0 up"); err != nil {
			return err
		}
		place, err := pktgen.Open("/run/netns/"+n.ns(end), "eth0", netip.MustParseAddr(address))
		if err != nil {
			return err
		}
		if i == 0 {
			n.from = place
		} else {
			n.to = place
		}
	}
	return nil
}

// veths joins both ends to the forwarder's namespace as p0 and p1.
func (n *network) veths() error {
	for i, end := range []string{"a", "b"} {
		if err := harness.Commands(
			fmt.Sprintf("ip -n %s link add eth0 type veth peer name p%d netns %s", n.ns(end), i, n.ns("s")),
			fmt.Sprintf("ip -n %s link set p%d up", n.ns("s"), i)); err != nil {
			return err
		}
	}
	return nil
}

// start starts a program in the forwarder's namespace and waits for a line of
// its output that contains ready.
func (n *network) start(ready string, argv ...string) error {
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.ns("s")}, argv...)...)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		return err
	}
	n.process = cmd.Process.Pid
	n.cleanup = append(n.cleanup, func() { cmd.Process.Kill(); cmd.Wait() })
	found := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(out)
		var all []string
		for lines.Scan() {
			if all = append(all, lines.Text()); strings.Contains(lines.Text(), ready) {
				found <- nil
			}
		}
		found <- fmt.Errorf("%s ends: %s", argv[0], strings.Join(all, "; "))
	}()
	select {
	case err := <-found:
		return err
	case <-time.After(20 * time.Second):
		return fmt.Errorf("%s is not ready", argv[0])
	}
}

const config = `
cpu: 0
spin: 1us
ports:
- {name: a, tap: eth0, namespace: /run/netns/%s}
- {name: b, tap: eth0, namespace: /run/netns/%s}
virtual_switches:
- name: one
  buffer: 4MiB
  ports: [{port: a, in: 90Gbit, out: 90Gbit}, {port: b, in: 90Gbit, out: 90Gbit}]
`

// vxswitch is the product: TAP devices, two lookups, crosspoint queues, DRR at
// both levels, caps.
func vxswitch(n *network, exe, dir string) error {
	file := filepath.Join(dir, "vxswitch.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, n.ns("a"), n.ns("b")), 0o600); err != nil {
		return err
	}
	return n.start("hosting switch of", exe, "vxswitch", "run", file, "--socket", filepath.Join(dir, "vxswitch.sock"))
}

const configOnVeth = `
cpu: 0
spin: 1us
ports:
- {name: a, %[1]s: p0}
- {name: b, %[1]s: p1}
virtual_switches:
- name: one
  buffer: 4MiB
  ports: [{port: a, in: 90Gbit, out: 90Gbit}, {port: b, in: 90Gbit, out: 90Gbit}]
`

// vxswitchOnVeth is the product with sockets on veth: packet, as leases have it,
// beside Open vSwitch's default, and xdp beside its AF_XDP ports.
func vxswitchOnVeth(kind string) func(n *network, exe, dir string) error {
	return func(n *network, exe, dir string) error {
		if err := n.veths(); err != nil {
			return err
		}
		file := filepath.Join(dir, n.name+".yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, configOnVeth, kind), 0o600); err != nil {
			return err
		}
		return n.start("hosting switch of", exe, "vxswitch", "run", file, "--socket", filepath.Join(dir, n.name+".sock"))
	}
}

// copyLoop is the limit: a C program that only copies.
func copyLoop(n *network, _, dir string) error {
	exe := filepath.Join(dir, "copy")
	if out, err := exec.Command("cc", "-O2", "-o", exe, "bench/datapath/vxswitch/copy/copy.c").CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w: %s", err, out)
	}
	if err := n.start("ready", exe, "t0", "t1", "0"); err != nil {
		return err
	}
	return harness.Commands(
		fmt.Sprintf("ip -n %s link set t0 name eth0 netns %s", n.ns("s"), n.ns("a")),
		fmt.Sprintf("ip -n %s link set t1 name eth0 netns %s", n.ns("s"), n.ns("b")))
}

// bridge is the kernel's, with the packet filter's hooks off.
func bridge(n *network, _, _ string) error {
	if err := n.veths(); err != nil {
		return err
	}
	s := "ip -n " + n.ns("s") + " link "
	return harness.Commands(s+"add br0 type bridge", s+"set p0 master br0", s+"set p1 master br0", s+"set br0 up")
}

// openVSwitch is Debian's with the userspace datapath on processor 0.
func openVSwitch(kind string) func(n *network, exe, dir string) error {
	return func(n *network, _, dir string) error {
		if err := n.veths(); err != nil {
			return err
		}
		for _, end := range []string{"a", "b"} { // it forwards what is not summed as it is
			if err := harness.Commands("ip netns exec " + n.ns(end) + " ethtool -K eth0 tx off"); err != nil {
				return err
			}
		}
		dir = filepath.Join(dir, n.name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		db, sock := filepath.Join(dir, "conf.db"), filepath.Join(dir, "db.sock")
		if err := harness.Commands("ovsdb-tool create " + db + " /usr/share/openvswitch/vswitch.ovsschema"); err != nil {
			return err
		}
		if err := n.daemon("ovsdb-server", db, "--remote=punix:"+sock, "--unixctl="+filepath.Join(dir, "db.ctl"), "--pidfile="+filepath.Join(dir, "db.pid")); err != nil {
			return err
		}
		ctl := "ip netns exec " + n.ns("s") + " ovs-vsctl --timeout=20 --db=unix:" + sock + " "
		for range 50 {
			if _, err := os.Stat(sock); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err := harness.Commands(ctl+"--no-wait init", ctl+"--no-wait set Open_vSwitch . other_config:pmd-cpu-mask=1"); err != nil {
			return err
		}
		if err := n.daemon("taskset", "-c", "0", "ovs-vswitchd", "unix:"+sock, "--unixctl="+filepath.Join(dir, "vs.ctl"), "--pidfile="+filepath.Join(dir, "vs.pid"), "--log-file="+filepath.Join(dir, "vs.log")); err != nil {
			return err
		}
		add := "add-br br0 -- set bridge br0 datapath_type=netdev"
		for i := range 2 {
			add += fmt.Sprintf(" -- add-port br0 p%d -- set interface p%d type=%s", i, i, kind)
		}
		return harness.Commands(ctl + strings.ReplaceAll(add, "type=system", "type=\"\""))
	}
}

func (n *network) daemon(argv ...string) error {
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.ns("s")}, argv...)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	n.process = cmd.Process.Pid
	n.cleanup = append(n.cleanup, func() { cmd.Process.Kill(); cmd.Wait() })
	return nil
}

// up builds a network; what was built of one that fails is taken down.
func up(name string, build func(*network, string, string) error, exe, dir string) (*network, error) {
	n := &network{name: name}
	err := n.namespaces()
	if err == nil {
		err = build(n, exe, dir)
	}
	if err == nil {
		err = n.places()
	}
	if err != nil {
		n.close()
		return nil, errors.Join(fmt.Errorf("network %s", name), err)
	}
	return n, nil
}
