package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Groups without a limit of processor time have the least weight beside those
// with one.
func TestWeights(t *testing.T) {
	mount := t.TempDir()
	g := Cgroups{V2: mount, V2Knows: []string{"cpu"}}.Group("node")
	if err := os.Mkdir(filepath.Join(mount, "node"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(mount, "node", "cpu.weight")
	for _, step := range []struct {
		milli int64
		want  string
	}{{0, "1"}, {1000, "100"}, {1500, "150"}, {5, "1"}, {2_000_000, "10000"}, {0, "1"}} {
		if err := os.WriteFile(file, nil, 0o644); err != nil { // as the kernel makes it
			t.Fatal(err)
		}
		if err := g.SetCPU(step.milli); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(file)
		if strings.TrimSpace(string(got)) != step.want {
			t.Errorf("%d thousandths of a core weigh %s, want %s", step.milli, got, step.want)
		}
	}
}
