package test

import (
	"strings"
	"testing"
)

// One file is leased twice, under names of their own; what is no name, and one name for
// several files, is refused before anything is asked for.
func TestSecondCopyOfAFile(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	file := l.file("n.yaml", "network: n\nnodes: [{name: a}, {name: b}]\nlinks: [{ends: [a, b], rate: 1Mbit}]\n")
	for _, args := range [][]string{{file, "--name", "a/b"}, {file, file, "--name", "m"}, {file, "--name", "m", "--dry-run", "--substrate", "demo"}} {
		if r := l.sublet(append([]string{"up"}, args...)...); r.code != 2 || !strings.Contains(r.err, "--name") {
			t.Errorf("up %q: exit code %d, %s", args[1:], r.code, r.err)
		}
	}
	l.must("up", file)
	l.must("up", file, "--name", "m")
	for _, name := range []string{"n", "m"} {
		l.must("exec", name+"/a", "--", "ping", "-c1", "-w10", "b")
		l.must("down", name)
	}
}
