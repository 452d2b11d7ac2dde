package pktgen

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Worker is a thread on one processor whose time is counted.
type Worker struct {
	tid  chan int
	done chan error
	stop chan struct{}
}

// Stop ends its work and says how it went.
func (w Worker) Stop() error {
	close(w.stop)
	return w.Wait()
}

// Wait waits until its work is done, and says how it went.
func (w Worker) Wait() error { return <-w.done }

// pinned runs f on one processor, in a thread of its own.
func pinned(cpu int, f func(stop chan struct{}) error) Worker {
	w := Worker{make(chan int, 1), make(chan error, 1), make(chan struct{})}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread goes with its affinity
		w.tid <- unix.Gettid()
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			w.done <- fmt.Errorf("pin to processor %d: %w", cpu, err)
			return
		}
		w.done <- f(w.stop)
	}()
	return w
}

// meter reads the processor time of threads and of the kernel's thread that
// takes over a processor's deferred packet work. Rates are given per second
// of this time: on a shared machine, a second on the wall has less in it.
type meter struct {
	clocks []int32
	daemon string // schedstat of ksoftirqd
}

func newMeter(cpu int, processes []int, workers ...Worker) (meter, error) {
	m := meter{}
	const perThread, scheduled = 4, 2 // linux/posix-timers.h
	for _, pid := range processes {
		m.clocks = append(m.clocks, int32(^pid<<3|scheduled))
	}
	for _, w := range workers {
		m.clocks = append(m.clocks, int32(^<-w.tid<<3|perThread|scheduled))
	}
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		text, _ := os.ReadFile(name)
		if strings.TrimSpace(string(text)) == fmt.Sprintf("ksoftirqd/%d", cpu) {
			m.daemon = filepath.Join(filepath.Dir(name), "schedstat")
			return m, nil
		}
	}
	return m, fmt.Errorf("ksoftirqd/%d is not there: %v", cpu, err)
}

// read is the time used so far.
func (m meter) read() (time.Duration, error) {
	var total time.Duration
	for _, clock := range m.clocks {
		var t unix.Timespec
		if err := unix.ClockGettime(clock, &t); err != nil {
			return 0, fmt.Errorf("read a thread's clock: %w", err)
		}
		total += time.Duration(t.Nano())
	}
	text, err := os.ReadFile(m.daemon)
	if err != nil {
		return 0, err
	}
	nanoseconds, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	return total + time.Duration(nanoseconds), err
}

// Measured is how much is counted in a second of the time of workers on one
// processor.
func Measured(cpu int, window time.Duration, count func() uint64, workers ...Worker) (float64, error) {
	return measured(cpu, nil, window, count, workers...)
}

func measured(cpu int, processes []int, window time.Duration, count func() uint64, workers ...Worker) (float64, error) {
	m, err := newMeter(cpu, processes, workers...)
	if err != nil {
		return 0, err
	}
	return m.during(window, count)
}

// during is how much is counted in a second of the time that is read.
func (m meter) during(window time.Duration, count func() uint64) (float64, error) {
	time.Sleep(window / 5)
	before, err := m.read()
	if err != nil {
		return 0, err
	}
	counted := count()
	time.Sleep(window)
	after, err := m.read()
	return float64(count()-counted) / (after - before).Seconds(), err
}

// again runs a system call until no signal interrupts it.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
