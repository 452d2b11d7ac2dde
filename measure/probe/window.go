package probe

import (
	"net"
	"sync"
	"time"

	"sublet/measure"
)

// window snapshots the counts of one flow's TCP streams at both ends of a
// measuring window. The kernel sends up to 64 KiB in one piece, however low
// the rate, so both snapshots are taken just after something was read: from
// arrival to arrival. An end that no arrival marks within slack is taken as
// it is: a stream that stalls is not flattered.
type window struct {
	data []*net.TCPConn // bring the flow's data
	acks []*net.TCPConn // of the opposite flow: bring its acknowledgements
	base measure.TCPCount

	mu         sync.Mutex
	begin, end *snapshot
	from, to   time.Time // when the window is due to begin and to end
}

type snapshot struct {
	count measure.TCPCount
	at    time.Time
}

// openWindow begins counting now; the window itself follows after the warm-up.
func openWindow(data, acks []*net.TCPConn, warmUp, length time.Duration) *window {
	w := &window{data: data, acks: acks}
	w.base = w.count()
	w.from = time.Now().Add(warmUp)
	w.to = w.from.Add(length)
	return w
}

func (w *window) count() (sum measure.TCPCount) {
	return counts(w.data).Plus(counts(w.acks)).Since(w.base)
}

// counts adds up what connections have received so far.
func counts(conns []*net.TCPConn) (sum measure.TCPCount) {
	for _, conn := range conns {
		sum = sum.Plus(count(conn))
	}
	return sum
}

// got is called after every read.
func (w *window) got() {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.begin == nil && !now.Before(w.from):
		w.take()
	case w.begin != nil && w.end == nil && !now.Before(w.to):
		w.end = w.snap()
	}
}

// forceBegin begins the window if nothing arrived that could.
func (w *window) forceBegin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begin == nil {
		w.take()
	}
}

// forceEnd ends the window if nothing arrived that could.
func (w *window) forceEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begin != nil && w.end == nil {
		w.end = w.snap()
	}
}

// take begins the window, which keeps its length.
func (w *window) take() {
	w.begin = w.snap()
	w.to = w.begin.at.Add(w.to.Sub(w.from))
}

// A snapshot's time and counts are taken within together, so that a rate over a short
// window is not that of what came between them: a reader that is kept from a processor
// there tries again, this often.
const (
	together  = time.Millisecond
	snapTries = 8
)

func (w *window) snap() *snapshot {
	for tries := snapTries; ; tries-- {
		s := &snapshot{at: time.Now(), count: w.count()}
		if tries == 1 || time.Since(s.at) < together {
			return s
		}
	}
}

// figures sums up, when all streams have ended.
func (w *window) figures() *measure.TCPWindow {
	final := w.count()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begin == nil || w.end == nil {
		return &measure.TCPWindow{}
	}
	return &measure.TCPWindow{Begin: w.begin.count, End: w.end.count, Final: final, Span: w.end.at.Sub(w.begin.at)}
}
