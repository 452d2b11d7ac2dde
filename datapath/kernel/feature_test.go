package kernel

import (
	"errors"
	"os"
	"testing"
)

func TestFeatures(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	for _, f := range Features() {
		t.Logf("%-24s %v", f.Name, f.Err)
		if f.Err != nil && !errors.Is(f.Err, ErrNotSupported) {
			t.Errorf("%s: cannot tell: %v", f.Name, f.Err)
		}
		if f.Means == "" {
			t.Errorf("%s: no meaning", f.Name)
		}
	}
	if err := deviceFeature("no-such-kind"); !errors.Is(err, ErrNotSupported) {
		t.Errorf("an unknown device: %v", err)
	}
	if err := qdiscFeature("no-such-kind", "no-such-module"); !errors.Is(err, ErrNotSupported) {
		t.Errorf("an unknown qdisc: %v", err)
	}
}
