package vnode

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"sublet/report"
)

// Processes lists what runs in a node, by number; the processes that keep it and
// its sessions apart.
func (p *Part) Processes(key string) ([]report.Process, error) {
	if _, err := p.host.Owner(key); err != nil {
		return nil, fmt.Errorf("list processes of %s: the node is not here: %w", key, err)
	}
	if err := p.host.LookGroups(); err != nil {
		return nil, fmt.Errorf("list processes of %s: %w", key, err)
	}
	pids, err := p.host.Group(key).Processes()
	if err != nil {
		return nil, err
	}
	depth, list := len(numbersOf(os.Getpid())), []report.Process{}
	for _, pid := range pids {
		numbers := numbersOf(pid)
		if len(numbers) <= depth || numbers[depth] == 1 {
			continue // outside, or the pause process
		}
		if one, err := p.Process(pid); err == nil {
			one.Command, one.PID, one.Core = printable(one.Command), numbers[depth], onlyCore(pid)
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b report.Process) int { return cmp.Compare(a.PID, b.PID) })
	return list, nil
}

// onlyCore is the core to which a process is bound; nil: it may run on several.
func onlyCore(pid int) *int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil || set.Count() != 1 {
		return nil
	}
	core := 0
	for !set.IsSet(core) {
		core++
	}
	return &core
}

// printable takes out what could move a reader's cursor: a process says of
// itself what its arguments are.
func printable(text string) string {
	const most = 4096
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text[:min(len(text), most)])
}

// logPause is how long Log waits before it looks again.
const logPause = 200 * time.Millisecond

// Log writes what commands wrote that were left running in a node; with follow
// also what they write from now on, until ctx ends or the node does.
func (p *Part) Log(ctx context.Context, key string, follow bool, w io.Writer) error {
	if _, err := p.host.Owner(key); err != nil {
		return fmt.Errorf("read the log of %s: the node is not here: %w", key, err)
	}
	at := int64(0)
	for {
		n, err := p.copyLog(key, at, w)
		if at = n; err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(logPause):
		}
		if _, err := p.host.Owner(key); err != nil {
			return nil
		}
	}
}

// copyLog writes a log from an offset on and returns where it ends now. One
// that was cut meanwhile begins anew. Whoever writes it decides how long it says
// it is, so holes count for nothing.
func (p *Part) copyLog(key string, at int64, w io.Writer) (int64, error) {
	f, err := os.Open(p.logPath(key))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return at, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return at, err
	}
	if info.Size() < at {
		at = 0
	}
	at = max(at, info.Size()-mostLog)
	text := make([]byte, info.Size()-at)
	n, err := f.ReadAt(text, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return at, err
	}
	_, err = w.Write(bytes.ReplaceAll(text[:n], []byte{0}, nil))
	return at + int64(n), err
}
