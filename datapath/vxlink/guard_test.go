package vxlink

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/vnet"
)

// vxlanPacket is a VXLAN header and a frame of the experimental type, marked.
func vxlanPacket(vni uint32, flags, mark byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{flags, 0, 0, 0}, vni<<8)
	b = append(b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x88, 0xb5, mark)
	return append(b, make([]byte, 50)...)
}

// forged is a sender of such packets; options are IP options he adds.
type forged struct {
	ns, from, to string
	vni          uint32
	flags        byte
	options      []byte
}

func (f forged) send(t *testing.T, mark byte) {
	t.Helper()
	ns, err := kernel.OpenNamespace(f.ns)
	check(t, err)
	defer ns.Close()
	check(t, kernel.In(ns, func() error {
		conn, err := net.ListenPacket("udp4", f.from)
		if err != nil {
			return err
		}
		defer conn.Close()
		if f.options != nil {
			raw, err := conn.(*net.UDPConn).SyscallConn()
			if err != nil {
				return err
			}
			check(t, raw.Control(func(fd uintptr) {
				check(t, unix.SetsockoptString(int(fd), unix.IPPROTO_IP, unix.IP_OPTIONS, string(f.options)))
			}))
		}
		to, err := net.ResolveUDPAddr("udp4", f.to)
		if err == nil {
			_, err = conn.WriteTo(vxlanPacket(f.vni, f.flags, mark), to)
		}
		return err
	}))
}

// Who knows a tunnel's number and its two addresses can send nothing into it,
// unless he is root of a host and takes the peer's address: not from a user's
// port, not from another address, not on the host itself, not with options.
func TestGuard(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	for i, h := range hosts {
		b.node(h, []string{"n0", "n1"}[i])
		add(t, parts[i], uplink(), across(i, 100*vnet.Mbit))
	}
	h0, h1 := hosts[0].Namespace, hosts[1].Namespace
	b.ip(h0, "addr", "add", "10.99.0.77/24", "dev", "phy0")
	node, err := kernel.OpenNamespace(hosts[1].Path("alice.demo.n1"))
	check(t, err)
	defer node.Close()
	var heard int
	check(t, kernel.In(node, func() error {
		heard, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(binary.NativeEndian.Uint16([]byte{0x88, 0xb5})))
		return err
	}))
	defer unix.Close(heard)
	check(t, unix.SetsockoptTimeval(heard, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}))
	const valid, own = 8, 77
	for i, f := range []forged{
		{h0, "10.99.0.1:40000", "10.99.0.2:4789", own, valid, nil},
		{h0, "10.99.0.1:1024", "10.99.0.2:4789", own, valid, nil},
		{h0, "10.99.0.1:65535", "10.99.0.2:4789", own, valid, nil},
		{h0, "10.99.0.77:600", "10.99.0.2:4789", own, valid, nil},
		{h0, "10.99.0.1:600", "10.99.0.2:4789", own, valid, []byte{1, 1, 1, 1}},
		{h0, "10.99.0.1:600", "10.99.0.2:4789", own + 1, valid, nil},
		{h0, "10.99.0.1:600", "10.99.0.2:4789", own, 0, nil},
		{h1, "10.99.0.2:600", "10.99.0.2:4789", own, valid, nil},
		{h1, "127.0.0.1:600", "127.0.0.1:4789", own, valid, nil},
		{h1, "10.99.0.2:40000", "10.99.0.2:4789", own, valid, nil},
	} {
		f.send(t, byte(1+i))
	}
	root := forged{h0, "10.99.0.1:600", "10.99.0.2:4789", own, valid, nil}
	root.send(t, 0xff)
	frame := make([]byte, 100)
	n, _, err := unix.Recvfrom(heard, frame, 0)
	check(t, err)
	if mark := frame[14]; n < 15 || mark != 0xff {
		t.Errorf("forged packet %d arrived", mark)
	}
	b.ping(hosts[0].Path("alice.demo.n0"), address(1))
	if v := b.in(hosts[0].Path("alice.demo"), "ip", "-d", "link", "show", "l0b"); !strings.Contains(v, "srcport 512 1023") {
		t.Errorf("source ports of the tunnel: %s", v)
	}
	b.in(h1, "tc", "filter", "del", "dev", "phy0", "ingress")
	if have := observe(t, parts[1]); have.Uplinks[0] == uplink() {
		t.Error("a missing guard is not seen")
	}
	add(t, parts[1], uplink())
	b.ping(hosts[0].Path("alice.demo.n0"), address(1))
	b.in(h1, "tc", "qdisc", "del", "dev", "phy0", "root") // the guard is found without it too
	if have := observe(t, parts[1]); len(have.Uplinks) != 1 || have.Uplinks[0] == uplink() {
		t.Errorf("a guard without a queue: %v", have.Uplinks)
	}
	for i, p := range parts {
		remove(t, p, across(i, 100*vnet.Mbit), uplink())
	}
	for _, ns := range []string{h0, h1} {
		if left := b.in(ns, "tc", "qdisc", "show", "dev", "phy0"); strings.Contains(left, "clsact") || strings.Contains(left, "htb") {
			t.Errorf("left on the uplink: %s", left)
		}
	}
}

// Others' filters on the uplink stay, with the hook.
func TestGuardLeavesOthersAlone(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	home := hosts[0].Namespace
	b.in(home, "tc", "qdisc", "add", "dev", "phy0", "clsact")
	b.in(home, strings.Fields("tc filter add dev phy0 egress prio 7 protocol ip u32 match u32 0 0 flowid 1:1")...)
	add(t, parts[0], uplink())
	has(t, parts[0], uplink())
	remove(t, parts[0], uplink())
	if left := b.in(home, "tc", "filter", "show", "dev", "phy0", "egress"); !strings.Contains(left, "pref 7") {
		t.Errorf("the operator's filter is gone: %q", left)
	}
	if left := b.in(home, "tc", "filter", "show", "dev", "phy0", "ingress"); left != "" {
		t.Errorf("left: %s", left)
	}
}
