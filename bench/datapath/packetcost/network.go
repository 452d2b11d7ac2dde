package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"sublet/bench/harness"
	"sublet/measure/pktgen"
)

// network is a path under test that is up.
type network struct {
	name     string
	from, to pktgen.Place
	wire     pktgen.Place // the underlay device it leaves its host by, if it does
	close    func() error
}

// builder makes a network out of the kernel's own parts with ip and tc, as
// somebody without Sublet would.
type builder struct {
	prefix string
	lines  []string
}

// number keeps the prefixes of networks of one run apart.
var number int

func newBuilder() *builder {
	number++
	return &builder{prefix: fmt.Sprintf("dp%d-%d-", os.Getpid(), number)}
}

func (b *builder) add(format string, args ...any) {
	b.lines = append(b.lines, fmt.Sprintf(format, args...))
}

// ns is the name of a namespace; it is made by space.
func (b *builder) ns(name string) string { return b.prefix + name }

// space makes namespaces without IPv6, whose chatter would be measured.
func (b *builder) space(names ...string) {
	for _, name := range names {
		b.add("ip netns add %s", b.ns(name))
		b.add("ip netns exec %s sysctl -qw net.ipv6.conf.all.disable_ipv6=1", b.ns(name))
		b.add("ip netns exec %s sysctl -qw net.ipv6.conf.default.disable_ipv6=1", b.ns(name))
	}
}

// router makes a namespace that forwards.
func (b *builder) router(names ...string) {
	b.space(names...)
	for _, name := range names {
		b.add("ip netns exec %s sysctl -qw net.ipv4.ip_forward=1", b.ns(name))
	}
}

// pair joins two namespaces, each NAME/DEVICE or NAME/DEVICE=ADDRESS.
func (b *builder) pair(a, z string) {
	var ns, dev, addr [2]string
	for i, end := range []string{a, z} {
		end, addr[i], _ = strings.Cut(end, "=")
		ns[i], dev[i], _ = strings.Cut(end, "/")
	}
	b.add("ip -n %s link add %s type veth peer name %s netns %s", b.ns(ns[0]), dev[0], dev[1], b.ns(ns[1]))
	for i := range ns {
		if addr[i] != "" {
			b.add("ip -n %s addr add %s dev %s", b.ns(ns[i]), addr[i], dev[i])
		}
		b.add("ip -n %s link set %s up", b.ns(ns[i]), dev[i])
	}
}

func (b *builder) route(name, to, via string) {
	b.add("ip -n %s route add %s via %s", b.ns(name), to, via)
}

// build runs the commands and opens both ends, NAME/DEVICE=ADDRESS.
func (b *builder) build(name, from, to string) (network, error) {
	n := network{name: name, close: b.remove}
	if err := harness.Commands(b.lines...); err != nil {
		return n, err
	}
	var err, failed error
	n.from, err = b.place(from)
	n.to, failed = b.place(to)
	return n, errors.Join(err, failed)
}

func (b *builder) place(end string) (pktgen.Place, error) {
	end, addr, _ := strings.Cut(end, "=")
	name, device, _ := strings.Cut(end, "/")
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return pktgen.Place{}, err
	}
	return pktgen.Open(filepath.Join("/run/netns", b.ns(name)), device, a)
}

// remove deletes the namespaces that were made.
func (b *builder) remove() error {
	entries, err := os.ReadDir("/run/netns")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), b.prefix) {
			err = errors.Join(err, harness.Commands("ip netns del "+e.Name()))
		}
	}
	return err
}
