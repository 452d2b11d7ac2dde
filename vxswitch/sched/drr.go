package sched

import "sublet/vxswitch"

// DRR is deficit round robin (Shreedhar and Varghese, 1996), at both levels the
// default of Anhalt (thesis, sections 4.4.1.2 and 4.4.1.3). In its turn an
// entry's deficit grows by its quantum and it sends frames while they fit the
// deficit; what is left is kept for its next turn, and lost when it has nothing
// more to send.
//
// Over an interval in which i always has something to send, with m turns
// begun, i sends between (m-1)·quantum - frame and m·quantum + frame bytes,
// where frame is the longest one: never further than one quantum plus one
// frame from its share of the rounds.
//
// O(1) a frame when quanta are at least as long as frames. With shorter ones a
// frame may need several rounds; they are skipped in one step of O(entries
// awake).
type DRR struct{}

func (DRR) String() string { return "drr" }

// Bounded: see the cost above.
func (DRR) Bounded() {}

// New returns a DRR of n entries.
func (DRR) New(n int, e vxswitch.Entries) vxswitch.Scheduler {
	return &drr{e: e, ring: newRing(n), deficit: make([]int, n)}
}

type drr struct {
	e vxswitch.Entries
	ring
	deficit []int
	granted bool // the entry at the cursor has got its quantum
}

func (d *drr) Wake(i int) { d.add(i) }

func (d *drr) Changed(int) {}

// Sleep forgets what i could still have sent, but not what it owes.
func (d *drr) Sleep(i int) {
	if d.at == i {
		d.granted = false
	}
	d.remove(i)
	d.deficit[i] = min(d.deficit[i], 0)
}

func (d *drr) Sent(i, size int) { d.deficit[i] -= size }

func (d *drr) Pick(vxswitch.Time) int {
	for visits := 0; d.size > 0; visits++ {
		if visits == d.size {
			d.skip()
			visits = 0
		}
		if !d.granted {
			d.deficit[d.at] += d.e.Quantum(d.at)
			d.granted = true
		}
		if d.e.Size(d.at) <= max(d.deficit[d.at], 0) {
			return d.at
		}
		d.step()
		d.granted = false
	}
	return vxswitch.Nobody
}

// skip grants, after a round in which nothing fitted, all the rounds in which
// nothing will fit either.
func (d *drr) skip() {
	rounds := d.rounds(d.at)
	for i := int(d.next[d.at]); i != d.at; i = int(d.next[i]) {
		rounds = min(rounds, d.rounds(i))
	}
	for range d.size {
		d.deficit[d.at] += (rounds - 1) * d.e.Quantum(d.at)
		d.step()
	}
}

// rounds is how many quanta i's head needs, at least one.
func (d *drr) rounds(i int) int {
	q := d.e.Quantum(i)
	return max(1, (d.e.Size(i)-d.deficit[i]+q-1)/q)
}
