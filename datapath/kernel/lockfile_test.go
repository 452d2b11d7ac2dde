package kernel

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A lock is one process's until it is closed, or its process is gone.
func TestLockFile(t *testing.T) {
	const variable = "SUBLET_TEST_LOCK"
	if path := os.Getenv(variable); path != "" { // the other process
		if _, err := LockFile(path); err != nil {
			os.Stdout.WriteString("locked: " + err.Error())
		}
		return
	}
	path := filepath.Join(t.TempDir(), "run", "agent-h1.lock")
	other := func() string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLockFile$")
		cmd.Env = append(os.Environ(), variable+"="+path)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if out := other(); strings.Contains(out, "locked") {
		t.Errorf("nobody has it: %s", out)
	}
	held, err := LockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out := other(); !strings.Contains(out, ErrLocked.Error()) {
		t.Errorf("two processes have it: %s", out)
	}
	held.Close()
	if out := other(); strings.Contains(out, "locked") {
		t.Errorf("it was closed: %s", out)
	}
	if _, err := LockFile(filepath.Dir(path)); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("a directory: %v", err)
	}
}
