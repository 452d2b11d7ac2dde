package vxswitch

import (
	"net"
	"net/http"
	"os"
	"os/exec"
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

// listen makes the socket; nil: nobody ever answers.
func listen(t *testing.T, p *Part, answer http.Handler) {
	t.Helper()
	if err := os.MkdirAll(p.dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", p.file("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if answer != nil {
		go func() { _ = http.Serve(l, answer) }()
	}
}

// looks says after how many looks a process is taken for stuck; 0: not within
// some more than it takes.
func looks(t *testing.T, p *Part, pid int) int {
	var w watch
	for i := range failures + 2 {
		if w.stuck(t.Context(), p, pid) {
			return i + 1
		}
	}
	return 0
}

// A process that does not answer and waits for nothing is stuck; one that waits
// for a processor, or has only not begun to listen, is given time.
func TestStuck(t *testing.T) {
	silent := newPart(t)
	listen(t, silent, nil)
	if n := looks(t, silent, started(t, "sleep", "60")); n != failures {
		t.Errorf("one that never answers: %d looks", n)
	}
	if n := looks(t, silent, started(t, "sh", "-c", "while :; do :; done")); n != 0 {
		t.Errorf("one that is busy: %d looks", n)
	}
	if n := looks(t, newPart(t), started(t, "sleep", "60")); n != 0 {
		t.Errorf("one that starts: %d looks", n)
	}
	answering := newPart(t)
	listen(t, answering, http.NotFoundHandler())
	pid := started(t, "sleep", "60")
	if n := looks(t, answering, pid); n != 0 {
		t.Errorf("one that answers: %d looks", n)
	}
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond)
	if n := looks(t, answering, pid); n != 2 {
		t.Errorf("one that is stopped: %d looks", n)
	}
}
