package proc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// headless makes a process of this program whose first thread ends while
// another lives on.
const headless = "SUBLET_TEST_HEADLESS"

func init() {
	if os.Getenv(headless) == "" {
		return
	}
	runtime.LockOSThread() // init runs on the first thread
	go time.Sleep(time.Hour)
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

func TestAProcessLivesAsLongAsAnyThread(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), headless+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() //nolint:errcheck // it was killed
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	await(t, "the first thread to end", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return bytes.Contains(text, []byte(") Z "))
	})
	if p, ok := Living(pid); !ok || p.Parent != os.Getpid() {
		t.Errorf("of a process whose first thread has ended: %+v, alive: %v", p, ok)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the process to be gone, not reaped", func() bool { _, ok := Living(pid); return !ok })
}

func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ready(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestParse(t *testing.T) {
	const rest = " 7 8 9 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 %d 0 4711 0 0"
	for text, want := range map[string]bool{
		"5 (a) b) S" + fmt.Sprintf(rest, 1):    true,
		"5 (a) Z (x) Z" + fmt.Sprintf(rest, 1): false,
		"5 (a) Z" + fmt.Sprintf(rest, 3):       true,
		"5 (a) X" + fmt.Sprintf(rest, 0):       false,
		"5 (a":                                 false,
		"":                                     false,
	} {
		if p, ok := parse(5, []byte(strings.Replace(text, ") S", ") T", 1))); ok && p.Stopped != strings.Contains(text, ") S") {
			t.Errorf("%q with state T: %+v", text, p)
		}
		p, ok := parse(5, []byte(text))
		if ok != want || ok && (p != Process{PID: 5, Parent: 7, Session: 9, Started: "4711"}) {
			t.Errorf("%q: %+v, alive: %v", text, p, ok)
		}
	}
}
