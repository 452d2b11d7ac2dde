package vxlink

import (
	"context"
	"errors"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// TestDamage breaks one thing at a time: Observe must see it and Do repair it.
func TestDamage(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	node := b.node(hosts[0], "n0")
	p, link := parts[0], across(0, 100*vnet.Mbit)
	fabric, home := hosts[0].Path(plan.Fabric(demo)), hosts[0].Namespace
	add(t, p, uplink(), link)
	trunk := plan.Trunk(demo)
	for _, c := range []struct{ ns, command string }{
		{fabric, "tc filter del dev l0a ingress"},
		{fabric, "tc qdisc del dev l0a clsact"},
		{fabric, "tc qdisc replace dev l0a root pfifo"},
		{fabric, "ip link set l0a down"},
		{fabric, "ip link set l0a mtu 1000"},
		{fabric, "ip link set l0a alias nonsense"},
		{fabric, "ip link set l0a down name gone"},
		{fabric, "ip link del l0a"},
		{fabric, "ip link add l0b type bridge"},
		{fabric, "ip link set headroom up"},
		{fabric, "ip link del trunk"},
		{fabric, "ip link set trunk down"},
		{fabric, "ip link set trunk alias nonsense"},
		{fabric, "ip link set trunk down name gone"},
		{fabric, "ip link set trunk mtu 1500"},
		{home, "ip link set " + trunk + " alias nonsense"},
		{home, "ip link set " + trunk + " down name gone"},
		{home, "tc filter del dev " + trunk + " ingress"},
		{home, "tc qdisc del dev " + trunk + " clsact"},
		{home, "ip link del " + trunk},
		{node, "ip link del eth0"},
		{node, "ip link set eth0 mtu 9000"},
		{node, "ip addr flush dev eth0"},
		{node, "ip link set eth0 down name eth9"},
		{node, "ip addr flush dev eth0; ip addr add 10.0.0.77 peer 10.0.0.78/32 dev eth0 metric 3"},
		{node, "ip link del eth0; ip link set lo down; ip link set lo name eth0"},
		{home, "tc class change dev phy0 parent 1:2 classid 1:10 htb rate 1mbit"},
		{home, "tc qdisc del dev phy0 parent 1:10"},
		{home, "tc class del dev phy0 classid 1:10"},
	} {
		for command := range strings.SplitSeq(c.command, ";") {
			b.in(c.ns, strings.Fields(command)...)
		}
		repaired(t, p, link, c.command)
	}
	for what, do := range inMaps(p, link) {
		check(t, do())
		repaired(t, p, link, what)
	}
	if classes := b.in(home, "tc", "class", "show", "dev", "phy0"); strings.Count(classes, "\n") != 6 {
		t.Errorf("classes left over:\n%s", classes)
	}
}

// repaired fails unless Observe sees that a link is broken and Do mends it.
func repaired(t *testing.T, p *Part, link plan.VxLink, what string) {
	t.Helper()
	have := observe(t, p)
	if len(plan.Of[plan.VxLink](have)) != 1 || reflect.DeepEqual(plan.Of[plan.VxLink](have)[0], link) {
		t.Errorf("%s: observed %v", what, have)
		return
	}
	check(t, p.Do(t.Context(), plan.Step{Op: plan.Set, Item: link, Was: plan.Of[plan.VxLink](have)[0]}))
	if now := observe(t, p); !reflect.DeepEqual(plan.Of[plan.VxLink](now), []plan.VxLink{link}) {
		t.Errorf("%s: repaired to %v", what, now)
	}
}

// inMaps are damages to what programs look up, and to pins. The link has its
// tunnel at end 1.
func inMaps(p *Part, link plan.VxLink) map[string]func() error {
	r := p.loaded
	slot := func(i int) uint32 { return p.places[place{link.Lease, link.Index, i}] }
	return map[string]func() error{
		"the way of a port lost":   func() error { return r.setEnd(slot(0), vxlinkEnd{}) },
		"the way of a tunnel lost": func() error { return r.setEnd(slot(1), vxlinkEnd{}) },
		"a way that leads elsewhere": func() error {
			e, err := r.end(slot(0))
			e.Mark++
			return errors.Join(err, r.setEnd(slot(0), e))
		},
		"a VNI forgotten":    func() error { return r.tunnels.Delete(uint32(link.Ends[1].Tunnel.VNI)) },
		"a trunk's pin lost": func() error { return r.pins.Remove(trunkPin(p.places[trunkOf(link.Lease)])) },
	}
}

// The bridge that reserves headroom carries nothing, not even when the programs
// in front of it are gone. (Frames to 01:80:c2:00:00:0e it leaves to the fabric's
// stack, which has no address and forwards nothing.)
func TestHeadroomCarriesNothing(t *testing.T) {
	b := newBench(t)
	parts, nodes, hosts := b.connect(500 * vnet.Mbit)
	second := across(0, 500*vnet.Mbit)
	second.Index, second.Link = 1, "n2-n1"
	second.Ends[0].Port = port(2, 1, 0)
	tunnel := *second.Ends[1].Tunnel
	tunnel.VNI, second.Ends[1].Tunnel = 78, &tunnel
	n2 := b.node(hosts[0], "n2")
	add(t, parts[0], second)
	fabric := hosts[0].Path(plan.Fabric(demo))
	if ports := b.in(fabric, "ip", "-o", "link", "show", "master", "headroom"); strings.Count(ports, "\n") != 3 {
		t.Errorf("ports of the bridge:\n%s", ports)
	}
	for _, device := range []string{"l0a", "l1a"} {
		b.in(fabric, "tc", "qdisc", "del", "dev", device, "clsact")
	}
	got := b.in(n2, "cat", "/sys/class/net/eth0/statistics/rx_packets")
	b.in(nodes[0], "python3", "-c", frames)
	if now := b.in(n2, "cat", "/sys/class/net/eth0/statistics/rx_packets"); now != got {
		t.Errorf("another node of the lease saw packets: %s before, %s after", got, now)
	}
}

// What is unpinned while the agent runs is pinned again, or a later agent
// would begin anew; nothing that carries frames is touched.
func TestPinsLast(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.node(hosts[0], "n0")
	p, link := parts[0], across(0, 100*vnet.Mbit)
	add(t, p, uplink(), link)
	before := b.in(hosts[0].Path(plan.Fabric(demo)), "tc", "filter", "show", "dev", "l0a", "ingress")
	for _, damage := range []func() error{
		p.loaded.pins.Unpin,
		func() error { return unix.Unmount(hosts[0].Dir("bpf"), unix.MNT_DETACH) },
	} {
		check(t, damage())
		have := observe(t, p)
		if len(plan.Of[plan.VxLink](have)) == 1 && !reflect.DeepEqual(plan.Of[plan.VxLink](have)[0], link) { // the trunk's program went with its pin
			add(t, p, link)
		}
		has(t, New(hosts[0]), uplink(), link)
		if after := b.in(hosts[0].Path(plan.Fabric(demo)), "tc", "filter", "show", "dev", "l0a", "ingress"); after != before {
			t.Errorf("the port's filter was touched:\n%s\n%s", before, after)
		}
	}
}

func TestDamagedUplink(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.node(hosts[0], "n0")
	p, link := parts[0], across(0, 100*vnet.Mbit)
	add(t, p, uplink(), link)
	for _, command := range []string{
		"tc qdisc del dev phy0 root",
		"tc class change dev phy0 parent 1: classid 1:1 htb rate 1mbit",
		"tc class change dev phy0 parent 1:1 classid 1:3 htb rate 1mbit ceil 2mbit",
		"tc filter del dev phy0 parent 1:",
	} {
		b.in(hosts[0].Namespace, strings.Fields(command)...)
		if have := observe(t, p); reflect.DeepEqual(plan.Of[plan.Uplink](have), []plan.Uplink{uplink()}) {
			t.Errorf("%s: not seen", command)
		}
		add(t, p, uplink(), link)
		has(t, p, uplink(), link)
	}
}

// A tunnel set up while its uplink has no classes fails, instead of getting a
// class at the root that nothing can move; a class below the wrong parent is
// made anew.
func TestClassesHaveTheirParents(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.node(hosts[0], "n0")
	p, link := parts[0], across(0, 100*vnet.Mbit)
	home := hosts[0].Namespace
	b.in(home, strings.Fields("tc qdisc add dev phy0 root handle 1: htb default 4")...)
	if err := p.Do(t.Context(), plan.Step{Op: plan.Add, Item: link}); err == nil {
		t.Error("a tunnel got a class without an uplink")
	}
	add(t, p, uplink(), link)
	has(t, p, uplink(), link)
	b.in(home, strings.Fields("tc class del dev phy0 classid 1:10")...)
	b.in(home, strings.Fields("tc class add dev phy0 parent 1: classid 1:10 htb rate 1mbit")...)
	add(t, p, uplink(), link)
	has(t, p, uplink(), link)
	b.in(home, strings.Fields("tc class del dev phy0 classid 1:10")...)
	for _, id := range []string{"1:4", "1:3"} {
		b.in(home, "tc", "class", "del", "dev", "phy0", "classid", id)
	}
	b.in(home, strings.Fields("tc class add dev phy0 parent 1: classid 1:3 htb rate 1mbit")...)
	b.in(home, strings.Fields("tc class add dev phy0 parent 1:3 classid 1:4 htb rate 1mbit")...)
	_ = p.Do(t.Context(), plan.Step{Op: plan.Set, Item: uplink(), Was: uplink()}) // may take two passes
	add(t, p, uplink(), link)
	has(t, p, uplink(), link)
}

// TestAddressResolution is not left to wait behind the host's own traffic.
func TestAddressResolution(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	add(t, parts[0], uplink())
	b.ip(hosts[0].Namespace, "neigh", "flush", "all")
	b.ping(hosts[0].Namespace, underlay(1))
	arp := b.in(hosts[0].Namespace, "tc", "-s", "class", "show", "dev", "phy0", "classid", "1:5")
	if !strings.Contains(arp, "Sent") || strings.Contains(arp, "Sent 0 bytes") {
		t.Errorf("address resolution went elsewhere:\n%s", arp)
	}
}

// TestForeignQueue leaves an administrator's queue alone.
func TestForeignQueue(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.in(hosts[0].Namespace, strings.Fields("tc qdisc add dev phy0 root handle 7: tbf rate 1mbit burst 10kb limit 10kb")...)
	err := parts[0].Do(context.Background(), plan.Step{Op: plan.Add, Item: uplink()})
	if err == nil || !strings.Contains(err.Error(), "remove it first") {
		t.Errorf("took over a foreign queue: %v", err)
	}
	remove(t, parts[0], uplink())
	if q := b.in(hosts[0].Namespace, "tc", "qdisc", "show", "dev", "phy0"); !strings.Contains(q, "tbf 7:") {
		t.Errorf("the foreign queue is gone: %s", q)
	}
}

// TestSweep removes what no plan can name.
func TestSweep(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.node(hosts[0], "n0")
	p := parts[0]
	add(t, p, uplink(), across(0, 100*vnet.Mbit))
	check(t, kernel.Unbind(hosts[0].Path(plan.Fabric(demo)))) // the tunnel dies with its namespace
	b.in(hosts[0].Namespace, "tc", "class", "show", "dev", "phy0")
	has(t, p, uplink())
	if out := b.in(hosts[0].Namespace, "tc", "class", "show", "dev", "phy0"); strings.Contains(out, "1:10") {
		t.Errorf("class left:\n%s", out)
	}
	add(t, p, across(0, 100*vnet.Mbit))
	has(t, p, uplink(), across(0, 100*vnet.Mbit))
	remove(t, p, across(0, 100*vnet.Mbit))
	check(t, p.makeFabric(plan.Fabric(demo))) // a crash before the first device
	has(t, p, uplink())
	if left, _ := hosts[0].Names("netns"); len(left) != 1 {
		t.Errorf("namespaces left: %v", left)
	}
}

// TestChange changes what may change in place, and checks that it was.
func TestChange(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.node(hosts[0], "n0")
	p, link := parts[0], across(0, 100*vnet.Mbit)
	add(t, p, uplink(), link)
	before := b.in(hosts[0].Path(plan.Fabric(demo)), "ip", "-o", "link")
	set := func(change func(e *plan.End)) {
		t.Helper()
		was := link
		end := link.Ends[1]
		tunnel := *end.Tunnel
		end.Tunnel = &tunnel
		change(&end)
		link.Ends[1] = end
		check(t, p.Do(context.Background(), plan.Step{Op: plan.Set, Item: link, Was: was}))
		has(t, p, uplink(), link)
	}
	set(func(e *plan.End) { e.Rate = 500 * vnet.Mbit; e.Tunnel.Class.Ceil = plan.Outer(e.Rate) })
	set(func(e *plan.End) { e.Rate = 0 })
	set(func(e *plan.End) {
		e.Tunnel.Class = plan.Class{Guaranteed: 8 * vnet.Kbit, Ceil: 100 * vnet.Gbit, BestEffort: true}
	})
	set(func(e *plan.End) {
		e.Rate = 5 * vnet.Gbit
		e.Tunnel.Class = plan.Class{Guaranteed: plan.Outer(5 * vnet.Gbit), Ceil: plan.Outer(5 * vnet.Gbit)}
	})
	after := b.in(hosts[0].Path(plan.Fabric(demo)), "ip", "-o", "link")
	if indexes(before) != indexes(after) {
		t.Errorf("devices were made anew:\n%s\n%s", before, after)
	}
	if classes := b.in(hosts[0].Namespace, "tc", "class", "show", "dev", "phy0"); strings.Count(classes, "\n") != 6 {
		t.Errorf("classes left over:\n%s", classes)
	}
}

// indexes takes the device numbers out of what ip prints.
func indexes(text string) string {
	var list []string
	for _, line := range strings.Split(text, "\n") {
		number, _, _ := strings.Cut(line, ":")
		list = append(list, number)
	}
	return strings.Join(list, " ")
}

// TestIsolation sends frames of many kinds into a link and looks for them
// everywhere else.
func TestIsolation(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3 to make raw frames")
	}
	b := newBench(t)
	p, h := b.host("h1")
	n0 := b.node(h, "n0")
	n1 := b.node(h, "n1")
	add(t, p, local(0))
	before := b.in(h.Namespace, "cat", "/proc/net/dev")
	fabricBefore := b.in(h.Path(plan.Fabric(demo)), "cat", "/proc/net/snmp")
	sent := b.in(n0, "python3", "-c", frames)
	if got := b.in(n1, "python3", "-c", received); got != sent {
		t.Errorf("received %s of %s frames", got, sent)
	}
	if after := b.in(h.Namespace, "cat", "/proc/net/dev"); after != before {
		t.Errorf("the host saw frames:\n%s\n%s", before, after)
	}
	if after := b.in(h.Path(plan.Fabric(demo)), "cat", "/proc/net/snmp"); after != fabricBefore {
		t.Errorf("the fabric's IP stack saw packets:\n%s\n%s", fabricBefore, after)
	}
}

