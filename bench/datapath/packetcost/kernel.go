package main

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"sublet/datapath/kernel"
	"sublet/measure/pktgen"
)

// bare is a pair of devices and nothing else.
func bare() (network, error) {
	b := newBuilder()
	b.space("a", "z")
	b.pair("a/eth0=10.0.0.1/24", "z/eth0=10.0.0.2/24")
	return b.build("bare veth pair", "a/eth0=10.0.0.1", "z/eth0=10.0.0.2")
}

// kernelRouters are n routing namespaces, each with a sender and a receiver.
func kernelRouters(n int) ([]network, error) {
	var all []network
	for i := range n {
		b := newBuilder()
		b.space("a", "z")
		b.router("r")
		b.pair("a/eth0=10.0.1.2/24", "r/eth0=10.0.1.1/24")
		b.pair("r/eth1=10.0.2.1/24", "z/eth0=10.0.2.2/24")
		b.route("a", "default", "10.0.1.1")
		b.route("z", "default", "10.0.2.1")
		net, err := b.build(fmt.Sprintf("kernel forwarding, %d of %d", i+1, n), "a/eth0=10.0.1.2", "z/eth0=10.0.2.2")
		all = append(all, net)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// linuxBridge is a switch of four ports.
func linuxBridge() (network, error) {
	b := newBuilder()
	b.space("s", "a", "z", "y", "x")
	b.add("ip netns exec %s sysctl -qw net.bridge.bridge-nf-call-iptables=0", b.ns("s"))
	b.add("ip -n %s link add br0 type bridge mcast_snooping 0", b.ns("s"))
	b.add("ip -n %s link set br0 up", b.ns("s"))
	b.stars("br0")
	return b.build("Linux bridge", "a/eth0=10.0.0.1", "z/eth0=10.0.0.2")
}

// stars joins four nodes to s, and to a bridge there unless its name is empty.
func (b *builder) stars(bridge string) {
	for i, name := range []string{"a", "z", "y", "x"} {
		b.pair(fmt.Sprintf("%s/eth0=10.0.0.%d/24", name, i+1), fmt.Sprintf("s/p%d", i))
		if bridge != "" {
			b.add("ip -n %s link set p%d master %s", b.ns("s"), i, bridge)
		}
	}
}

// hosts are two namespaces with an underlay between them, as the virtual
// machines of a lab or two real ones would be, and a node behind each.
func hosts() *builder {
	b := newBuilder()
	b.space("a", "z")
	b.router("h1", "h2")
	b.pair("h1/wire=192.0.2.1/24", "h2/wire=192.0.2.2/24")
	for _, host := range []string{"h1", "h2"} { // so that nodes have 1500 in all networks
		b.add("ip -n %s link set wire mtu 1550", b.ns(host))
	}
	return b
}

// plainOverlay carries the nodes' frames from host to host as they are: the
// path of an overlay without its headers.
func plainOverlay() (network, error) {
	b := hosts()
	b.pair("a/eth0=10.0.0.1/24", "h1/na")
	b.pair("z/eth0=10.0.0.2/24", "h2/nz")
	n, err := b.build("no encapsulation", "a/eth0=10.0.0.1", "z/eth0=10.0.0.2")
	if err != nil {
		return n, err
	}
	err = errors.Join(b.cross("h1", "na", "wire"), b.cross("h2", "nz", "wire"))
	n.wire, _ = b.place("h1/wire=192.0.2.1")
	return n, err
}

// cross joins a node's device and the wire of a host by two programs.
func (b *builder) cross(host, node, wire string) error {
	inner, err := b.place(host + "/" + node + "=0.0.0.0")
	if err != nil {
		return err
	}
	outer, err := b.place(host + "/" + wire + "=0.0.0.0")
	if err != nil {
		return err
	}
	to, err := outer.Link()
	if err != nil {
		return err
	}
	from, err := inner.Link()
	if err != nil {
		return err
	}
	return errors.Join(
		redirect(inner, from.Attrs().Index, to.Attrs().Index, asm.FnRedirect),
		redirect(outer, to.Attrs().Index, from.Attrs().Index, asm.FnRedirectPeer),
	)
}

// redirect sends all that enters by a device to another one, or to its peer.
// The filter lives as long as the device.
func redirect(at pktgen.Place, from, to int, call asm.BuiltinFunc) error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R1, int32(to)), asm.Mov.Imm(asm.R2, 0), call.Call(), asm.Return(),
	}})
	if err != nil {
		return err
	}
	defer program.Close()
	return kernel.In(at.NS, func() error {
		return link.RawAttachProgram(link.RawAttachProgramOptions{Target: from, Program: program, Attach: ebpf.AttachTCXIngress})
	})
}

const vxlan = "type vxlan id 42 local 192.0.2.%d remote 192.0.2.%d dstport 4789 nolearning"

// bridgedVXLAN is what containerlab and Mininet users build: a bridge on each
// host, with the node and a VXLAN device on it.
func bridgedVXLAN() (network, error) {
	b := hosts()
	for i, end := range [][2]string{{"h1", "a"}, {"h2", "z"}} {
		b.pair(fmt.Sprintf("%s/eth0=10.0.0.%d/24", end[1], i+1), end[0]+"/n0")
		b.tunnel(end[0], i)
	}
	n, err := b.build("kernel VXLAN and bridge", "a/eth0=10.0.0.1", "z/eth0=10.0.0.2")
	if err == nil {
		n.wire, err = b.place("h1/wire=192.0.2.1")
	}
	return n, err
}

