package access

import (
	"context"
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/internal/stall"
	"sublet/plan"
	"sublet/vnet"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ground is a host with an interface eth2 and the namespaces of two switches.
//
//	switch [eth1] ==veth== sx... host [eth2] ==veth== [out0] outside
type ground struct {
	t       *testing.T
	host    *kernel.Host
	home    *kernel.Conn
	outside *os.File
	part    *Part
}

func accessOf(name string, vlan uint16) plan.Access {
	return plan.Access{Lease: vnet.LeaseID{Tenant: "alice", Network: "demo"}, Switch: name, Port: "eth1", Interface: "eth2", VLAN: vlan}
}

func newGround(t *testing.T) *ground {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	check(t, bpf.Supported())
	run := t.TempDir()
	g := &ground{t: t}
	home := g.namespace(filepath.Join(run, "homes", "h1"))
	var err error
	g.host, err = kernel.NewHost(kernel.Config{Host: "h1", Run: run, Namespace: home})
	check(t, err)
	t.Cleanup(func() { g.host.Close() })
	g.outside, err = kernel.NewNamespace(func() error { return nil })
	check(t, err)
	t.Cleanup(func() { g.outside.Close() })
	for _, name := range []string{"office", "lab"} {
		key := accessOf(name, 0).Key()
		check(t, g.host.MakeSilent(key))
		t.Cleanup(func() { kernel.Unbind(g.host.Path(key)) })
	}
	g.home, err = g.host.Dial("")
	check(t, err)
	t.Cleanup(func() { g.home.Close() })
	g.wire()
	g.part = New(g.host)
	t.Cleanup(func() { check(t, g.part.unload()) })
	return g
}

func (g *ground) namespace(path string) string {
	g.t.Helper()
	ns, err := kernel.NewNamespace(func() error { return nil })
	check(g.t, err)
	defer ns.Close()
	check(g.t, kernel.Bind(ns, path))
	g.t.Cleanup(func() { kernel.Unbind(path) })
	return path
}

func (g *ground) wire() {
	g.t.Helper()
	check(g.t, g.home.Do(kernel.NewLink("eth2", "veth", func(m *kernel.Message) {
		const peer = 1 // VETH_INFO_PEER
		m.Nest(peer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, "out0").Uint32(unix.IFLA_NET_NS_FD, uint32(g.outside.Fd()))
		})
	})))
	check(g.t, g.home.Do(kernel.UpLink(g.interfaceIndex())))
	c, err := kernel.DialIn(g.outside)
	check(g.t, err)
	defer c.Close()
	l, err := c.LinkByName("out0")
	check(g.t, err)
	check(g.t, c.Do(kernel.UpLink(l.Index)))
}

func (g *ground) interfaceIndex() int {
	g.t.Helper()
	l, err := g.home.LinkByName("eth2")
	check(g.t, err)
	return l.Index
}

func (g *ground) do(op plan.Op, item plan.Access) {
	g.t.Helper()
	check(g.t, g.part.Do(context.Background(), plan.Step{Op: op, Item: item}))
}

func (g *ground) observed() []plan.Access {
	g.t.Helper()
	var host plan.Host
	check(g.t, g.part.Observe(context.Background(), &host))
	if len(host.Unknown) > 0 {
		g.t.Fatalf("could not look at: %v", host.Unknown)
	}
	return plan.Of[plan.Access](host)
}

// What is made is observed as planned; what is deleted leaves the host as it was.
func TestAccessIsObservedAsMade(t *testing.T) {
	g := newGround(t)
	before, err := g.home.Links()
	check(t, err)
	first, second := accessOf("lab", 101), accessOf("office", 100)
	g.do(plan.Add, second)
	g.do(plan.Add, first)
	if have := g.observed(); !reflect.DeepEqual(have, []plan.Access{first, second}) {
		t.Fatalf("observed %v", have)
	}
	other := second
	other.VLAN = 102
	g.do(plan.Set, other)
	g.part.Close() // as an agent that begins
	if have := g.observed(); !reflect.DeepEqual(have, []plan.Access{first, other}) {
		t.Fatalf("observed %v", have)
	}
	g.do(plan.Delete, first)
	if have := g.observed(); !reflect.DeepEqual(have, []plan.Access{other}) {
		t.Fatalf("observed %v", have)
	}
	g.do(plan.Delete, plan.Access{Lease: other.Lease, Switch: other.Switch})
	g.do(plan.Delete, other) // what is not there is fine
	if after, err := g.home.Links(); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the host had %+v\nand has %+v: %v", before, after, err)
	}
	if left, err := bpf.Left(g.host, pinsPart); err != nil || left {
		t.Errorf("programs are left: %v", err)
	}
	if names, err := g.host.Names(marks); err != nil || len(names) > 0 {
		t.Errorf("marks are left: %v %v", names, err)
	}
}

