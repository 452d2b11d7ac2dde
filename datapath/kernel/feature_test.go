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
	list := t.TempDir() + "/filesystems"
	if err := os.WriteFile(list, []byte("nodev\tproc\n\text4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := overlayFeature(list); !errors.Is(err, ErrNotSupported) && !Loadable("overlay") {
		t.Errorf("a kernel without overlayfs: %v", err)
	}
	if err := deviceFeature("no-such-kind"); !errors.Is(err, ErrNotSupported) {
		t.Errorf("an unknown device: %v", err)
	}
	if err := qdiscFeature("no-such-kind", "no-such-module"); !errors.Is(err, ErrNotSupported) {
		t.Errorf("an unknown qdisc: %v", err)
	}
}
