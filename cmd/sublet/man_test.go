package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestManualPages: each command has one, with what its help says, and no other is
// there; man can read them.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if code, _, errs := sublet(t, "", "man", dir); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	want := map[string]*cobra.Command{"sublet.1": (&app{}).root()}
	for words, c := range commands() {
		want["sublet-"+strings.ReplaceAll(words, " ", "-")+".1"] = c
	}
	for name, c := range want {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		plain := strings.NewReplacer(`\-`, "-", `\&`, "").Replace(string(text))
		if !strings.Contains(plain, c.Short) || c.HasExample() && !strings.Contains(plain, ".SH EXAMPLE") {
			t.Errorf("%s lacks what the help says:\n%.400s", name, text)
		}
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range there {
		if want[e.Name()] == nil && !strings.HasPrefix(e.Name(), "sublet-completion") {
			t.Errorf("%s is of no command", e.Name())
		}
	}
	if man, err := exec.LookPath("man"); err == nil {
		if out, err := exec.CommandContext(t.Context(), man, "--warnings", "-l", filepath.Join(dir, "sublet-up.1")).CombinedOutput(); err != nil || !strings.Contains(string(out), "SYNOPSIS") {
			t.Errorf("man says %v:\n%.400s", err, out)
		}
	}
	if code, _, errs := sublet(t, "", "man", "/proc/none/man1"); code != exitInput || errs == "" {
		t.Errorf("where nothing can be written: exit code %d: %s", code, errs)
	}
}
