package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"sublet/datapath/kernel"
	"sublet/datapath/nsh"
)

// far is two hosts with a wire between them, and what each does for chains.
type far struct {
	hosts  [2]*kernel.Host
	parts  [2]*nsh.Part
	planes [2]nsh.Plane
}

func (f *far) clean() {
	for i, p := range f.parts {
		if p == nil {
			continue
		}
		if err := p.Delete(fabric); err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
		p.Close()
		f.hosts[i].Close()
	}
}

// twoHosts adds chains of n firewalls of which half are on the other host, and as many
// namespaces that route and filter with VXLAN half way.
func (b *builder) twoHosts(numbers ...int) error {
	b.far = new(far)
	for i := range b.far.hosts {
		if err := b.farHost(i); err != nil {
			return err
		}
	}
	err := b.in("home0", "ip link add up0 type veth peer name up0 netns "+b.host.Path("home1"), "ip link set up0 up mtu 9000", "ip addr add 10.9.0.1/24 dev up0")
	if err == nil {
		err = b.in("home1", "ip link set up0 up mtu 9000", "ip addr add 10.9.0.2/24 dev up0")
	}
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if err := b.farChain(n); err != nil {
			return err
		}
	}
	for i := range b.far.parts { // the one that receives last
		if err := b.far.parts[i].Set(b.far.planes[i]); err != nil {
			return err
		}
	}
	for _, n := range numbers {
		if n > 0 {
			if err := b.routers(n, true, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) farHost(i int) error {
	home := fmt.Sprint("home", i)
	if err := b.space(home); err != nil {
		return err
	}
	run := filepath.Join(b.host.Run, "far")
	h, err := kernel.NewHost(kernel.Config{Host: fmt.Sprint("far", i), Run: run, Namespace: b.host.Path(home)})
	if err != nil {
		return err
	}
	b.far.hosts[i], b.far.parts[i] = h, nsh.New(h)
	local := netip.AddrFrom4([4]byte{10, 9, 0, byte(1 + i)})
	other := netip.AddrFrom4([4]byte{10, 9, 0, byte(2 - i)})
	b.far.planes[i] = nsh.Plane{Fabric: fabric, Interface: "up0", Local: local, Remotes: []nsh.Remote{{Name: "other", Address: other}}}
	b.undo = append(b.undo, func() {
		if err := kernel.Unbind(h.Path(fabric)); err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
	})
	return errors.Join(h.MakeSilent(fabric), os.Symlink(h.Path(fabric), b.host.Path(fmt.Sprint("fabric", i))))
}

// farChain is a chain from the first host to the second.
func (b *builder) farChain(n int) error {
	i := len(b.subjects)
	a, z := fmt.Sprint("a", i), fmt.Sprint("z", i)
	for _, err := range []error{
		b.node(a, "fabric0", "p"+a, "02:00:00:00:00:0a"), b.node(z, "fabric1", "p"+z, "02:00:00:00:00:0b"),
		b.in(a, "ip addr add 10.0.0.1/24 dev eth0", "ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:0b dev eth0"),
		b.in(z, "ip addr add 10.0.0.2/24 dev eth0", "ip neigh replace 10.0.0.1 lladdr 02:00:00:00:00:0a dev eth0"),
	} {
		if err != nil {
			return err
		}
	}
	near, there := &b.far.planes[0], &b.far.planes[1]
	path, index := uint32(1000+i), uint8(255)
	near.Classifiers = append(near.Classifiers, nsh.Classifier{Port: "p" + a, Rules: []nsh.Rule{{Path: path, Index: index}}})
	add := func(p *nsh.Plane) {
		name := fmt.Sprint("far", i, "-", index)
		p.Functions = append(p.Functions, nsh.Function{Name: name, Kind: nsh.Firewall, Rules: firewall()})
		p.Hops = append(p.Hops, nsh.Hop{Path: path, Index: index, Function: name})
		index--
	}
	for range n / 2 {
		add(near)
	}
	near.Hops = append(near.Hops, nsh.Hop{Path: path, Index: index, Remote: "other"})
	for range n - n/2 {
		add(there)
	}
	there.Hops = append(there.Hops, nsh.Hop{Path: path, Index: index, Egress: &nsh.Egress{Port: "p" + z}})
	title := fmt.Sprintf("two hosts, %d firewalls", n)
	if n == 0 {
		title = "two hosts, classifier and egress"
	}
	return b.add(title, a, "10.0.0.1", z, "10.0.0.2")
}
