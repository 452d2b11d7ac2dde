package kernel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// freezersHere are the ways to freeze processes that this machine has: version 1, version
// 2, and signals where there is neither.
func freezersHere(t *testing.T) map[string]Cgroups {
	found, err := FindCgroups("")
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]Cgroups)
	if mount, version := found.Controller("pids"); version == 1 {
		list["signals"] = Cgroups{V1: map[string]string{"pids": mount}}
		if freezer := found.V1["freezer"]; freezer != "" {
			list["version 1"] = Cgroups{V1: map[string]string{"pids": mount, "freezer": freezer}}
		}
	}
	if found.V2 != "" {
		list["version 2"] = Cgroups{V2: found.V2, V2Knows: []string{"pids"}}
	}
	if len(list) == 0 {
		t.Skip("no hierarchy of control groups is mounted here")
	}
	return list
}

// TestFreeze: a frozen group does nothing, also what it started, until it is thawed;
// one that is removed while it is frozen leaves nothing.
func TestFreeze(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for name, c := range freezersHere(t) {
		t.Run(name, func(t *testing.T) {
			parent := c.Group(fmt.Sprintf("slt-freeze-%d", os.Getpid()))
			g := parent.Sub("run")
			if err := parent.Make(); err != nil {
				t.Skipf("no group can be made: %v", err)
			}
			t.Cleanup(func() { _ = parent.Remove() })
			must(t, g.Make())
			isFrozen(t, g, true) // nothing runs in it
			file := filepath.Join(t.TempDir(), "beats")
			cmd := exec.Command("sh", "-c", `read go; (while :; do echo x >>$0; sleep 0.01; done) & while :; do echo y >>$0; sleep 0.01; done`, file)
			stdin, err := cmd.StdinPipe()
			must(t, err)
			must(t, cmd.Start())
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			must(t, g.Add(cmd.Process.Pid))
			fmt.Fprintln(stdin, "go")
			beats := func() int { text, _ := os.ReadFile(file); return len(text) }
			eventually(t, "it runs", func() bool { text, _ := os.ReadFile(file); return strings.Contains(string(text), "x") })
			isFrozen(t, g, false)
			for range 2 { // twice is once
				must(t, g.Freeze())
			}
			isFrozen(t, g, true)
			before := beats()
			time.Sleep(100 * time.Millisecond) // ten beats of each
			if now := beats(); now != before {
				t.Errorf("it went on from %d to %d", before, now)
			}
			must(t, g.Thaw())
			isFrozen(t, g, false)
			eventually(t, "it goes on", func() bool { return beats() > before })
			must(t, g.Freeze())
			must(t, parent.Remove())
			select {
			case <-done:
			case <-time.After(5 * time.Second):
				t.Error("it outlives its group")
			}
			for _, dir := range append(g.freezers(), parent.freezers()...) {
				t.Errorf("left: %s", dir)
			}
		})
	}
}

func isFrozen(t *testing.T, g Group, want bool) {
	t.Helper()
	if is, err := g.Frozen(); err != nil || is != want {
		t.Errorf("frozen: %v %v", is, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ready(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
