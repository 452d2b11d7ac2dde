package vxswitch

import "sublet/vnet"

// admit says whether a frame of size bytes may come in by port in now. One that
// waited outside since due used the port's capacity from then on.
func (v *virtual) admit(now Time, in int, size int32, due Time) Cause {
	if in < 0 || in >= len(v.gates) || v.gates[in] == shut || now < v.cfg.From || now >= v.cfg.until() {
		v.count.refuse(size, Ended)
		return Ended
	}
	if v.gates[in] == open {
		return None
	}
	i := &v.ins[in]
	if i.bucket.next() > now {
		i.count.refuse(size, Policed)
		return Policed
	}
	if due == 0 || due > now {
		due = now
	}
	i.bucket.pass(due, int(size))
	return None
}

// reaches says whether a frame may go from in to out.
func (v *virtual) reaches(in, out int) bool {
	return out >= 0 && out < len(v.outs) && !v.outs[out].closed && v.cfg.reaches(in, out)
}

// drained takes a port away that has sent its last frame, and then the switch.
func (v *virtual) drained(m *voutput) {
	if m.closed && m.packets+m.loans == 0 {
		v.reap()
	}
}

// reap takes away closed ports that are empty; a switch that is gone goes with
// its last port.
func (v *virtual) reap() {
	left := false
	for _, m := range v.outs {
		if m.closed && m.packets+m.loans == 0 && m.phys >= 0 {
			o := v.s.outputs[m.phys]
			o.members[v.id] = nil
			o.waiting.remove(int(v.id))
			m.phys = -1
		}
		left = left || m.phys >= 0
	}
	if v.gone && !left {
		v.leave()
	}
}

// leave frees the ID and adds what was counted to the switch's past.
func (v *virtual) leave() {
	for _, x := range v.vxbs {
		if x.cross >= 0 {
			v.s.leave(x)
		}
	}
	v.s.past = v.s.past.Plus(v.s.Counters(v.id))
	v.s.members[v.id] = nil
}

// inBurst is the burst of a policed input.
func (v *virtual) inBurst(p Port) vnet.Bytes {
	if p.InBurst > 0 {
		return p.InBurst
	}
	return 2 * v.s.cfg.MaxFrame
}

// outBurst is the burst of a capped output. A switch that waits for its turn
// for a whole round must find its rate unused, and a round is as long as the
// switch's own quantum takes at its own rate.
func (v *virtual) outBurst(p Port) vnet.Bytes {
	if p.OutBurst > 0 {
		return p.OutBurst
	}
	return 2*v.s.cfg.MaxFrame + vnet.Bytes(v.hostQuantum(p))
}

// hostQuantum is the switch's weight at the host's DRR: what it says, or in
// proportion to the rates leased, where the smallest gets one longest frame.
func (v *virtual) hostQuantum(p Port) int {
	if p.Quantum > 0 {
		return int(p.Quantum)
	}
	least := max(v.s.least[p.Physical], 1)
	q := float64(v.s.cfg.MaxFrame) * float64(p.Out) / float64(least)
	return int(min(q, float64(vnet.GiB)))
}
