package overlay

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sublet/datapath/bpf"
	"sublet/plan"
)

// entryNow reads host 0's entry as the programs see it.
func (l *lab) entryNow() overlayEntry {
	l.t.Helper()
	p := l.hosts[0].part
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok, err := p.table.entry(number)
	check1(l.t, err)
	if !ok {
		l.t.Fatal("the entry is gone")
	}
	return e
}

// until waits for the entry to be as it shall be, and says how long it took.
func (l *lab) until(what string, right func(overlayEntry) bool) {
	l.t.Helper()
	begun := time.Now()
	for !right(l.entryNow()) {
		if time.Since(begun) > 5*time.Second {
			l.t.Fatalf("%s: the entry is %+v\n%s", what, l.entryNow(), l.tell())
		}
		time.Sleep(time.Millisecond)
	}
	l.t.Logf("%s after %s", what, time.Since(begun).Round(time.Millisecond))
}

func destination(e overlayEntry) string { return net.HardwareAddr(e.Header[:6]).String() }

func source(e overlayEntry) string { return net.HardwareAddr(e.Header[6:12]).String() }

// An entry follows what the host knows of the route to the other end.
func TestEntryFollowsTheHost(t *testing.T) {
	l := newLab(t)
	l.tunnel("", under4)
	h := l.hosts[0]
	resolved := func(e overlayEntry) bool { return e.Device != 0 }
	unresolved := func(e overlayEntry) bool { return e.Device == 0 }
	l.until("resolved", resolved)

	l.ip(h.Namespace, "neigh", "replace", under4(1).String(), "lladdr", "02:00:00:00:00:99", "dev", wire, "nud", "reachable")
	l.until("neighbour's address changed", func(e overlayEntry) bool { return destination(e) == "02:00:00:00:00:99" })

	l.ip(h.Namespace, "neigh", "replace", "10.99.0.77", "lladdr", "02:00:00:00:00:77", "dev", wire, "nud", "permanent")
	l.ip(h.Namespace, "route", "add", under4(1).String()+"/32", "via", "10.99.0.77", "mtu", "4000")
	l.until("route changed", func(e overlayEntry) bool { return destination(e) == "02:00:00:00:00:77" })
	if mtu := l.entryNow().Mtu; mtu != 1450 {
		t.Errorf("inner packets of %d bytes may pass, not the planned 1450", mtu)
	}
	l.ip(h.Namespace, "route", "replace", under4(1).String()+"/32", "via", "10.99.0.77", "mtu", "1400")
	l.until("path carries less", func(e overlayEntry) bool { return e.Mtu == 1350 })
	l.ip(h.Namespace, "route", "replace", "unreachable", under4(1).String()+"/32")
	l.until("no route", unresolved)
	l.ip(h.Namespace, "route", "del", "unreachable", under4(1).String()+"/32")
	l.until("route again", resolved)

	l.ip(h.Namespace, "link", "set", wire, "address", "02:00:00:00:00:55")
	l.until("own address changed", func(e overlayEntry) bool { return source(e) == "02:00:00:00:00:55" })
	l.ip(l.hosts[1].Namespace, "link", "set", wire, "down")
	l.until("no carrier", unresolved)
	l.ip(l.hosts[1].Namespace, "link", "set", wire, "up")
	l.until("carrier again", resolved)
	l.ip(h.Namespace, "addr", "del", under4(0).String()+"/24", "dev", wire)
	l.until("no address", unresolved)
	l.ip(h.Namespace, "addr", "add", under4(0).String()+"/24", "dev", wire)
	l.until("address again", resolved)
	l.ping(inner(1))
}

// The path carries less than was planned: senders are told what passes, and
// streams that have begun go on.
func TestSendersAreToldWhatPasses(t *testing.T) {
	l := newLab(t)
	l.tunnel("", under4)
	l.until("resolved", func(e overlayEntry) bool { return e.Mtu == 1450 })
	l.transfer(1 << 20)
	for _, h := range l.hosts {
		l.ip(h.Namespace, "link", "set", wire, "mtu", "1400")
	}
	l.until("path carries less", func(e overlayEntry) bool { return e.Mtu == 1350 })
	node := l.hosts[0].node
	for to, size := range map[string]int{inner(1): 1450 - 28, inner6(1): 1450 - 48} {
		out, _ := l.try(node, "ping", "-M", "do", "-c2", "-i0.2", "-W1", "-s", fmt.Sprint(size), to)
		if !strings.Contains(out, "mtu = 1350") && !strings.Contains(out, "mtu=1350") && !strings.Contains(out, "mtu: 1350") {
			t.Errorf("who sends too much to %s hears nothing of 1350:\n%s", to, out)
		}
		route := l.in(node, "ip", "route", "get", to)
		if !strings.Contains(route, "mtu 1350") {
			t.Errorf("%s: the sender's stack did not take it over: %s", to, route)
		}
	}
	l.transfer(1 << 20)
}

// A next hop is resolved and kept so without traffic, and packets without a
// way are counted.
func TestNextHopIsKeptByTheKernel(t *testing.T) {
	l := newLab(t)
	l.tunnel("", under4)
	l.until("resolved", func(e overlayEntry) bool { return e.Device != 0 })
	p := l.hosts[0].part
	p.mu.Lock()
	n, err := p.home.NeighbourOf(under4(1), int(l.entryDevice()))
	p.mu.Unlock()
	check1(t, err)
	if !n.Managed || !n.Learned {
		t.Errorf("the kernel does not keep the next hop resolved, or counts it in the table of all: %+v", n)
	}
	l.ip(l.hosts[1].Namespace, "link", "set", wire, "down")
	l.until("no carrier", func(e overlayEntry) bool { return e.Device == 0 })
	before := l.drops(overlayDropDROP_UNRESOLVED)
	_, _ = l.try(l.hosts[0].node, "ping", "-c3", "-i0.01", "-W0.1", inner(1))
	if l.drops(overlayDropDROP_UNRESOLVED) == before {
		t.Error("packets without a way are not counted")
	}
}

