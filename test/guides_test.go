package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guides are followed in this order.
var guides = []string{"install", "operate", "teach", "experiment", "ci", "chains"}

var block = regexp.MustCompile("(?ms)^```sh\n# run\n(.*?)^```$")

// Who follows the guides word by word comes to their end: every block of commands
// that is marked is run as it stands, in a lab, from the top of the sources.
func TestSoakGuides(t *testing.T) {
	for _, program := range []string{"openssl", "iperf3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	l := newLab(t, "demo")
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "sublet")); err != nil {
		t.Fatal(err)
	}
	for _, name := range guides {
		text, err := os.ReadFile("../docs/guides/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		blocks := block.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			t.Errorf("%s.md has nothing that is run", name)
		}
		for _, b := range blocks {
			cmd := exec.CommandContext(t.Context(), "sh", "-euc", b[1])
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SUBLET_RUN="+l.run)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s.md: %v\n%s\nsays:\n%s", name, err, strings.TrimSpace(b[1]), out)
			}
		}
	}
}
