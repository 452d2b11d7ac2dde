package vnode

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sublet/vnet"
)

// emulated is a supervisor with an emulator that it speaks to, on a disk of its own. Nothing
// is on that: the machine looks for a system for as long as the test takes.
func emulated(t *testing.T, from beginning) (s *supervisor, layer string) {
	t.Helper()
	for _, program := range []string{emulator, "qemu-img", "qemu-io"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	dir := t.TempDir()
	layer = filepath.Join(dir, diskFile)
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", layer, "16M")
	s = &supervisor{Machine: &machine{CPUs: 1, Memory: 32, Asleep: filepath.Join(dir, memoryFile)}, ending: make(chan struct{}), given: vnet.Setup{Image: "none.raw"}}
	s.comes.Store(from == comes)
	if from == begins {
		tool(t, "qemu-io", "-f", "qcow2", "-c", "write -P 7 1M 3M", layer)
	}
	base := filepath.Join(dir, "base")
	must(t, os.WriteFile(base, make([]byte, 1<<20), 0o600))
	var files []*os.File
	for _, path := range []string{base, layer, base} {
		mode := os.O_RDONLY
		if path == layer {
			mode = os.O_RDWR
		}
		f, err := os.OpenFile(path, mode, 0)
		must(t, err)
		defer f.Close()
		files = append(files, f)
	}
	c, theirs, err := openControl()
	must(t, err)
	cmd := exec.Command(emulator, s.arguments(nil, from)[1:]...)
	cmd.ExtraFiles, cmd.Stderr = append(files, theirs), os.Stderr
	err = cmd.Start()
	theirs.Close()
	must(t, err)
	t.Cleanup(func() { c.close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s.direct(c, false)
	return s, layer
}

func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

func never() bool { return false }

// A machine that is sent runs until all of it has been sent, and then where it is let go on;
// its disk comes along. Where nobody takes it to the end, it runs.
func TestMachineIsSentWhileItRuns(t *testing.T) {
	from, layer := emulated(t, begins)
	state := func(s *supervisor) string {
		is, err := s.control.Load().status("query-status")
		must(t, err)
		return is
	}
	ours, theirs, err := pairOf()
	must(t, err)
	go func() { _, _ = io.CopyN(io.Discard, ours, 1<<20); ours.Close() }()
	if err := from.send(theirs, never); err == nil || state(from) != "running" || from.isAway() {
		t.Errorf("nobody takes it to the end: %v, it is %s, away %t", err, state(from), from.isAway())
	}
	to, copied := emulated(t, comes)
	if err := to.stay(); err == nil {
		t.Error("it goes on before it has come")
	}
	for i := range 2 { // the second time for one whose end nobody heard of
		ours, theirs, err := pairOf()
		must(t, err)
		in, into, err := pairOf()
		must(t, err)
		taken := make(chan error, 1)
		go func() { taken <- to.take(into, never) }()
		go func() { _, _ = io.Copy(in, ours); _ = in.CloseWrite() }()
		began := time.Now()
		err = from.send(theirs, never)
		theirs.Close()
		if err := errors.Join(err, <-taken); err != nil {
			t.Fatal(err)
		}
		if is, came := state(from), state(to); is != "postmigrate" || came != "paused" || !from.isAway() {
			t.Errorf("when it has come it is %s and %s, away %t", is, came, from.isAway())
		}
		t.Logf("sent in %s", time.Since(began))
		if i > 0 {
			break
		}
		must(t, from.stay())
		if is := state(from); is != "running" || from.isAway() {
			t.Errorf("taken back it is %s, away %t", is, from.isAway())
		}
		_ = to.control.Load().ask("quit", nil, nil)
		to, copied = emulated(t, comes)
	}
	must(t, to.stay())
	if is := state(to); is != "running" {
		t.Errorf("it does not go on: %s", is)
	}
	must(t, to.control.Load().ask("quit", nil, nil))
	must(t, from.control.Load().ask("quit", nil, nil))
	tool(t, "qemu-img", "compare", "-U", "-f", "qcow2", "-F", "qcow2", layer, copied)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
