package kernel

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// WatchMounts puts a token into events, which has room for one, whenever mounts
// change what can be looked at of the host, until ctx ends: a bpf file system
// that is unmounted takes programs with it, and nothing else tells of that.
func (h *Host) WatchMounts(ctx context.Context, events chan<- struct{}) error {
	table, err := os.Open(OwnMounts)
	if err != nil {
		return fmt.Errorf("watch mounts: %w", err)
	}
	defer table.Close()
	for before := h.sight(); ctx.Err() == nil; {
		const wait = 100 // ms
		fds := []unix.PollFd{{Fd: int32(table.Fd()), Events: unix.POLLPRI}}
		if n, err := unix.Poll(fds, wait); n <= 0 || err != nil { // proc(5): a change is POLLPRI
			continue
		}
		now := h.sight()
		if now == before {
			continue
		}
		before = now
		select {
		case events <- struct{}{}:
		default:
		}
	}
	return nil
}

// sight is what can be looked at, as far as mounts change it.
func (h *Host) sight() string {
	var fs unix.Statfs_t
	_ = unix.Statfs(h.Dir("bpf"), &fs) // an error: type 0
	text := fmt.Sprint(fs.Type, fs.Fsid, h.LookGroups())
	for _, kind := range kinds {
		text += fmt.Sprint(h.Look(kind))
	}
	return text
}
