package lease

import (
	"container/heap"
	"time"

	"sublet/vnet"
)

// openings is a heap of leases by the opening of their windows: of a book of a
// hundred thousand most are booked for later, and Tick looks at the others
// only. One that ends before its window opens stays in the heap until it is
// the first.
type openings []*entry

func (o openings) Len() int { return len(o) }

func (o openings) Less(i, j int) bool { return o[i].Window.Start.Before(o[j].Window.Start) }

func (o openings) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

// Push and Pop are the heap's.
func (o *openings) Push(x any) { *o = append(*o, x.(*entry)) }

// Pop takes the last.
func (o *openings) Pop() any {
	last := len(*o) - 1
	e := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return e
}

// openWindows takes the leases whose windows have opened out of the heap.
func (b *Book) openWindows(now time.Time) {
	for len(b.openings) > 0 && (b.openings[0].State == vnet.Ended || !now.Before(b.openings[0].Window.Start)) {
		e := heap.Pop(&b.openings).(*entry)
		e.opened = true
		b.track(e)
	}
}

// reorderOpenings follows windows that were postponed.
func (b *Book) reorderOpenings() { heap.Init(&b.openings) }