func (l *lab) entryDevice() uint32 {
	e, _, err := l.hosts[0].part.table.entry(number)
	check1(l.t, err)
	return e.Device
}

func (l *lab) drops(cause overlayDrop) (count uint64) {
	l.t.Helper()
	p := l.hosts[0].part
	slots := []uint32{0, l.entryNow().Slot} // 0: of no entry
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, slot := range slots {
		c, err := p.table.counts(slot)
		check1(l.t, err)
		count += c.Drops[cause]
	}
	return count
}

// What an agent left is taken over untouched, and damage is repaired.
func TestObserveAndRepair(t *testing.T) {
	l := newLab(t)
	h := l.hosts[0]
	h.part.WiresCarryGSO = true
	l.tunnel("", under4)
	l.ping(inner(1))
	want := item(0, "", under4)
	observe := func(p *Part) plan.Host {
		t.Helper()
		var have plan.Host
		check1(t, p.Observe(context.Background(), &have))
		return have
	}
	if have := observe(h.part); len(plan.Of[plan.Overlay](have)) != 1 || plan.Of[plan.Overlay](have)[0] != want {
		t.Fatalf("observed %+v, not %+v", plan.Of[plan.Overlay](have), want)
	}
	before := l.entryNow()
	h.part.Close() // the agent ends; another comes
	l.ping(inner(1))
	h.part = New(h.Host)
	h.part.WiresCarryGSO = true
	if have := observe(h.part); len(plan.Of[plan.Overlay](have)) != 1 || plan.Of[plan.Overlay](have)[0] != want {
		t.Fatalf("a new agent observes %+v, not %+v", plan.Of[plan.Overlay](have), want)
	}
	if l.entryNow() != before {
		t.Error("a new agent changed the entry")
	}
	var wanted plan.Host
	wanted.Add(want)
	trunk := plan.Trunk(demo)
	for what, damage := range map[string]func(){
		"trunk down": func() { l.ip(h.Namespace, "link", "set", trunk, "down") },
		"entry gone": func() { check1(t, h.part.table.objects.Entries.Delete(uint32(number))) },
		"end gone":   func() { check1(t, h.part.table.objects.Ends.Delete(uint64(1)<<32|number)) },
		"wrong headers": func() {
			e := l.entryNow()
			e.Header[30] ^= 1
			check1(t, h.part.table.objects.Entries.Put(uint32(number), e))
		},
		"program removed":      func() { check1(t, h.part.table.pins.Remove("tx_"+trunk)) },
		"receiver gone":        func() { check1(t, h.part.table.pins.Remove("rx_"+wire)) },
		"decap device gone":    func() { l.ip(h.Namespace, "link", "del", decapName) },
		"decap device down":    func() { l.ip(h.Namespace, "link", "set", decapName, "down") },
		"decap device free":    func() { check1(t, h.part.table.pins.Remove("opened")) },
		"decap device unknown": func() { check1(t, h.part.table.objects.DecapPort.Put(uint32(0), uint32(0))) },
	} {
		damage()
		have := observe(h.part)
		if len(plan.Diff(wanted, have)) == 0 {
			t.Errorf("%s is not seen", what)
		}
		check1(t, h.part.Do(context.Background(), plan.Step{Op: plan.Set, Item: want}))
		if have := observe(h.part); len(plan.Of[plan.Overlay](have)) != 1 || plan.Of[plan.Overlay](have)[0] != want {
			t.Errorf("%s is not repaired: %+v", what, plan.Of[plan.Overlay](have))
		}
		l.ping(inner(1))
	}
}

// Nothing that a tenant or a stranger sends gets in under another's number.
func TestTunnelPacketsOfOthersAreRefused(t *testing.T) {
	l := newLab(t)
	l.hosts[0].part.WiresCarryGSO = true
	l.tunnel("", under4)
	l.ping(inner(1))
	frame := []byte{8, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 8, 6}
	binary.BigEndian.PutUint32(frame[4:], number<<8)
	frame = append(frame, make([]byte, 46)...)
	send := func(from, port, to string) {
		t.Helper()
		c := l.socket(l.hosts[1].Namespace, from+":"+port, under4(0).String()+":"+to)
		defer c.Close()
		_, err := c.Write(frame)
		check1(t, err)
	}
	l.ip(l.hosts[1].Namespace, "addr", "add", "10.99.0.66/24", "dev", wire)
	for _, c := range []struct {
		from, port, to string
		cause          overlayDrop
	}{{under4(1).String(), "40000", "4789", overlayDropDROP_PORT}, {"10.99.0.66", "600", "4789", overlayDropDROP_SENDER},
		{under4(1).String(), "768", fmt.Sprint(bpf.PortDecap), overlayDropDROP_UNKNOWN}} {
		before := l.drops(c.cause)
		send(c.from, c.port, c.to)
		for end := time.Now().Add(5 * time.Second); l.drops(c.cause) == before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("a packet from %s:%s to %s is not refused\n%s", c.from, c.port, c.to, l.tell())
			}
		}
	}
}
