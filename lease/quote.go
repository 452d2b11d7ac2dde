package lease

import (
	"time"

	"sublet/embed/rate"
	"sublet/vnet"
)

// Quote says how a request would be admitted now; the errors are Admit's.
// Nothing is booked, so a name in use is no conflict: the request is looked at
// as another network of that name.
func (b *Book) Quote(now time.Time, req vnet.Request) (vnet.Quote, error) {
	req.Fill()
	if err := b.check(now, req); err != nil {
		return vnet.Quote{}, err
	}
	found, err := b.decide(now, req)
	if err != nil {
		return vnet.Quote{}, err
	}
	return vnet.Quote{Window: found.window, Mapping: found.mapping, Account: req.Quote(b.Prices), Moves: disturbances(found.moves)}, nil
}

// Loads says what is booked of both directions of every substrate link during
// a window, in the substrate's order.
func (b *Book) Loads(w vnet.Window) []vnet.Load {
	down := make(map[string]bool)
	for _, l := range b.sub.Links {
		down[l.Name] = true
	}
	for _, l := range b.working.Links {
		down[l.Name] = false
	}
	loads := make([]vnet.Load, 0, 2*len(b.sub.Links))
	for _, l := range b.sub.Links {
		for _, d := range vnet.Directions {
			load := vnet.Load{Link: l.Name, From: l.Ends[d], To: l.Ends[d.Opposite()], Leasable: l.Leasable(), Down: down[l.Name]}
			for _, s := range b.calendar.Steps(rate.Element{Link: l.Name, Dir: d}.String(), w) {
				load.Steps = append(load.Steps, vnet.LoadStep{At: s.At, Booked: vnet.Rate(s.Booked), Leases: s.Holders})
			}
			loads = append(loads, load)
		}
	}
	return loads
}
