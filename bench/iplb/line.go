package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"sublet/bench/rig"
	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/measure/blast"
)

// hops is how many routers are between sender and receiver: as many as the
// longest list has relays.
const hops = 4

// line is namespaces 0 to hops+1, sender first, receiver last. The wire behind
// the i-th is 10.I.0.0/24; the i-th router is 10.255.0.I.
type line struct {
	run     string
	files   []string
	from    blast.Place
	to      blast.Place
	table   *iplb.Table // nil: this line has no programs
	cleanup []func()
}

func (l *line) later(f func()) { l.cleanup = append(l.cleanup, f) }

func (l *line) close() {
	for i := len(l.cleanup) - 1; i >= 0; i-- {
		l.cleanup[i]()
	}
}

// newLine makes a line, with the programs of iplb or without.
func newLine(programs bool) (l *line, err error) {
	l = &line{}
	if l.run, err = os.MkdirTemp("/run", "sl-iplb-"); err != nil {
		return nil, err
	}
	l.later(func() { os.RemoveAll(l.run) })
	if err = l.build(); err == nil && programs {
		err = l.programs()
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *line) build() error {
	for i := range hops + 2 {
		path := filepath.Join(l.run, fmt.Sprint("n", i))
		ns, err := kernel.NewNamespace(func() error { return kernel.Sysctl("ipv4/ip_forward", "1") })
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := kernel.Bind(ns, path); err != nil {
			return err
		}
		l.later(func() { _ = kernel.Unbind(path) })
		l.files = append(l.files, path)
		if err := l.in(i, "ip link set lo up", fmt.Sprintf("ip addr add 10.255.0.%d/32 dev lo", i)); err != nil {
			return err
		}
	}
	for i := range hops + 1 {
		if err := l.wire(i); err != nil {
			return err
		}
	}
	return l.routes()
}

// wire joins a namespace to the next.
func (l *line) wire(i int) error {
	err := l.in(i, "ip link add right mtu 9000 type veth peer name left mtu 9000 netns "+l.files[i+1],
		fmt.Sprintf("ip addr add 10.%d.0.1/24 dev right", i), "ip link set right up")
	if err != nil {
		return err
	}
	return l.in(i+1, fmt.Sprintf("ip addr add 10.%d.0.2/24 dev left", i), "ip link set left up")
}

// routes lead to both ends, and to the routers.
func (l *line) routes() error {
	for i := range hops + 2 {
		var lines []string
		for n := range hops + 2 {
			switch {
			case n > i:
				lines = append(lines, fmt.Sprintf("ip route add 10.255.0.%d/32 via 10.%d.0.2", n, i))
			case n < i:
				lines = append(lines, fmt.Sprintf("ip route add 10.255.0.%d/32 via 10.%d.0.1", n, i-1))
			}
		}
		if i < hops {
			lines = append(lines, fmt.Sprintf("ip route add 10.%d.0.0/24 via 10.%d.0.2 mtu 1500", hops, i))
		}
		if i > 1 {
			lines = append(lines, fmt.Sprintf("ip route add 10.0.0.0/24 via 10.%d.0.1 mtu 1500", i-1))
		}
		if err := l.in(i, lines...); err != nil {
			return err
		}
	}
	var err error
	if l.from, err = blast.Open(l.files[0], "right", netip.MustParseAddr("10.0.0.1")); err == nil {
		l.to, err = blast.Open(l.files[hops+1], "left", netip.MustParseAddr(fmt.Sprintf("10.%d.0.2", hops)))
	}
	return err
}

func (l *line) in(i int, lines ...string) error {
	for n := range lines {
		lines[n] = "nsenter --net=" + l.files[i] + " -- " + lines[n]
	}
	return rig.Commands(lines...)
}

// programs gives sender and routers theirs.
func (l *line) programs() error {
	all := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for i := range hops + 1 {
		h, err := kernel.NewHost(kernel.Config{Host: fmt.Sprint("n", i), Run: l.run, Namespace: l.files[i]})
		if err != nil {
			return err
		}
		t, err := iplb.Open(h, l.from.Addr)
		if err != nil {
			return err
		}
		l.later(func() { t.Close(); _ = iplb.Unpin(h); h.Close() })
		if i == 0 {
			l.table = t
			if err := t.Spread(h, "right"); err != nil {
				return err
			}
			continue
		}
		if err := t.SetRelaying(iplb.Relaying{Addresses: []netip.Addr{relay(i)}, Senders: all, Inside: all}); err != nil {
			return err
		}
		if err := t.TakeOff(h, "left"); err != nil {
			return err
		}
	}
	return nil
}

func relay(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 255, 0, byte(i)}) }