// Whatever is damaged is seen, and right again when it is set again.
func TestDamagedAccessIsSeenAndMended(t *testing.T) {
	g := newGround(t)
	a := accessOf("office", 100)
	g.do(plan.Add, a)
	for what, damage := range map[string]func(){
		"no device": func() {
			l, err := g.home.LinkByName(a.Device())
			check(t, err)
			check(t, g.home.DeleteLink(l.Index))
		},
		"the device down": func() {
			l, err := g.home.LinkByName(a.Device())
			check(t, err)
			check(t, g.home.Do(kernel.DownLink(l.Index)))
		},
		"not all frames": func() { check(t, g.home.Do(setAll(g.interfaceIndex(), 0))) },
		"no program":     func() { check(t, g.part.loaded.pins.Remove(inPin(g.interfaceIndex()))) },
		"no row": func() {
			check(t, g.part.loaded.inlets.Delete(accessInletKey{Index: uint32(g.interfaceIndex()), Vlan: 100}))
		},
		"a new interface": func() {
			check(t, g.home.DeleteLink(g.interfaceIndex()))
			g.wire()
		},
		"a new namespace": func() {
			check(t, kernel.Unbind(g.host.Path(a.Key())))
			check(t, g.host.MakeSilent(a.Key()))
		},
	} {
		damage()
		if have := g.observed(); reflect.DeepEqual(have, []plan.Access{a}) {
			t.Errorf("%s: was not seen", what)
		}
		stall.Wait(t, 5*time.Second, 10*time.Millisecond, func() error { // a namespace takes a while to end, and its device with it
			return g.part.Do(context.Background(), plan.Step{Op: plan.Set, Item: a})
		})
		if have := g.observed(); !reflect.DeepEqual(have, []plan.Access{a}) {
			t.Errorf("%s: observed %v", what, have)
		}
	}
}

// An interface that the host uses itself, or that is down, is not taken.
func TestInterfacesThatAreNotTaken(t *testing.T) {
	g := newGround(t)
	index := g.interfaceIndex()
	try := func(vlan uint16) error {
		return g.part.Do(context.Background(), plan.Step{Op: plan.Add, Item: accessOf("office", vlan)})
	}
	local := netip.MustParseAddr("192.0.2.2")
	check(t, g.home.AddAddress(kernel.Address{Index: index, Local: local, Reach: netip.PrefixFrom(local, 24).Masked()}))
	if err := try(0); err == nil {
		t.Error("frames without a tag were taken from the host")
	}
	check(t, try(100))
	check(t, g.home.Do(kernel.DownLink(index)))
	if err := try(100); err == nil {
		t.Error("an interface that is down was taken")
	}
}

// experiment is a type for local experiments (IEEE 802).
const experiment = 0x88b5

// frame is from a station to another; tags are types and identifiers.
func frame(to, from [6]byte, tags ...uint16) []byte {
	b := append(append([]byte{}, to[:]...), from[:]...)
	for i := 0; i+1 < len(tags); i += 2 {
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, tags[i]), tags[i+1])
	}
	return append(binary.BigEndian.AppendUint16(b, experiment), make([]byte, 60)...)
}

// tap sends and reads frames of a device.
type tap int

// One of all types sees frames before programs of traffic control do, with their
// tags; one of a type sees what programs leave to the host, without.
func newTap(t *testing.T, ns *os.File, device string, kind uint16) (fd tap) {
	t.Helper()
	check(t, kernel.In(ns, func() error {
		mine := kind>>8 | kind<<8
		s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(mine))
		if err != nil {
			return err
		}
		fd = tap(s)
		c, err := kernel.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		l, err := c.LinkByName(device)
		if err != nil {
			return err
		}
		if err := unix.SetsockoptInt(s, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(s, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
			return err
		}
		return unix.Bind(s, &unix.SockaddrLinklayer{Protocol: mine, Ifindex: l.Index})
	}))
	t.Cleanup(func() { unix.Close(int(fd)) })
	return fd
}

// heard are the identifiers of the tags of frames of an experiment that came, -1
// for none, until some quiet time.
func (fd tap) heard(t *testing.T) (tags []int) {
	t.Helper()
	for {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, 100); err != nil || n == 0 {
			return tags
		}
		b, oob := make([]byte, 2000), make([]byte, 200)
		n, oobn, _, _, err := unix.Recvmsg(int(fd), b, oob, 0)
		check(t, err)
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		check(t, err)
		tag := -1
		for _, m := range messages {
			const valid = 1 << 4 // TP_STATUS_VLAN_VALID
			if m.Header.Type == unix.PACKET_AUXDATA && binary.NativeEndian.Uint32(m.Data)&valid != 0 {
				tag = int(binary.NativeEndian.Uint16(m.Data[16:]))
			}
		}
		if n >= 14 && binary.BigEndian.Uint16(b[12:]) == experiment {
			tags = append(tags, tag)
		}
	}
}

func (fd tap) send(t *testing.T, b []byte) {
	t.Helper()
	_, err := unix.Write(int(fd), b)
	check(t, err)
}

