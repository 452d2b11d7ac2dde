package probe

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
)

const (
	// burstTime bounds the frames sent in one go: about a millisecond of the
	// rate, so that no shaper's queue notices, and one packet at low rates.
	burstTime = time.Millisecond

	// maxSegments bounds one GSO packet: the kernel takes 64 segments.
	maxSegments = 64

	// maxDatagram is the largest UDP payload of one IPv4 packet.
	maxDatagram = 65507
)

// burst is how many frames of a size make one paced burst, at least one.
func burst(rate vnet.Rate, frame, payload int) int {
	segments := int(float64(rate) * burstTime.Seconds() / float64(8*frame))
	return max(1, min(segments, maxSegments, maxDatagram/payload))
}

// pacer says when the next burst is due. Bursts that were missed by more than
// lag are never made up for: a sender that was kept off the processor must
// not load the link above its rate afterwards.
type pacer struct {
	interval float64 // ns between bursts
	lag      float64 // ns
	due      float64 // ns on the caller's clock
}

// newPacer paces bursts of so many bits of frames, the first at now.
func newPacer(rate vnet.Rate, bits int, lag time.Duration, now int64) *pacer {
	return &pacer{interval: float64(bits) * 1e9 / float64(rate), lag: float64(lag), due: float64(now)}
}

// next returns the time at which the next burst is due and counts it as sent.
func (p *pacer) next(now int64) int64 {
	p.due = max(p.due, float64(now)-p.lag)
	due := p.due
	p.due += p.interval
	return int64(due)
}

// precise ties the goroutine to a thread whose sleeps end within microseconds
// (the default slack is 50 us). The thread ends with the goroutine.
func precise() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
}

// monotonic reads CLOCK_MONOTONIC in ns.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail for this clock
	return now.Nano()
}

// sleepUntil sleeps to a time on the monotonic clock. Go's own timers round
// to a millisecond.
func sleepUntil(ns int64) {
	at := unix.NsecToTimespec(ns)
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil) == unix.EINTR {
	}
}
