package vxrouter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Bounds on a daemon's start and end; both usually take some ten milliseconds.
const (
	startTime = 10 * time.Second
	stopTime  = 3 * time.Second
	pollEvery = 10 * time.Millisecond
)

const nsenter = "/usr/bin/nsenter"

// start starts a daemon inside the router and waits until it can be spoken
// to. It is root of the router only (the tenant outside), it outlives this
// program, and ends with the node's control group.
func (p *Part) start(ctx context.Context, key, daemon string) error {
	group := p.host.Group(key)
	if err := group.Make(); err != nil {
		return err
	}
	dir, own := p.dir(key), p.ownDir(key)
	argv := []string{nsenter, "--net=" + p.host.Path(key)}
	owner, err := kernel.UserNamespace(p.host.Path(key))
	if err != nil {
		return err
	}
	defer owner.Close()
	if !kernel.SameFile(owner, "/proc/self/ns/user") {
		argv = append(argv, "--user=/proc/self/fd/3")
	}
	// Paths from its directory on: the arguments show to every user.
	argv = append(append(argv, "--"), kernel.FRRArgv(daemon, ".", filepath.Base(own), "errors")...)
	cmd, err := kernel.Launch{
		Dir: dir, Groups: group.Files(), Argv: argv,
		Binds: map[string]string{"/etc/group": filepath.Join(dir, "group")},
	}.Command()
	if err != nil {
		return err
	}
	said, err := scratch()
	if err != nil {
		return err
	}
	defer said.Close()
	cmd.Stderr, cmd.ExtraFiles = said, []*os.File{owner}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := p.await(ctx, key, daemon, ended); err != nil {
		words, _ := io.ReadAll(io.NewSectionReader(said, 0, mostWords))
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(words)))
	}
	return nil
}

// mostWords bounds what is repeated of a daemon's last words, in bytes.
const mostWords = 500

// scratch is a file without a name: in the daemon's directory the tenant
// could put something else in its place.
func scratch() (*os.File, error) {
	fd, err := unix.MemfdCreate("words", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a scratch file: %w", err)
	}
	return os.NewFile(uintptr(fd), "words"), nil
}

// await waits for a daemon and its socket.
func (p *Part) await(ctx context.Context, key, daemon string, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return fmt.Errorf("it ended at once: %w", err)
		case <-tick.C:
		}
		if _, err := os.Lstat(filepath.Join(p.ownDir(key), daemon+".vty")); err != nil {
			continue
		}
		if pids, err := p.running(key, daemon); err != nil || len(pids) > 0 {
			return err
		}
	}
}

// running lists the processes of a daemon: those of the router's control group
// that run its program. The daemon's pid file is the tenant's to forge.
func (p *Part) running(key, daemon string) (pids []int, err error) {
	if err := p.host.LookGroups(); err != nil {
		return nil, err
	}
	members, err := p.host.Group(key).Processes()
	if err != nil {
		return nil, err
	}
	program := kernel.FRR(daemon)
	for _, pid := range members {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return nil, fmt.Errorf("what process %d runs %w: %w", pid, kernel.ErrUnseen, err)
		}
		if err == nil && strings.TrimSuffix(exe, " (deleted)") == program {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// stop ends a daemon: by SIGTERM, on which it takes its routes back, or else
// by SIGKILL.
func (p *Part) stop(key, daemon string) error {
	kill := unix.SIGTERM
	for end := time.Now().Add(stopTime); ; time.Sleep(pollEvery) {
		pids, err := p.running(key, daemon)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(end) {
			if kill == unix.SIGKILL {
				return fmt.Errorf("%s (process %d) does not end", daemon, pids[0])
			}
			kill, end = unix.SIGKILL, time.Now().Add(stopTime)
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, kill); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("stop %s (process %d): %w", daemon, pid, err)
			}
		}
	}
}