// Each VLAN is its lease's: what leaves has that tag and no other, whatever tags
// and addresses the tenant writes; what comes loses it; other frames of the
// interface are the host's, and nobody else's.
func TestVLANsAreApart(t *testing.T) {
	g := newGround(t)
	g.do(plan.Add, accessOf("office", 100))
	g.do(plan.Add, accessOf("lab", 101))
	taps := make(map[string]tap)
	for _, name := range []string{"office", "lab"} {
		ns, err := g.host.Open(accessOf(name, 0).Key())
		check(t, err)
		defer ns.Close()
		taps[name] = newTap(t, ns, "eth1", unix.ETH_P_ALL)
	}
	outside, host := newTap(t, g.outside, "out0", unix.ETH_P_ALL), newTap(t, g.host.Home(), "eth2", experiment)
	below, err := g.home.LinkByName("eth2")
	check(t, err)
	a, b, all := [6]byte{2, 1}, [6]byte{2, 2}, [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for what, c := range map[string]struct {
		frame []byte
		tags  []int
	}{
		"a plain frame":             {frame(all, a), []int{100}},
		"another VLAN's tag":        {frame(all, a, 0x8100, 101), nil},
		"its own tag":               {frame(all, a, 0x8100, 100), nil},
		"a tag without identifier":  {frame(all, a, 0x8100, 0), nil},
		"two tags":                  {frame(all, a, 0x8100, 100, 0x8100, 101), nil},
		"a service tag":             {frame(all, a, 0x88a8, 101), nil},
		"an old tag":                {frame(all, a, 0x9100, 101), nil},
		"the host's address":        {frame(all, below.Hardware), nil},
		"a group's address":         {frame(all, [6]byte{3, 1}), nil},
		"to the bridge outside":     {frame([6]byte{1, 0x80, 0xc2}, a), nil},
		"to a trunking protocol":    {frame([6]byte{1, 0, 0xc, 0xcc, 0xcc, 0xcc}, a), nil},
		"to another vendor's trees": {frame([6]byte{1, 0, 0xc, 0xcc, 0xcc, 0xcd}, a), nil},
	} {
		taps["office"].send(t, c.frame)
		if got := outside.heard(t); !reflect.DeepEqual(got, c.tags) {
			t.Errorf("%s: came out with %v, want %v", what, got, c.tags)
		}
	}
	for what, c := range map[string]struct {
		frame             []byte
		office, lab, host int
	}{
		"of a VLAN":           {frame(b, a, 0x8100, 100), 1, 0, 0},
		"with a priority":     {frame(b, a, 0x8100, 7<<13|101), 0, 1, 0},
		"of nobody's VLAN":    {frame(b, a, 0x8100, 102), 0, 0, 1},
		"without a tag":       {frame(below.Hardware, a), 0, 0, 1},
		"with two tags":       {frame(b, a, 0x8100, 100, 0x8100, 101), 0, 0, 0},
		"with a service tag":  {frame(b, a, 0x88a8, 100), 0, 0, 1},
		"for bridges, tagged": {frame([6]byte{1, 0x80, 0xc2}, a, 0x8100, 100), 0, 0, 0},
	} {
		outside.send(t, c.frame)
		office, lab := taps["office"].heard(t), taps["lab"].heard(t)
		if len(office) != c.office || len(lab) != c.lab || len(office) == 1 && office[0] != -1 {
			t.Errorf("%s: %v for office, %v for lab", what, office, lab)
		}
		if got := host.heard(t); len(got) != c.host {
			t.Errorf("%s: the host got %v", what, got)
		}
	}
}

// Without VLANs all frames without a tag are the lease's, but for those of the wire.
func TestExitWithoutVLANs(t *testing.T) {
	g := newGround(t)
	g.do(plan.Add, accessOf("office", 0))
	ns, err := g.host.Open(accessOf("office", 0).Key())
	check(t, err)
	defer ns.Close()
	inside, outside := newTap(t, ns, "eth1", unix.ETH_P_ALL), newTap(t, g.outside, "out0", unix.ETH_P_ALL)
	inside.send(t, frame([6]byte{2, 9}, [6]byte{2, 1}))
	inside.send(t, frame([6]byte{2, 9}, [6]byte{2, 1}, 0x8100, 5))
	if got := outside.heard(t); !reflect.DeepEqual(got, []int{-1}) {
		t.Errorf("came out: %v", got)
	}
	outside.send(t, frame([6]byte{2, 1}, [6]byte{2, 9}))
	outside.send(t, frame([6]byte{2, 1}, [6]byte{2, 9}, 0x8100, 5))
	outside.send(t, frame([6]byte{1, 0x80, 0xc2, 0, 0, 0xe}, [6]byte{2, 9}))
	if got := inside.heard(t); !reflect.DeepEqual(got, []int{-1}) {
		t.Errorf("came in: %v", got)
	}
}
