package stall

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// mostSleepers bounds the threads that sleep: on large machines they watch the
// first processors only.
const mostSleepers = 8

// sleeper is a thread on each processor that only sleeps.
type sleeper struct {
	over atomic.Bool
	all  sync.WaitGroup
	late []atomic.Int64 // ns, by thread
}

func newSleeper() *sleeper {
	s := &sleeper{}
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return s
	}
	s.late = make([]atomic.Int64, min(allowed.Count(), mostSleepers))
	for cpu, thread := 0, 0; thread < len(s.late); cpu++ {
		if allowed.IsSet(cpu) {
			late := &s.late[thread]
			s.all.Go(func() { s.run(cpu, late) })
			thread++
		}
	}
	return s
}

// run sleeps on a processor until it is over. The thread ends with it.
func (s *sleeper) run(cpu int, late *atomic.Int64) {
	runtime.LockOSThread()
	var only unix.CPUSet
	only.Set(cpu)
	_ = unix.SchedSetaffinity(0, &only) // refused: it sleeps where it is
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
	for request := unix.NsecToTimespec(int64(nap)); !s.over.Load(); {
		before := time.Now()
		_ = unix.Nanosleep(&request, nil) // interrupted: it slept less
		if over := time.Since(before) - nap; over > grace {
			late.Add(int64(over))
		}
	}
}

// end ends the threads.
func (s *sleeper) end() {
	s.over.Store(true)
	s.all.Wait()
}

// most is how late the latest was, in all.
func (s *sleeper) most() (most time.Duration) {
	for i := range s.late {
		most = max(most, time.Duration(s.late[i].Load()))
	}
	return most
}

// Stolen is what the hypervisor took of all processors since the machine
// started (proc(5), /proc/stat), to a hundredth of a second; 0 where nobody
// counts it.
func Stolen() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	const steal, hertz = 8, 100 // USER_HZ
	if len(fields) <= steal {
		return 0
	}
	ticks, _ := strconv.ParseUint(string(fields[steal]), 10, 63)
	return time.Duration(ticks) * time.Second / hertz
}

// Waited is how long some work of this machine had waited for a processor, since it was
// started (Linux, Documentation/accounting/psi.rst); 0 where the kernel does not count it.
func Waited() time.Duration {
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	_, total, _ := bytes.Cut(line, []byte(" total="))
	micros, _ := strconv.ParseInt(string(total), 10, 63)
	return time.Duration(micros) * time.Microsecond
}

// Queued is how long threads of this process were ready to run and did not, of
// those there are, in all (Linux, Documentation/scheduler/sched-stats.rst); 0
// where nobody counts it.
func Queued() (sum time.Duration) {
	files, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		var ran, waited int64
		if _, err := fmt.Sscan(string(text), &ran, &waited); err == nil {
			sum += time.Duration(waited)
		}
	}
	return sum
}
