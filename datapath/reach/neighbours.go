package reach

import (
	"context"
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// All namespaces of a kernel share one table of neighbours of a family, 1024 of them by
// default (gc_thresh3): when it is full, nobody's ARP is answered. A pair that is
// asked leaves an entry at both ends, so they are removed meanwhile: after
// mostAsked pairs of all leases of this host at the latest.
const (
	mostAsked = 64
	lateAsked = 500 * time.Millisecond // other hosts that build the lease ask a little longer
)

// spend notes that some pairs of a lease are about to be asked, and makes room
// for them. Rounds that have gone on for long ask seldom: the kernel makes room
// by itself, and what the nodes send each other is left alone.
func (p *Part) spend(w *watch, pairs int) {
	if time.Since(w.began) > restAfter {
		return
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	if p.asked += pairs; p.asked > mostAsked {
		for other := range p.askedOf {
			p.tidy(other)
		}
		clear(p.askedOf)
		p.asked = pairs
	}
	p.askedOf[w] = true
}

// keep notes which neighbours nodes had before they are asked. Those of a lease
// that is new here are all of other hosts' asking.
func (p *Part) keep(w *watch) {
	p.mu.Lock()
	fresh := w.fresh
	p.mu.Unlock()
	kept := make(map[int]map[neighbour]bool)
	if !fresh {
		p.eachNode(w.item, func(node int, c *kernel.Conn) {
			kept[node] = make(map[neighbour]bool)
			for _, n := range neighbours(c, resolved) {
				kept[node][n] = true
			}
		})
	}
	p.asking.Lock()
	w.kept = kept
	p.asking.Unlock()
}

// tidy removes the neighbours that asking left in a lease's nodes here. asking
// is held.
func (p *Part) tidy(w *watch) {
	of := make(map[netip.Addr]bool, len(w.item.Nodes))
	for _, n := range w.item.Nodes {
		of[n.Address] = true
	}
	p.eachNode(w.item, func(node int, c *kernel.Conn) {
		var list []*kernel.Message
		for _, n := range neighbours(c, resolved) {
			if of[n.address] && !n.learned && !w.kept[node][n] {
				list = append(list, n.remove())
			}
		}
		_ = c.Batch(list) // gone meanwhile is fine
	})
}

// tidyNow is tidy, when all have answered.
func (p *Part) tidyNow(w *watch) {
	p.asking.Lock()
	defer p.asking.Unlock()
	p.tidy(w)
}

// tidyLate removes once more what other hosts' asking left after a lease was
// built, unless it is asked again.
func (p *Part) tidyLate(ctx context.Context, w *watch) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(lateAsked):
	}
	p.mu.Lock()
	probing := w.probing
	p.mu.Unlock()
	if !probing {
		p.tidyNow(w)
	}
}

// eachNode calls f in each of a lease's nodes here that can be asked.
func (p *Part) eachNode(item plan.Reach, f func(node int, c *kernel.Conn)) {
	for _, from := range item.Pairs {
		c, err := p.host.Dial(plan.Namespace(item.Lease, item.Nodes[from.From].Name))
		if err != nil {
			continue
		}
		c.Foreign = true
		f(from.From, c)
		c.Close()
	}
}

// neighbour is an entry of a namespace's tables.
type neighbour struct {
	index   uint32 // of the interface
	address netip.Addr
	learned bool // entered from outside: asking did not bring it, and no table's limit counts it
}

// States of neighbours that come by asking: what is permanent is somebody's.
const (
	resolved   = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE
	unresolved = unix.NUD_INCOMPLETE
)

// neighbours lists those in one of some states.
func neighbours(c *kernel.Conn, states uint16) []neighbour {
	return append(neighboursOf(c, unix.AF_INET, states), neighboursOf(c, unix.AF_INET6, states)...)
}

func neighboursOf(c *kernel.Conn, family byte, states uint16) (list []neighbour) {
	header := make([]byte, 12) // struct ndmsg
	header[0] = family
	answers, _ := c.Dump(kernel.NewMessage(unix.RTM_GETNEIGH, 0, header))
	for _, b := range answers {
		if len(b) < 12 || binary.NativeEndian.Uint16(b[8:])&states == 0 {
			continue
		}
		n := neighbour{index: binary.NativeEndian.Uint32(b[4:]), learned: b[10]&unix.NTF_EXT_LEARNED != 0}
		kernel.EachAttr(b[12:], func(kind uint16, value []byte) {
			if kind == unix.NDA_DST {
				n.address, _ = netip.AddrFromSlice(value)
			}
		})
		list = append(list, n)
	}
	return list
}

func (n neighbour) remove() *kernel.Message {
	header := make([]byte, 12)
	header[0] = unix.AF_INET
	if n.address.Is6() {
		header[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(header[4:], n.index)
	return kernel.NewMessage(unix.RTM_DELNEIGH, 0, header).Attr(unix.NDA_DST, n.address.AsSlice())
}
