package lease

import (
	"slices"
	"time"

	"sublet/embed"
	"sublet/embed/rate"
	"sublet/vnet"
)

// Quote says how a request would be admitted now; the errors are Admit's.
// Nothing is booked, so a name in use is no conflict: the request is looked at
// as another network of that name.
func (b *Book) Quote(now time.Time, req vnet.Request) (vnet.Quote, error) {
	req.Fill()
	return b.view(now).Quote(req, b.solver, NewEffort(Budget, nil))
}

// Quote is what Decide comes to.
func (v *View) Quote(req vnet.Request, s *Solver, effort *Effort) (vnet.Quote, error) {
	d, err := v.Decide(req, s, effort)
	if err != nil {
		return vnet.Quote{}, err
	}
	return vnet.Quote{Window: d.window, Mapping: d.mapping, Account: d.request.Quote(v.pricesAt(d.mapping)), Moves: disturbances(d.moves)}, nil
}

// pricesAt are the prices of a new lease at its places.
func (v *View) pricesAt(m vnet.Mapping) vnet.Prices { return v.prices.At(v.sub, m, vnet.Mapping{}) }

// HostLoads says what is booked of every host during a window, in the
// substrate's order.
func (g *resources) HostLoads(w vnet.Window) []vnet.HostLoad {
	loads := make([]vnet.HostLoad, 0, len(g.sub.Hosts))
	for _, h := range g.sub.Hosts {
		cpu, memory, guests := embed.HostKeys(h.Name)
		load := vnet.HostLoad{Host: h.Name, CPU: h.CPU, Memory: h.Memory, Down: h.Down}
		for _, at := range g.instants(w, cpu, memory, guests) {
			now := vnet.Window{Start: at, End: at.Add(1)}
			load.Steps = append(load.Steps, vnet.HostStep{
				At: at, CPU: vnet.CPU(g.calendar.Peak(cpu, now)), Memory: vnet.Bytes(g.calendar.Peak(memory, now)),
				Exclusive: g.calendar.Peak(guests, now) >= embed.WholeHost,
			})
		}
		// A lease that takes none of these leaves no trace.
		load.Steps = slices.CompactFunc(load.Steps, func(a, b vnet.HostStep) bool { b.At = a.At; return a == b })
		loads = append(loads, load)
	}
	return loads
}

// instants are when a window begins and when what is booked of some keys
// changes within it, in order.
func (g *resources) instants(w vnet.Window, keys ...string) []time.Time {
	var all []time.Time
	for _, key := range keys {
		for _, s := range g.calendar.Steps(key, w) {
			all = append(all, s.At)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}

// Loads says what is booked of both directions of every substrate link during
// a window, in the substrate's order.
func (g *resources) Loads(w vnet.Window) []vnet.Load {
	down := make(map[string]bool)
	for _, l := range g.sub.Links {
		down[l.Name] = true
	}
	for _, l := range g.working.Links {
		down[l.Name] = false
	}
	loads := make([]vnet.Load, 0, 2*len(g.sub.Links))
	for _, l := range g.sub.Links {
		for _, d := range vnet.Directions {
			load := vnet.Load{Link: l.Name, From: l.Ends[d], To: l.Ends[d.Opposite()], Leasable: l.Leasable(), Down: down[l.Name]}
			loads = append(loads, g.loaded(load, d, w))
		}
	}
	return loads
}

// OutsideLoads says so of both directions of every way out, exit and place to
// join, which are called nat:, exit: or join: and their name, and of each device
// (device:) whether it is taken. Of OpenFlow switches it says what is booked of their
// entries, meters and slow path.
func (g *resources) OutsideLoads(w vnet.Window) (loads []vnet.Load) {
	add := func(link string, host vnet.HostID, capacity vnet.Rate) {
		ends := [2]string{string(host), "outside"}
		for _, d := range vnet.Directions {
			loads = append(loads, g.loaded(vnet.Load{Link: link, From: ends[d], To: ends[d.Opposite()], Leasable: capacity}, d, w))
		}
	}
	for _, n := range g.sub.NAT {
		add(rate.NATPrefix+n.Name, n.Host, n.Capacity)
	}
	for _, x := range g.sub.Exits {
		add(rate.ExitPrefix+x.Name, x.Host, x.Capacity)
	}
	for _, j := range g.sub.Joins {
		add(rate.JoinPrefix+j.Name, j.Host, j.Capacity)
	}
	for _, d := range g.sub.Devices { // a number, no rate
		load := vnet.Load{Link: rate.DevicePrefix + d.Name, From: string(d.Host), To: "outside", Leasable: 1}
		loads = append(loads, g.loaded(load, vnet.Forward, w))
	}
	for _, l := range embed.SwitchLoads(g.sub) { // numbers of entries, meters and queues, and a rate
		load := vnet.Load{Link: l.Link, From: l.Switch, To: l.Switch, Leasable: vnet.Rate(l.Has)}
		loads = append(loads, g.loaded(load, vnet.Forward, w))
	}
	return loads
}

// loaded fills in what is booked of a direction.
func (g *resources) loaded(load vnet.Load, d vnet.Direction, w vnet.Window) vnet.Load {
	for _, s := range g.calendar.Steps(rate.Element{Link: load.Link, Dir: d}.String(), w) {
		load.Steps = append(load.Steps, vnet.LoadStep{At: s.At, Booked: vnet.Rate(s.Booked), Leases: s.Holders})
	}
	return load
}
