package kernel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// started is a command that runs until the test ends.
func started(t *testing.T, argv ...string) int {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// answering is a helper with a socket, where nobody answers if answers is false.
func answering(t *testing.T, answers bool) Helper {
	t.Helper()
	h := Helper{Socket: filepath.Join(t.TempDir(), "socket")}
	if err := os.WriteFile(h.Socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.Ask = func(ctx context.Context) error {
		if answers {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	return h
}

// looks says after how many looks a process is taken for stuck; 0: not within
// some more than it takes.
func looks(t *testing.T, h Helper, pid int) int {
	var s sight
	for i := range failures + 2 {
		if s.stuck(t.Context(), h, pid) {
			return i + 1
		}
	}
	return 0
}

// A helper that does not answer and waits for nothing is stuck; one that waits
// for a processor, or has only not begun to listen, is given time.
func TestStuck(t *testing.T) {
	silent, well := answering(t, false), answering(t, true)
	if n := looks(t, silent, started(t, "sleep", "60")); n != failures {
		t.Errorf("one that never answers: %d looks", n)
	}
	if n := looks(t, silent, started(t, "sh", "-c", "while :; do :; done")); n != 0 {
		t.Errorf("one that is busy: %d looks", n)
	}
	waits, since := started(t, "sleep", "60"), sight{since: time.Now().Add(-2 * starvation)}
	if since.hadTime(waits) {
		t.Errorf("one that got no processor had its time")
	}
	if since.since = time.Now().Add(-2 * mostStarvation); !since.hadTime(waits) {
		t.Errorf("one that got no processor for minutes may have more")
	}
	closing := answering(t, false)
	closing.Ask = func(context.Context) error {
		time.Sleep(healthTime / 2) // until the process sleeps
		return fmt.Errorf("read: %w", io.EOF)
	}
	if n := looks(t, closing, started(t, "sleep", "60")); n != failures {
		t.Errorf("one that closes connections: %d looks", n)
	}
	if err := os.Remove(silent.Socket); err != nil {
		t.Fatal(err)
	}
	if n := looks(t, silent, started(t, "sleep", "60")); n != 0 {
		t.Errorf("one that starts: %d looks", n)
	}
	pid := started(t, "sleep", "60")
	if n := looks(t, well, pid); n != 0 {
		t.Errorf("one that answers: %d looks", n)
	}
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process stops", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && bytes.Contains(stat, []byte(") T "))
	})
	if n := looks(t, well, pid); n != 2 {
		t.Errorf("one that is stopped: %d looks", n)
	}
}
