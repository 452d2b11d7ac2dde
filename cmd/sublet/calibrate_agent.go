package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/plan"
	"sublet/vnet"
)

const (
	calibrationLook  = time.Minute     // between looks whether the machine is to be measured
	calibrationWatch = time.Second     // between looks whether a network has come meanwhile
	calibrationTime  = 2 * time.Minute // at most
	calibrationRetry = time.Hour       // after one that failed
)

// keepMeasured measures what this machine does when nobody has, when that was
// long ago or on another machine, and tells the server: after it has run for a
// while, while no network runs on the host, at the lowest priority.
func (a *app) keepMeasured(ctx context.Context, host vnet.HostID, after time.Duration, log *slog.Logger) {
	var told vnet.Measurement
	var said string
	say := func(level slog.Level, what string) { // once
		if said != what {
			said = what
			log.Log(ctx, level, what)
		}
	}
	for pause := after; sleep(ctx, pause); {
		pause = calibrationLook
		m, ok := remembered(measuredFile, time.Now())
		switch used, err := a.inUse(ctx, host); {
		case ok && m == told:
		case ok:
			if err := a.client().Measured(ctx, host, m); err != nil {
				say(slog.LevelWarn, "the server does not take what this machine was measured to do: "+err.Error())
				continue
			}
			told = m
		case err != nil: // the agent itself says why
		case used:
			say(slog.LevelInfo, "this machine is not measured yet: that waits until no network runs on it")
		default:
			say(slog.LevelInfo, "measuring what this machine does: "+thisMachine())
			pause = a.calibrateQuietly(ctx, host, log)
		}
	}
}

// sleep waits; false: the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// inUse says whether any network is on this host now, or is to be: a host may
// keep what its server knows nothing of.
func (a *app) inUse(ctx context.Context, host vnet.HostID) (bool, error) {
	if there, err := os.ReadDir(filepath.Join(a.run, "netns", string(host))); err == nil && len(there) > 0 {
		return true, nil
	}
	p, err := a.client().Plan(ctx, host, plan.Origin{})
	return len(plan.Of[plan.VNode](p))+len(plan.Of[plan.VxLink](p))+len(plan.Of[plan.Overlay](p)) > 0, err
}

// errInUse ends a measurement when a network comes.
var errInUse = errors.New("a network has come to the host")

// calibrateQuietly measures this machine by a process of its own, which stops,
// and cleans up, when a network comes to the host. It returns how long to wait
// until the next look.
func (a *app) calibrateQuietly(ctx context.Context, host vnet.HostID, log *slog.Logger) time.Duration {
	err := a.calibrateAside(ctx, host)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInUse):
		return calibrationLook
	}
	log.Warn("this machine could not be measured", "err", err)
	return calibrationRetry
}

func (a *app) calibrateAside(ctx context.Context, host vnet.HostID) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, calibrationTime, fmt.Errorf("it took longer than %s", calibrationTime))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd := exec.CommandContext(ctx, exe, "calibrate", "--window", "200ms", "-o", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = calibrationTime / 4
	var complaint bytes.Buffer // a line
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, 19) // what is measured is processor time, so any will do
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("%w: %s", cmp.Or(context.Cause(ctx), err), bytes.TrimSpace(complaint.Bytes()))
			}
			return nil
		case <-time.After(calibrationWatch):
			if used, err := a.inUse(ctx, host); err == nil && used {
				stop(errInUse)
			}
		}
	}
}