// tunnel joins n0 of a host (0 or 1) and a VXLAN device by a bridge.
func (b *builder) tunnel(host string, i int) {
	ns := b.ns(host)
	b.add("ip netns exec %s sysctl -qw net.bridge.bridge-nf-call-iptables=0", ns)
	b.add("ip -n %s link add br0 type bridge mcast_snooping 0", ns)
	b.add("ip -n %s link add vx0 "+vxlan, ns, i+1, 2-i)
	for _, device := range []string{"n0", "vx0"} {
		b.add("ip -n %s link set %s master br0 up", ns, device)
	}
	b.add("ip -n %s link set br0 up", ns)
}

// nodeVXLAN puts the VXLAN device into the node's own namespace.
func nodeVXLAN() (network, error) {
	b := hosts()
	for i, end := range [][2]string{{"h1", "a"}, {"h2", "z"}} {
		b.add("ip -n %s link add eth0 "+vxlan, b.ns(end[0]), i+1, 2-i)
		b.add("ip -n %s link set eth0 netns %s", b.ns(end[0]), b.ns(end[1]))
		b.add("ip -n %s addr add 10.0.0.%d/24 dev eth0", b.ns(end[1]), i+1)
		b.add("ip -n %s link set eth0 up", b.ns(end[1]))
	}
	n, err := b.build("kernel VXLAN in the node", "a/eth0=10.0.0.1", "z/eth0=10.0.0.2")
	if err == nil {
		n.wire, err = b.place("h1/wire=192.0.2.1")
	}
	return n, err
}

// kernelPath is a whole path of kernel parts: node, bridge, router, VXLAN,
// router, node; shaped: with 100 HTB classes on the egress, chosen by u32.
func kernelPath(shaped bool) (network, error) {
	b := hosts()
	name := "kernel parts"
	b.router("r1", "r2")
	for i, end := range [][3]string{{"h1", "a", "r1"}, {"h2", "z", "r2"}} {
		host, node, router := end[0], end[1], end[2]
		b.pair(fmt.Sprintf("%s/eth0=10.0.%d.2/24", node, i+1), fmt.Sprintf("%s/s0", host))
		b.pair(fmt.Sprintf("%s/eth0=10.0.%d.1/24", router, i+1), fmt.Sprintf("%s/s1", host))
		b.pair(fmt.Sprintf("%s/eth1=10.0.9.%d/24", router, i+1), fmt.Sprintf("%s/n0", host))
		b.add("ip -n %s link add sw0 type bridge mcast_snooping 0", b.ns(host))
		for _, device := range []string{"s0", "s1"} {
			b.add("ip -n %s link set %s master sw0", b.ns(host), device)
		}
		b.add("ip -n %s link set sw0 up", b.ns(host))
		b.tunnel(host, i)
		b.route(node, "default", fmt.Sprintf("10.0.%d.1", i+1))
		b.route(router, fmt.Sprintf("10.0.%d.0/24", 2-i), fmt.Sprintf("10.0.9.%d", 2-i))
	}
	if shaped {
		name += ", 100 shaped classes"
		b.shape("h1", "wire")
		b.shape("h2", "wire")
	}
	return b.build(name, "a/eth0=10.0.1.2", "z/eth0=10.0.2.2")
}

// classes of the shaped egress.
const classes = 100

// shape makes classes that do not limit, and finds a packet's with u32, the
// usual way: by the addresses inside VXLAN. The load matches in the middle.
func (b *builder) shape(host, device string) {
	ns := b.ns(host)
	b.add("tc -n %s qdisc add dev %s root handle 1: htb default 1", ns, device)
	b.add("tc -n %s class add dev %s parent 1: classid 1:f000 htb rate 100gbit burst 256k cburst 256k", ns, device)
	for i := range classes {
		b.add("tc -n %s class add dev %s parent 1:f000 classid 1:%x htb rate 1gbit ceil 100gbit burst 256k cburst 256k", ns, device, i+1)
		b.add("tc -n %s filter add dev %s parent 1: protocol ip prio 1 u32 match u16 0x0a%02x 0xffff at 66 flowid 1:%x", ns, device, byte(i-classes/2), i+1)
	}
}

// openVSwitch is Debian's, with its userspace datapath; an error says that it
// is not installed.
func openVSwitch() (network, error) {
	for _, program := range []string{"ovs-vswitchd", "ethtool"} {
		if _, err := exec.LookPath(program); err != nil {
			return network{}, errNoOpenVSwitch
		}
	}
	b := newBuilder()
	b.space("s", "a", "z", "y", "x")
	b.stars("")
	for _, node := range []string{"a", "z"} { // it forwards what is not summed as it is
		b.add("ip netns exec %s ethtool -K eth0 tx off", b.ns(node))
	}
	n, err := b.build("Open vSwitch, userspace", "a/eth0=10.0.0.1", "z/eth0=10.0.0.2")
	if err != nil {
		return n, err
	}
	s, err := startOpenVSwitch(b.ns("s"))
	n.from.Processes = s.processes()
	n.close = func() error { return errors.Join(s.stop(), b.remove()) }
	return n, err
}

var errNoOpenVSwitch = errors.New("no Open vSwitch is installed: apt-get install openvswitch-switch ethtool")
