package sim

import "sublet/agent/control"

// JoinAndLeave plays the thesis's experiment with a changing load on a linear
// plane, which carries so many Mbit/s with each hundredth of a core: 400 Mbit/s
// are wanted, at 100 s a flow of small packets joins and the plane carries three
// quarters, at 300 s it leaves. Counted are reallocations after each, until 500 s,
// and of those the ones after 400 s, when a stable law has long settled.
func JoinAndLeave(law *control.Published, mbit float64) (join, leave, late int) {
	const wanted = 400.0
	share := wanted / mbit / 100
	for t := range 500 {
		speed := mbit
		if t >= 100 && t < 300 {
			speed *= 0.75
		}
		next := law.Next(share, wanted, speed*100*share)
		if next != share {
			switch {
			case t >= 400:
				late++
			case t >= 300:
				leave++
			case t >= 100:
				join++
			}
		}
		share = next
	}
	return join, leave, late
}
