package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Files of the run directory: others may write to none, and read what concerns
// everybody only.
func TestFilesAreRootsOwn(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	both := l.tenants(alice, bob)
	for _, c := range both {
		c.up(pair("net", "max: 10Mbit"))
	}
	public := []string{"", "/api.sock", "/lab", "/lab/state.json", "/lab/substrate.json"}
	_ = filepath.WalkDir(l.run, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			t.Error(err)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil // gone in between
		}
		short, mode := strings.TrimPrefix(path, l.run), info.Mode().Perm()
		if mode&0o022 != 0 && short != "/api.sock" || mode&0o044 != 0 && !slices.Contains(public, short) {
			t.Errorf("%s has mode %04o", short, mode)
		}
		if info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s is not root's", short)
		}
		if d.IsDir() && mode&0o001 == 0 {
			return filepath.SkipDir
		}
		return nil
	})
	planted := filepath.Join(filepath.Dir(l.run), "planted")
	if err := os.Mkdir(planted, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(planted, alice, alice); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"serve --data " + planted + "/data", "agent --host h1", "lab up demo", "lab down"} {
		r := runCommand(exec.Command(program, append([]string{"--run", planted}, strings.Fields(command)...)...))
		if left, _ := os.ReadDir(planted); r.code != 2 || len(left) > 0 || !strings.Contains(r.err, "12345") {
			t.Errorf("%s in a tenant's directory: exit code %d, %s", command, r.code, r.err)
		}
	}
}
