package bpf

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"sublet/datapath/kernel"
)

// What the trial finds is what kernels are known to do: those from Linux 6.17 on
// count the headers of all segments.
func TestUndercounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to load programs")
	}
	short, err := Undercounts()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // nothing else is counted
		if again, err := Undercounts(); err != nil || again != short {
			t.Fatalf("another trial says %t, %v", again, err)
		}
	}
	major, rest, _ := strings.Cut(kernel.Release(), ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	if recent := a > 6 || a == 6 && b >= 17; recent && short {
		t.Errorf("Linux %s leaves headers out", kernel.Release())
	}
	t.Logf("Linux %s leaves headers out: %t", kernel.Release(), short)
}
