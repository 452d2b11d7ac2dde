package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

var profiles = flag.String("profile", "", "folder for profiles (perf record, perf report) of the processor with each network of the groups")

// comms are the names of who works for a network: this program, whose senders
// also do what the kernel does of their packets, and the kernel's daemon.
func comms() string {
	name := filepath.Base(os.Args[0])
	return fmt.Sprintf("%s,ksoftirqd/%d", name[:min(15, len(name))], first)
}

// profile writes what the processor does while a gauge is taken of a network, if
// that is asked for. The samples are of a clock: virtual machines have no counters.
func profile(ctx context.Context, group, name string, take func() error) error {
	if *profiles == "" {
		return nil
	}
	if err := os.MkdirAll(*profiles, 0o755); err != nil {
		return err
	}
	data := filepath.Join(*profiles, group+" "+name+".data")
	record := exec.CommandContext(ctx, "perf", "record", "-q", "-e", "cpu-clock", "-F", "9000", "-C", strconv.Itoa(first), "-g", "-o", data)
	record.Cancel = func() error { return record.Process.Signal(os.Interrupt) }
	if err := record.Start(); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	time.Sleep(200 * time.Millisecond)
	err := take()
	_ = record.Process.Signal(os.Interrupt)
	_ = record.Wait() // interrupted
	if err != nil {
		return err
	}
	report, err := exec.CommandContext(ctx, "perf", "report", "-i", data, "--stdio", "--no-children", "-g", "none", "--percent-limit", "0.1", "--sort", "symbol", "--comms", comms()).Output()
	return errors.Join(err, os.WriteFile(filepath.Join(*profiles, group+" "+name+".txt"), report, 0o644))
}
