package vxswitch

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/proc"
)

// Bounds on a process that does not get on. One that is stopped is found within
// two looks. One that does not answer, though it has a processor or waits for
// none, has failed after failures questions; one that waits for a processor gets
// starvation, since a machine may be that busy.
const (
	watchEvery   = 500 * time.Millisecond
	healthTime   = 600 * time.Millisecond
	failures     = 3
	starvation   = 15 * time.Second
	oversleeping = 2 // times healthTime: then it is this agent that waits
)

// Loop puts a token into events, which has room for one, whenever the process
// has ended, until ctx ends. A process that stands still it ends.
func (p *Part) Loop(ctx context.Context, events chan<- struct{}) {
	var w watch
	for ctx.Err() == nil {
		pids, _ := p.group().Processes()
		for _, pid := range pids {
			if w.stuck(ctx, p, pid) {
				p.kill(pid)
			}
			if waitFor(ctx, pid) {
				w = watch{}
				select {
				case events <- struct{}{}:
				default:
				}
			}
		}
		if len(pids) == 0 {
			w = watch{}
			select {
			case <-ctx.Done():
			case <-time.After(watchEvery):
			}
		}
	}
}

// watch is what was seen of a process.
type watch struct {
	process proc.Process
	stopped int       // looks in a row that found it so
	silent  int       // questions in a row that it did not answer
	since   time.Time // the first of them
}

// stuck says whether a process stands still for good.
func (w *watch) stuck(ctx context.Context, p *Part, pid int) bool {
	now, ok := proc.Living(pid)
	if !ok {
		return false
	}
	if now.Started != w.process.Started || pid != w.process.PID {
		*w = watch{process: now}
	}
	if now.Stopped {
		w.stopped++
		return w.stopped > 1
	}
	w.stopped = 0
	began := time.Now()
	answered := p.healthy(ctx)
	switch took := time.Since(began); {
	case answered || ctx.Err() != nil:
		w.silent = 0
	case took > oversleeping*healthTime:
	default:
		if w.silent++; w.silent == 1 {
			w.since = began
		}
	}
	if w.silent < failures {
		return false
	}
	return !runnable(pid) || time.Since(w.since) > starvation
}

// healthy says whether the loop that carries frames gets on: it answers between
// two rounds. A process that has no socket yet is starting.
func (p *Part) healthy(ctx context.Context) bool {
	if _, err := os.Lstat(p.file("socket")); errors.Is(err, os.ErrNotExist) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	_, err := p.ask(ctx, http.MethodGet, "health", nil)
	return ctx.Err() == nil || err == nil
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
func (p *Part) kill(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if ours, err := p.group().Processes(); err == nil && slices.Contains(ours, pid) {
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
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(watchEvery/time.Millisecond))
	return ctx.Err() == nil && (n > 0 || err != nil && !errors.Is(err, unix.EINTR))
}
