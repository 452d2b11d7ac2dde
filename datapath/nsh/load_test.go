package nsh

import (
	"errors"
	"os"
	"testing"

	"github.com/cilium/ebpf"
)

// The kernel takes all programs.
func TestProgramsLoad(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to load programs")
	}
	spec, err := loadNsh()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		var verifier *ebpf.VerifierError
		if errors.As(err, &verifier) {
			t.Fatalf("%-40v", verifier)
		}
		t.Fatal(err)
	}
	c.Close()
}
