package lease

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"sublet/vnet"
)

// Consolidated is what becomes of leases that are placed together, or apart.
type Consolidated struct {
	Moved   []vnet.Disturbance
	Emptied []vnet.HostID // which had something and have nothing
	Full    []FullHost    // with vnet.FewestHosts
}

// FullHost is a host that cannot be emptied, and why.
type FullHost struct {
	Host    vnet.HostID
	Reasons []string
}

// mostUnloaded bounds the hosts, or leases, that are tried on a copy of the book, which
// waits meanwhile.
const mostUnloaded = 32

// Consolidate moves what can go, as when hosts are drained, so that the fewest hosts
// have anything or that the most loaded have less. Each lease is moved once at most:
// again goes on. With try, only what would come of it is said.
func (b *Book) Consolidate(now time.Time, aim vnet.Aim, try bool) (c Consolidated, err error) {
	if err := b.Tick(now); err != nil {
		return c, err
	}
	find := (*Book).fewestHosts
	if aim == vnet.LeastLoaded {
		find = (*Book).leastLoaded
	}
	steps, c, err := find(b, now)
	if err != nil {
		return c, fmt.Errorf("consolidate: %w", err)
	}
	if try {
		return c, nil
	}
	for _, u := range steps {
		if _, _, err := b.unload(now, u); err != nil {
			return c, fmt.Errorf("consolidate: %w", err)
		}
	}
	return c, b.Tick(now)
}

// unload takes leases, or one, off a host while others take nothing new.
type unload struct {
	host vnet.HostID
	shut map[vnet.HostID]bool
	only vnet.LeaseID // zero: all of them
}

// unload does it, and says what moves and what stays.
func (b *Book) unload(now time.Time, u unload) (moved []vnet.Disturbance, stays []string, err error) {
	was := b.sub.Hosts
	b.sub.Hosts = slices.Clone(was)
	for i, h := range b.sub.Hosts {
		b.sub.Hosts[i].Drained = h.Drained || h.Name == u.host || u.shut[h.Name]
	}
	b.setWorking()
	defer func() {
		b.sub.Hosts = was
		b.setWorking()
	}()
	for _, e := range b.having(u.host) {
		if u.only != (vnet.LeaseID{}) && e.ID() != u.only {
			continue
		}
		before := *e
		why, err := b.drain(now, e, u.host)
		if err != nil {
			return nil, nil, fmt.Errorf("unload %s of %s: %w", u.host, e.ID(), err)
		}
		if len(why) > 0 {
			return moved, []string{e.ID().String() + ": " + brief(why)}, nil
		}
		moved = append(moved, disturbances([]move{{&before, e.Mapping, e.Window}})...)
	}
	return moved, nil, nil
}

// having are the leases that have something on a host, or pass it.
func (b *Book) having(host vnet.HostID) (list []*entry) {
	for _, e := range b.live {
		if slices.Contains(e.hosts, host) {
			list = append(list, e)
		}
	}
	return list
}

// binds says, without a search, why a host cannot be emptied.
func (b *Book) binds(host vnet.HostID) (why []string) {
	for _, e := range b.having(host) {
		stays := staysFor(e)
		if stays == nil && e.onHosts() {
			stays = bound(leaving(e.Lease, host), e.Mapping, host)
		}
		for _, text := range stays {
			why = append(why, e.ID().String()+": "+text)
		}
	}
	return why
}

// fewestHosts finds hosts that can be emptied onto others that are used, the least
// loaded first.
func (b *Book) fewestHosts(now time.Time) (steps []unload, c Consolidated, err error) {
	unused := make(map[vnet.HostID]bool)
	for _, h := range b.sub.Hosts {
		unused[h.Name] = len(b.having(h.Name)) == 0
	}
	tries, is := mostUnloaded, b
	for _, host := range slices.Backward(b.byLoad()) {
		if unused[host] {
			continue
		}
		if why := is.binds(host); why != nil {
			c.Full = append(c.Full, FullHost{host, why})
			continue
		}
		if tries--; tries < 0 {
			c.Full = append(c.Full, FullHost{host, []string{"others are tried first: consolidate again"}})
			continue
		}
		u := unload{host: host, shut: maps.Clone(unused)}
		next, moved, stays, err := b.tried(now, u)
		switch {
		case err != nil:
			return nil, c, err
		case stays != nil:
			c.Full = append(c.Full, FullHost{host, stays})
			continue
		}
		b, unused[host] = next, true
		steps, c.Moved, c.Emptied = append(steps, u), append(c.Moved, moved...), append(c.Emptied, host)
	}
	return steps, c, nil
}

