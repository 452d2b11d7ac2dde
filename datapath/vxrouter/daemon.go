package vxrouter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// start starts a daemon inside the router and waits until it can be spoken
// to. It is root of the router only (the tenant outside), it outlives this
// program, and ends with the node's control group.
func (p *Part) start(ctx context.Context, key, daemon string) error {
	group := p.host.Group(key)
	if err := group.Make(); err != nil {
		return err
	}
	dir := p.dir(key)
	argv := []string{"/usr/bin/nsenter", "--net=" + p.host.Path(key)}
	owner, err := kernel.UserNamespace(p.host.Path(key))
	if err != nil {
		return err
	}
	defer owner.Close()
	if !kernel.SameFile(owner, "/proc/self/ns/user") {
		argv = append(argv, "--user=/proc/self/fd/3")
	}
	argv = append(argv, "--", filepath.Join(frrDir, daemon),
		"--user", "root", "--group", "root", "--vty_port", "0", "--vty_socket", dir,
		"--socket", filepath.Join(dir, "zserv.api"), "--pid_file", pidFile(dir, daemon),
		"--config_file", filepath.Join(dir, daemon+".conf"),
		"--log", "file:"+filepath.Join(dir, daemon+".log"), "--log-level", "errors")
	cmd, err := kernel.Launch{
		Groups: group.Files(), Argv: argv,
		Binds: map[string]string{"/etc/group": filepath.Join(dir, "group")},
	}.Command()
	if err != nil {
		return err
	}
	said, err := os.Create(filepath.Join(dir, daemon+".err"))
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
	return p.await(ctx, key, daemon, ended)
}

// await waits for a daemon's pid file and its socket.
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
			said, _ := os.ReadFile(filepath.Join(p.dir(key), daemon+".err"))
			return fmt.Errorf("it ended at once: %w: %s", err, strings.TrimSpace(string(said)))
		case <-tick.C:
		}
		_, err := os.Stat(filepath.Join(p.dir(key), daemon+".vty"))
		if err == nil && p.pid(key, daemon) != 0 {
			return nil
		}
	}
}

func pidFile(dir, daemon string) string { return filepath.Join(dir, daemon+".pid") }

// pid finds a running daemon; 0: it does not run. A number that by now is
// another process's is not believed.
func (p *Part) pid(key, daemon string) int {
	text, err := os.ReadFile(pidFile(p.dir(key), daemon))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	members, err := p.host.Group(key).Processes()
	if err != nil || !slices.Contains(members, pid) {
		return 0
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || filepath.Base(strings.TrimSuffix(exe, " (deleted)")) != daemon {
		return 0
	}
	return pid
}

// stop ends a daemon: by SIGTERM, on which it takes its routes back, or else
// by SIGKILL.
func (p *Part) stop(key, daemon string) error {
	kill := unix.SIGTERM
	for end := time.Now().Add(stopTime); ; time.Sleep(pollEvery) {
		pid := p.pid(key, daemon)
		if pid == 0 {
			return nil
		}
		if time.Now().After(end) {
			if kill == unix.SIGKILL {
				return fmt.Errorf("%s (process %d) does not end", daemon, pid)
			}
			kill, end = unix.SIGKILL, time.Now().Add(stopTime)
		}
		if err := unix.Kill(pid, kill); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("stop %s (process %d): %w", daemon, pid, err)
		}
	}
}
