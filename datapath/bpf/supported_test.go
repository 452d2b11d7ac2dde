package bpf

import (
	"errors"
	"os"
	"strings"
	"testing"

	"sublet/datapath/kernel"
)

const (
	debian12 = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n"
	ubuntu22 = "VERSION_ID=\"22.04\"\nID=ubuntu\n"
)

// An older kernel is refused in one line that says what it lacks and what to
// install; one that could not be tried is not.
func TestOlderKernelsAreRefused(t *testing.T) {
	old := []kernel.Feature{{Name: "redirect to peer"}, {Name: "program links (TCX)", Err: lacking(kernel.ErrNotSupported)}}
	for _, c := range []struct{ system, release, want string }{
		{debian12, "6.1.0-50-amd64", "linux-image-amd64 of bookworm-backports"},
		{debian12, "6.1.0-50-cloud-amd64", "linux-image-cloud-amd64 of bookworm-backports"},
		{ubuntu22, "5.15.0-100-generic", "linux-generic-hwe-22.04"},
		{"", "6.1.2", "newer kernel"},
	} {
		err := unsupported(old, c.release, func(r string) string { return cureOf(c.system, r) })
		if err == nil {
			t.Fatalf("%s is taken", c.release)
		}
		for _, part := range []string{"6.6", "TCX", c.release, c.want} {
			if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q does not say %q in one line", err, part)
			}
		}
	}
	if err := unsupported([]kernel.Feature{{Err: errors.New("no permission")}, {}}, "6.6", cure); err != nil {
		t.Errorf("a kernel that could not be tried: %v", err)
	}
}

// This machine's kernel, on which the other tests run, is taken.
func TestThisKernelIsTaken(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to load programs")
	}
	if err := Supported(); err != nil {
		t.Error(err)
	}
}
