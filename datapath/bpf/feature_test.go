package bpf

import (
	"errors"
	"os"
	"testing"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
)

func TestFeatures(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to load programs")
	}
	for _, f := range Features() {
		if f.Err != nil && !errors.Is(f.Err, kernel.ErrNotSupported) && !kernel.Loadable("veth") {
			t.Errorf("%s: %v", f.Name, f.Err)
		}
		t.Logf("%s: %v", f.Name, f.Err)
	}
	if err := lacking(ebpf.ErrNotSupported); !errors.Is(err, kernel.ErrNotSupported) {
		t.Errorf("a kernel without: %v", err)
	}
}
