package lease

import (
	"container/heap"
	"time"

	"sublet/vnet"
)

// Of the leases that are not ended, most may be booked for later: a book of a
// hundred thousand has a few thousand that need looking at now. Those are
// near; the others wait in a heap for their windows to open.

// attend puts a lease that is in no such list to the near ones or to those
// that wait.
func (b *Book) attend(e *entry) {
	if e.State == vnet.Booked && e.Move == nil && e.Lost == nil {
		heap.Push(&b.waiting, e)
		return
	}
	b.approach(e)
}

// draw brings the leases whose windows open to the near ones.
func (b *Book) draw(now time.Time) {
	for len(b.waiting) > 0 && (b.waiting[0].State == vnet.Ended || !now.Before(b.waiting[0].Window.Start)) {
		if e := heap.Pop(&b.waiting).(*entry); e.State != vnet.Ended {
			b.approach(e)
		}
	}
}

// survey sorts all leases anew, after something that may have touched any.
func (b *Book) survey() {
	clear(b.near)
	b.near, b.waiting = b.near[:0], b.waiting[:0]
	for _, e := range b.live {
		b.attend(e)
	}
}

// approach keeps the near ones in order of admission; new ones are nearly
// always last.
func (b *Book) approach(e *entry) {
	b.near = append(b.near, e)
	for i := len(b.near) - 1; i > 0 && b.near[i-1].Serial > b.near[i].Serial; i-- {
		b.near[i-1], b.near[i] = b.near[i], b.near[i-1]
	}
}

// waiting is a heap of leases by the opening of their windows. One that ends
// before stays in it until it is the first.
type waiting []*entry

func (w waiting) Len() int { return len(w) }

func (w waiting) Less(i, j int) bool { return w[i].Window.Start.Before(w[j].Window.Start) }

func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

// Push and Pop are the heap's.
func (w *waiting) Push(x any) { *w = append(*w, x.(*entry)) }

// Pop takes the last.
func (w *waiting) Pop() any {
	last := len(*w) - 1
	e := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return e
}

// reorder follows windows that were postponed.
func (b *Book) reorder() { heap.Init(&b.waiting) }