// frames sends one frame of each destination, type and VLAN tag.
const frames = `
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('eth0', 0))
n = 0
for mac in ('ffffffffffff', '0180c2000000', '0180c200000e', '01005e000001', '333300000001', '020000000001'):
    for kind in (0x0800, 0x0806, 0x86dd, 0x8847, 0x88cc, 0x88f7, 0x9000, 0x1234):
        for tag in (b'', struct.pack('!HH', 0x8100, 5), struct.pack('!HHHH', 0x88a8, 1, 0x8100, 2)):
            s.send(bytes.fromhex(mac) + b'\x02\0\0\0\0\x02' + tag + struct.pack('!H', kind) + b'SUBLETTEST' * 8)
            n += 1
print(n)`

// received counts what came: the device's counter less the few frames of IPv6.
const received = `
import time
def rx(): return int(open('/proc/net/dev').read().split('eth0:')[1].split()[1])
end = time.monotonic() + 3
while rx() < 144 and time.monotonic() < end: time.sleep(.01)
print(144 if rx() >= 144 else rx())`

// TestClassThatWasFreedIsAnothers: a link that lost its class in a change that was not
// ended leaves the class alone that another link made with its number.
func TestClassThatWasFreedIsAnothers(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.node(hosts[0], "n0")
	p, first := parts[0], across(0, 100*vnet.Mbit)
	second := across(0, 200*vnet.Mbit)
	second.Link, second.Index = "other", 1
	second.Ends[0].Port, second.Ends[1].Tunnel = port(0, 1, 1), tunnel(0, 78, 200*vnet.Mbit)
	add(t, p, uplink(), first)
	w, err := p.open(first)
	check(t, err)
	slot, _, err := p.find(w.programs, placeOf(first, 1))
	check(t, err)
	was, err := w.programs.read(slot)
	check(t, err)
	check(t, w.unmake(slot, was)) // and no more of the change
	w.close()
	add(t, p, second)
	if slot, _, err = p.find(w.programs, placeOf(second, 1)); err != nil {
		t.Fatal(err)
	}
	if has, err := w.programs.read(slot); err != nil || has.Minor != was.Minor {
		t.Fatalf("the other link has class 1:%x, want 1:%x: %v", has.Minor, was.Minor, err)
	}
	remove(t, p, first)
	has(t, p, uplink(), second)
}
