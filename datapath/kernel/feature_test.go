package kernel

import (
	"errors"
	"os"
	"path/filepath"
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

// Queues of sockets are small up to what Linux comes with.
func TestQueuesOfSockets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rmem_max")
	for value, small := range map[string]bool{"212992\n": true, "4194304\n": false} {
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := queueFeature(file); (err == nil) != small || !small && !errors.Is(err, ErrNotSupported) {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// Memory of sockets is in the limits of version 2 only.
func TestSocketsWithinMemoryLimits(t *testing.T) {
	if err := (Cgroups{V2: "/two", V2Knows: []string{"memory"}}).socketFeature(nil); err != nil {
		t.Error(err)
	}
	if err := (Cgroups{V1: map[string]string{"memory": "/one"}}).socketFeature(nil); !errors.Is(err, ErrNotSupported) {
		t.Error(err)
	}
}

// Entries for neighbours are asked of both families, of which the second may not be there.
func TestRoomForNeighbours(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct {
		family, value string
		room          bool
	}{{"ipv4", "1024\n", false}, {"ipv4", "65536\n", true}, {"ipv6", "1024\n", false}, {"ipv6", "65536\n", true}} {
		if err := os.WriteFile(filepath.Join(dir, step.family), []byte(step.value), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := neighbourFeature(filepath.Join(dir, "%s")); (err == nil) != step.room || !step.room && !errors.Is(err, ErrNotSupported) {
			t.Errorf("%s %q: %v", step.family, step.value, err)
		}
	}
}