// tried is a copy of the book in which a host was unloaded.
func (b *Book) tried(now time.Time, u unload) (next *Book, moved []vnet.Disturbance, stays []string, err error) {
	if next, err = b.copy(now); err == nil {
		moved, stays, err = next.unload(now, u)
	}
	return next, moved, stays, err
}

// leastLoaded finds leases that can leave the most loaded host so that the loads of
// hosts, the highest first, become smaller.
func (b *Book) leastLoaded(now time.Time) (steps []unload, c Consolidated, err error) {
	tries := mostUnloaded
	for found := true; found; {
		found = false
		order := b.byLoad()
		if len(order) == 0 {
			break
		}
		for _, e := range b.having(order[0]) {
			next, u, moved, err := b.lighten(now, e, order[0], &tries)
			if err != nil {
				return nil, c, err
			}
			if next == nil {
				continue
			}
			if len(b.having(order[0])) == 1 {
				c.Emptied = append(c.Emptied, order[0])
			}
			b, found = next, true
			steps, c.Moved = append(steps, u), append(c.Moved, moved...)
			break
		}
	}
	return steps, c, nil
}

// lighten is a copy of the book in which a lease has left the most loaded host, and no
// other has become as loaded; nil: there is none. Where it would make one so is shut for
// the next try.
func (b *Book) lighten(now time.Time, e *entry, host vnet.HostID, tries *int) (next *Book, u unload, moved []vnet.Disturbance, err error) {
	before := b.loads()
	u = unload{host: host, shut: make(map[vnet.HostID]bool), only: e.ID()}
	for loads := before; staysFor(e) == nil && *tries > 0; *tries-- {
		more := false
		for h, l := range loads {
			if l >= before[host] && !u.shut[h] {
				u.shut[h], more = true, true
			}
		}
		if !more {
			break
		}
		next, moved, stays, err := b.tried(now, u)
		if err != nil || stays != nil {
			return nil, u, nil, err
		}
		if loads = next.loads(); slices.Compare(peaks(loads), peaks(before)) < 0 {
			return next, u, moved, nil
		}
	}
	return nil, u, nil, nil
}

// elementLoad is what an element counts for that states no processors.
const elementLoad = 0.001

// loads are what leases have of the processors of each host, as a part of them.
func (b *Book) loads() map[vnet.HostID]float64 {
	loads, index := make(map[vnet.HostID]float64), b.index(b.sub)
	for _, h := range b.sub.Hosts {
		loads[h.Name] = 0
	}
	for _, e := range b.live {
		held := e.Held()
		for _, n := range held.Union().All() {
			at := e.Mapping.Nodes[n.Name]
			if h, ok := index.HostOf(string(at)); ok && h.CPU > 0 {
				loads[at] += float64(n.CPU) / float64(h.CPU)
			}
		}
		for _, at := range e.Mapping.Nodes {
			loads[at] += elementLoad
		}
	}
	const exact = 1e6 // sums in another order are the same
	for h, l := range loads {
		loads[h] = math.Round(l*exact) / exact
	}
	return loads
}

// byLoad are the hosts, the most loaded first.
func (b *Book) byLoad() []vnet.HostID {
	loads := b.loads()
	return slices.SortedFunc(maps.Keys(loads), func(x, y vnet.HostID) int {
		return cmp.Or(cmp.Compare(loads[y], loads[x]), cmp.Compare(x, y))
	})
}

// peaks are loads, the highest first.
func peaks(loads map[vnet.HostID]float64) []float64 {
	return slices.SortedFunc(maps.Values(loads), func(x, y float64) int { return cmp.Compare(y, x) })
}
