// Package stall says whether a machine had a processor to spare: what tests
// ask that measured too little, before they blame what they measured.
package stall

import (
	"runtime"
	"testing"
	"time"
)

// busy is the part of the time waited for a processor from which a figure that
// is too low says nothing.
const busy = 0.01

// Watch is a thread that only sleeps, and the time it was woken late.
type Watch struct {
	t    testing.TB
	stop chan struct{}
	told chan float64
}

// Start begins to watch what part of the time a thread that only sleeps is
// woken more than 5 ms late. End it.
func Start(t testing.TB) *Watch {
	w := &Watch{t, make(chan struct{}), make(chan float64, 1)}
	go w.watch()
	return w
}

func (w *Watch) watch() {
	const nap, grace = time.Millisecond, 5 * time.Millisecond
	runtime.LockOSThread()
	begin, late := time.Now(), time.Duration(0)
	for {
		select {
		case <-w.stop:
			w.told <- float64(late) / float64(time.Since(begin))
			return
		default:
		}
		before := time.Now()
		time.Sleep(nap)
		if over := time.Since(before) - nap; over > grace {
			late += over
		}
	}
}

// End ends the watch. A test that measured too little in the meantime is
// skipped if the machine was too busy to tell.
func (w *Watch) End(tooLittle bool) {
	w.t.Helper()
	close(w.stop)
	if waited := <-w.told; tooLittle && waited > busy {
		w.t.Skipf("the machine is too busy: a thread with nothing to do waited %.1f %% of the time for a processor", 100*waited)
	}
}
