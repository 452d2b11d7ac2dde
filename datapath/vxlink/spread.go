package vxlink

import (
	"errors"

	"github.com/cilium/ebpf"

	"sublet/plan"
	"sublet/vnet"
)

// A link over several paths has one port at its end and a tunnel for each path.
// Path 0's VxLink makes the port; each VxLink enters its own tunnel into the
// port's spread, by which the program chooses a tunnel for each flow. Frames
// out of any of the tunnels go to the port.

// branches is how many paths a spread holds (BRANCHES in vxlink.bpf.c).
const branches = vnet.MaxPaths

// spreads says whether frames that enter by an end are spread over paths.
func spreads(l plan.VxLink, i int) bool {
	return l.Units > 0 && !l.Standby && l.Ends[1-i].Tunnel != nil && (l.Ends[i].Port != nil || l.Ends[i].Join != nil)
}

// branch is one entry of a spread.
type branch = struct {
	units          uint16
	gre            uint8
	mark, priority uint32
}

// branchOf is a path's entry. The other end's record is its tunnel's.
func branchOf(l plan.VxLink, tunnel vxlinkRecord) branch {
	return branch{uint16(l.Units), tunnel.gre(), tunnel.Vni, handleOf(tunnel.Minor)}
}

// spread enters a path into its port's spread, or, if it is the only one,
// leaves the port none.
func (w *work) spread(i int, slot uint32, tunnel vxlinkRecord) error {
	if !spreads(w.link, i) {
		if w.link.Ends[i].Port != nil && !w.link.Standby {
			return w.programs.unspread(slot)
		}
		return nil
	}
	return w.part.enter(w.programs, slot, w.link.Path, branchOf(w.link, tunnel))
}

// enter changes one path's entry; an empty one removes it.
func (p *Part) enter(r *programs, slot uint32, path int, b branch) error {
	p.spreading.Lock()
	defer p.spreading.Unlock()
	s, err := r.spreadOf(slot)
	if err != nil {
		return err
	}
	e := &s.Branches[path%len(s.Branches)]
	if (branch{e.Units, e.Gre, e.Mark, e.Priority}) == b {
		return nil
	}
	e.Units, e.Gre, e.Mark, e.Priority = b.units, b.gre, b.mark, b.priority
	return r.spreads.Put(slot, s)
}

// leave removes a path from a port's spread, if it has one.
func (p *Part) leave(r *programs, slot uint32, path int) error {
	if s, err := r.spreadOf(slot); err != nil || s == (vxlinkSpread{}) {
		return err
	}
	return p.enter(r, slot, path, branch{})
}

// spreadOf reads a port's spread; an empty one if it has none.
func (r *programs) spreadOf(slot uint32) (s vxlinkSpread, err error) {
	if err = r.spreads.Lookup(slot, &s); errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	}
	return s, err
}

// entered says whether a port's spread has a path's entry.
func (r *programs) entered(slot uint32, path int, b branch) bool {
	s, err := r.spreadOf(slot)
	e := s.Branches[path%len(s.Branches)]
	return err == nil && (branch{e.Units, e.Gre, e.Mark, e.Priority}) == b
}

// unspread removes a port's spread.
func (r *programs) unspread(slot uint32) error {
	for _, m := range []*ebpf.Map{r.spreads, r.divisions} {
		if err := m.Delete(slot); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}

// leaveSpread removes a path beside the first from the spread of the port it
// joins at an end, if there is one.
func (w *work) leaveSpread(i int) error {
	if w.link.Path == 0 || w.link.Standby {
		return nil
	}
	at := place{w.link.Lease, w.link.Index, i}.turned(w.link.Ends[i].Place)
	for _, at := range []place{at, detourOf(at)} {
		slot, ok, err := w.part.find(w.programs, at)
		if err == nil && ok {
			err = w.part.leave(w.programs, slot, w.link.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
