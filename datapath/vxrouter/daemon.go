package vxrouter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"

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
	cmd, err := p.inside(key, kernel.FRRArgv(daemon, kernel.FRREtc, kernel.FRRRun, "errors"))
	if err != nil {
		return err
	}
	defer closeAll(cmd.ExtraFiles)
	said, err := scratch()
	if err != nil {
		return err
	}
	defer said.Close()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := p.await(ctx, key, daemon, ended); err != nil {
		return fmt.Errorf("%w: %s", err, wordsIn(said))
	}
	return nil
}

// inside prepares a program of FRR in a router's namespaces, control group and
// files; the caller closes cmd.ExtraFiles once it is started. Files are named
// from the jail on: arguments show to every user.
func (p *Part) inside(key string, program []string) (cmd *exec.Cmd, err error) {
	group := p.host.Group(key)
	if err := group.Make(); err != nil {
		return nil, err
	}
	jail, err := p.jail(key)
	if err != nil {
		return nil, err
	}
	owner, err := kernel.UserNamespace(p.host.Path(key))
	if err != nil {
		return nil, err
	}
	ns, err := p.host.Open(key)
	if err != nil {
		owner.Close()
		return nil, err
	}
	argv := []string{nsenter, "--net=/proc/self/fd/4"}
	if !kernel.SameFile(owner, "/proc/self/ns/user") {
		argv = append(argv, "--user=/proc/self/fd/3")
	}
	files := []*os.File{owner, ns}
	cmd, err = kernel.Launch{Groups: group.Files(), Argv: append(append(argv, "--"), program...), Jail: jail}.Command()
	if err != nil {
		closeAll(files)
		return nil, err
	}
	cmd.ExtraFiles = files
	return cmd, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// wordsIn is what was said, in a line without anything that a terminal obeys: who
// speaks may be the tenant's.
func wordsIn(said io.ReaderAt) string {
	words, _ := io.ReadAll(io.NewSectionReader(said, 0, mostWords))
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(string(words), "?"), func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }), " ")
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
