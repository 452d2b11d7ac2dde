package kernel

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/proc"
)

// Bounds on a helper that does not get on. One that is stopped is found within two
// looks. One that does not answer failures questions, though it waits for no processor,
// is asked once more and has lastTime: it may have waited a moment ago, and whatever asks
// may have. One that runs or waits for a processor gets starvation, until it has had spun
// of a processor since the first of these questions (but no longer than mostStarvation),
// and starvation for the last one: a machine, or its limit, may leave it that little.
const (
	helperEvery  = 500 * time.Millisecond
	healthTime   = 600 * time.Millisecond
	failures     = 3
	lastTime     = 3 * time.Second
	starvation   = 15 * time.Second
	spun         = 3 * time.Second
	oversleeping = 2 // times healthTime: then it is this agent that waits

	mostStarvation = 2 * time.Minute
)

// Watch puts a token into events, which has room for one, whenever the helper has
// ended, until ctx ends. A helper that stands still it ends.
func (h Helper) Watch(ctx context.Context, events chan<- struct{}) {
	var s sight
	for ctx.Err() == nil {
		pids, _ := h.Group.Processes()
		for _, pid := range pids {
			if s.stuck(ctx, h, pid) {
				h.kill(pid)
			}
			if waitFor(ctx, pid) {
				s = sight{}
				select {
				case events <- struct{}{}:
				default:
				}
			}
		}
		if len(pids) == 0 {
			s = sight{}
			select {
			case <-ctx.Done():
			case <-time.After(helperEvery):
			}
		}
	}
}

// sight is what was seen of a process.
type sight struct {
	process proc.Process
	stopped int           // looks in a row that found it so
	silent  int           // questions in a row that it did not answer
	since   time.Time     // the first of them
	used    time.Duration // of a processor, until then
}

// stuck says whether a process stands still for good.
func (s *sight) stuck(ctx context.Context, h Helper, pid int) bool {
	now, ok := proc.Living(pid)
	if !ok {
		return false
	}
	if now.Started != s.process.Started || pid != s.process.PID {
		*s = sight{process: now}
	}
	if now.Stopped {
		s.stopped++
		return s.stopped > 1
	}
	s.stopped = 0
	began := time.Now()
	answered := h.healthy(ctx, healthTime)
	switch took := time.Since(began); {
	case answered || ctx.Err() != nil:
		s.silent = 0
	case took > oversleeping*healthTime:
	default:
		if s.silent++; s.silent == 1 {
			s.since = began
			s.used, _ = ClockOf(pid)
		}
	}
	if s.silent < failures {
		return false
	}
	within := lastTime
	if runnable(pid) {
		if !s.hadTime(pid) {
			return false
		}
		within = starvation
	}
	return !h.healthy(ctx, within) && ctx.Err() == nil
}

// hadTime says whether a process has had the time in which it would have answered.
func (s *sight) hadTime(pid int) bool {
	waited := time.Since(s.since)
	used, err := ClockOf(pid)
	return waited > mostStarvation || waited > starvation && err == nil && used-s.used > spun
}

// healthy says whether it answers in time, be it by an error. Who closes the connection has
// not answered: questions of before may wait where others had room. A process that has no
// socket yet is starting.
func (h Helper) healthy(ctx context.Context, within time.Duration) bool {
	if _, err := os.Lstat(h.Socket); errors.Is(err, os.ErrNotExist) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := h.Ask(ctx)
	return err == nil || ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) && !closed(err)
}

// closed says whether an error is that the other side has closed a connection.
func closed(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, unix.ECONNRESET, unix.EPIPE}, func(e error) bool { return errors.Is(err, e) })
}

// runnable says whether any thread of a process runs, waits for a processor or
// for a disk.
func runnable(pid int) bool {
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
	for _, t := range threads {
		if text, err := os.ReadFile(t + "/stat"); err == nil && proc.Busy(text) {
			return true
		}
	}
	return false
}

// kill ends a process of the group by a descriptor, which is of no other one
// that gets its number.
func (h Helper) kill(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if ours, err := h.Group.Processes(); err == nil && slices.Contains(ours, pid) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// waitFor waits a while for a process to end; false: it lives on.
func waitFor(ctx context.Context, pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(helperEvery/time.Millisecond))
	return ctx.Err() == nil && (n > 0 || err != nil && !errors.Is(err, unix.EINTR))
}
