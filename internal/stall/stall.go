// Package stall says whether a machine had a processor to spare: what tests
// ask that measured too little, before they blame what they measured.
package stall

import (
	"runtime"
	"time"
)

// Busy is the part of the time waited for a processor from which a figure that
// is too low says nothing.
const Busy = 0.01

// Watch begins to watch what part of the time a thread that only sleeps is
// woken more than 5 ms late; the function it returns ends that, and tells: 0
// to 1.
func Watch() func() float64 {
	const nap, grace = time.Millisecond, 5 * time.Millisecond
	stop, told := make(chan struct{}), make(chan float64)
	go func() {
		runtime.LockOSThread()
		begin, late := time.Now(), time.Duration(0)
		for {
			select {
			case <-stop:
				told <- float64(late) / float64(time.Since(begin))
				return
			default:
			}
			before := time.Now()
			time.Sleep(nap)
			if over := time.Since(before) - nap; over > grace {
				late += over
			}
		}
	}()
	return func() float64 { close(stop); return <-told }
}
