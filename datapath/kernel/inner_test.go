package kernel

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The program of nodes is started from memory by children in namespaces of their
// own, too, nobody can change it, and what it starts has no descriptor of it.
func TestInnerProgram(t *testing.T) {
	program, err := os.ReadFile("/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	if err := SetInner(program); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		inner = Self
		_ = unix.CloseRange(innerFile-reserved, innerFile, 0)
	})
	out, err := exec.Command(Inner(), "-l", "/proc/self/fd", "/proc/self/exe").CombinedOutput()
	if err != nil || strings.Count(string(out), "/memfd:sublet") != 1 {
		t.Errorf("it has descriptors of itself, or is not in memory: %v\n%s", err, out)
	}
	if f, err := os.OpenFile(Inner(), os.O_WRONLY, 0); err == nil {
		if _, err := f.Write([]byte("x")); err == nil {
			t.Error("it can be written")
		}
		f.Close()
	}
	if got := (Launch{Argv: []string{"/bin/true"}}).launcher(); got != Inner() {
		t.Errorf("%s launches", got)
	}
	if got := (Launch{Argv: []string{Self, "vxswitch"}}).launcher(); got != Self {
		t.Errorf("%s launches this program", got)
	}
	if err := SetInner([]byte("no program")); err == nil || Inner() != Self {
		t.Errorf("what is no program: %v, %s", err, Inner())
	}
}
