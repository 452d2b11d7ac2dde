package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sublet/bench/harness"
	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/measure/pktgen"
)

// hops is how many routers are between sender and receiver: as many as the
// longest list has relays.
const hops = 4

// line is namespaces 0 to hops+1, sender first, receiver last. The wire behind
// the i-th is 10.I.0.0/24; the i-th router is 10.255.0.I.
type line struct {
	run     string
	files   []string
	from    pktgen.Place
	to      pktgen.Place
	first   pktgen.Place    // the first router
	tunnel  [2]pktgen.Place // of VXLAN, from sender to receiver
	tables  []*iplb.Table   // of sender and routers
	links   []link.Link
	cleanup []func()
}

func (l *line) later(f func()) { l.cleanup = append(l.cleanup, f) }

func (l *line) close() {
	for i := len(l.cleanup) - 1; i >= 0; i-- {
		l.cleanup[i]()
	}
}

// newLine makes a line; its programs are not attached.
func newLine() (l *line, err error) {
	l = &line{}
	if l.run, err = os.MkdirTemp("/run", "sl-iplb-"); err != nil {
		return nil, err
	}
	l.later(func() { os.RemoveAll(l.run) })
	if err = l.build(); err == nil {
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
	return errors.Join(l.routes(), l.tunnels())
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
	if l.from, err = pktgen.Open(l.files[0], "right", netip.MustParseAddr("10.0.0.1")); err == nil {
		l.first, err = pktgen.Open(l.files[1], "left", netip.MustParseAddr("10.0.0.2"))
	}
	if err == nil {
		l.to, err = pktgen.Open(l.files[hops+1], "left", netip.MustParseAddr(fmt.Sprintf("10.%d.0.2", hops)))
	}
	return err
}

// tunnels makes the kernel's own VXLAN between the ends.
func (l *line) tunnels() error {
	ends := [2]string{"10.0.0.1", fmt.Sprintf("10.%d.0.2", hops)}
	for side, i := range []int{0, hops + 1} {
		err := l.in(i, fmt.Sprintf("ip link add inner type vxlan id 7 dstport 4789 local %s remote %s", ends[side], ends[1-side]),
			fmt.Sprintf("ip addr add 172.16.0.%d/24 dev inner", side+1), "ip link set inner mtu 1400 up")
		if err != nil {
			return err
		}
		if l.tunnel[side], err = pktgen.Open(l.files[i], "inner", netip.AddrFrom4([4]byte{172, 16, 0, byte(side + 1)})); err != nil {
			return err
		}
	}
	return nil
}

func (l *line) in(i int, lines ...string) error {
	for n := range lines {
		lines[n] = "nsenter --net=" + l.files[i] + " -- " + lines[n]
	}
	return harness.Commands(lines...)
}

// programs loads those of the sender and the routers; on attaches them.
func (l *line) programs() error {
	for i := range hops + 1 {
		h, err := kernel.NewHost(kernel.Config{Host: fmt.Sprint("n", i), Run: l.run, Namespace: l.files[i]})
		if err != nil {
			return err
		}
		t, err := iplb.Open(h, l.from.Addr)
		if err != nil {
			return err
		}
		l.later(func() { l.off(); t.Close(); _ = iplb.Unpin(h); h.Close() })
		if err := t.SetWiresCarryGSO(true); err != nil {
			return err
		}
		l.tables = append(l.tables, t)
	}
	return nil
}

// relaying lets the routers relay, with the kernel's forwarding or past it.
func (l *line) relaying(shortcut iplb.Shortcut) error {
	all := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for i, t := range l.tables {
		if err := t.SetRelaying(iplb.Relaying{Addresses: []netip.Addr{relay(i)}, Senders: all, Inside: all, Shortcut: shortcut}); err != nil {
			return err
		}
	}
	return nil
}

// on attaches the programs, off takes them away.
func (l *line) on() error {
	for i, t := range l.tables {
		attach := []struct {
			device string
			at     ebpf.AttachType
			p      *ebpf.Program
		}{{"left", ebpf.AttachTCXIngress, t.Relay()}}
		if i == 0 {
			attach[0].device, attach[0].p = "right", t.Echo()
			attach = append(attach, attach[0])
			attach[1].at, attach[1].p = ebpf.AttachTCXEgress, t.Transmit()
		}
		for _, a := range attach {
			if err := l.attach(i, a.device, a.at, a.p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *line) attach(i int, device string, at ebpf.AttachType, p *ebpf.Program) error {
	ns, err := kernel.OpenNamespace(l.files[i])
	if err != nil {
		return err
	}
	defer ns.Close()
	return kernel.In(ns, func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		hook, err := link.AttachTCX(link.TCXOptions{Interface: d.Index, Program: p, Attach: at})
		l.links = append(l.links, hook)
		return err
	})
}

func (l *line) off() {
	for _, hook := range l.links {
		hook.Close()
	}
	l.links = nil
}

func relay(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 255, 0, byte(i)}) }
