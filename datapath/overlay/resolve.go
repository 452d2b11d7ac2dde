package overlay

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// neighbour is a next hop that the kernel keeps resolved for us.
type neighbour struct {
	address netip.Addr
	index   int
}

// resolver finds next hops, from one reading of the host.
type resolver struct {
	conn      *kernel.Conn
	addresses map[netip.Addr]bool
	links     map[string]kernel.Link
	kept      map[neighbour]bool // next hops in use
}

func newResolver(c *kernel.Conn) (*resolver, error) {
	r := &resolver{conn: c, addresses: make(map[netip.Addr]bool), links: make(map[string]kernel.Link), kept: make(map[neighbour]bool)}
	all, err := c.Addresses(0)
	if err != nil {
		return nil, fmt.Errorf("read the host's addresses: %w", err)
	}
	for _, a := range all {
		r.addresses[a.Local] = true
	}
	return r, nil
}

// link reads a device once.
func (r *resolver) link(name string) (kernel.Link, error) {
	if l, ok := r.links[name]; ok {
		return l, nil
	}
	l, err := r.conn.LinkByName(name)
	if err != nil && !kernel.NotFound(err) {
		return l, fmt.Errorf("read interface %s: %w", name, err)
	}
	r.links[name] = l
	return l, nil
}

// nextHop finds how packets leave for the other end of a tunnel, and has the
// kernel keep the next hop resolved. What stands in the way is no error.
func (r *resolver) nextHop(p path) (nextHop, error) {
	l, err := r.link(p.device)
	switch {
	case err != nil:
		return nextHop{}, err
	case l.Index == 0:
		return nextHop{reason: "interface " + p.device + " is not there"}, nil
	case !l.Runs:
		return nextHop{reason: "interface " + p.device + " is down"}, nil
	case !r.addresses[p.local]:
		return nextHop{reason: fmt.Sprintf("the host has no address %s", p.local)}, nil
	}
	route, err := r.conn.RouteTo(p.remote, p.local, l.Index)
	if err != nil || route.Down || p.stack && !r.conn.LeadsBy(p.remote, p.local, l.Index) {
		return nextHop{reason: fmt.Sprintf("no route to %s by %s", p.remote, p.device)}, nil
	}
	mac, ok := r.neighbour(route.Via, l.Index)
	if !ok {
		return nextHop{reason: fmt.Sprintf("next hop %s on %s does not answer", route.Via, p.device)}, nil
	}
	w := nextHop{device: l.Index, from: l.Hardware, to: mac, mtu: l.MTU}
	if route.MTU > 0 {
		w.mtu = min(w.mtu, route.MTU)
	}
	return w, nil
}

// neighbour reads a next hop's address. One that the operator set for good is
// left alone: asking for it would undo that.
func (r *resolver) neighbour(a netip.Addr, index int) ([6]byte, bool) {
	n, err := r.conn.NeighbourOf(a, index)
	if err == nil && n.State&unix.NUD_PERMANENT != 0 {
		return n.Address, true
	}
	r.kept[neighbour{a, index}] = true
	if err != nil || !n.Managed || !n.Learned {
		_ = r.conn.Do(kernel.KeepNeighbour(a, index)) // without it, it is not usable
	}
	return n.Address, err == nil && n.Usable()
}
