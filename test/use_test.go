package test

import (
	"os"
	"strings"
	"testing"
)

// Of several requests of one command all run, or none is left, and their
// names are free again at once.
func TestUpIsAllOrNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	first, second := l.file("first.yaml", pair("first", "min: 1500Mbit")), l.file("second.yaml", pair("second", "min: 1500Mbit"))
	if r := l.sublet("up", first, second); r.code != 3 {
		t.Fatalf("up of more than fits: exit code %d, %s", r.code, r.err)
	}
	l.must("up", first)
	if r := l.sublet("up", second, "--timeout", "1s"); r.code != 3 {
		t.Errorf("second beside first: exit code %d, %s", r.code, r.err)
	}
}

// A capture that cannot be had leaves the file there is as it was.
func TestCaptureOfNothingWritesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(pair("n", "max: 10Mbit"))
	kept := l.file("kept.pcapng", "precious")
	for _, name := range []string{"none/a-b", "n/none"} {
		if r := l.sublet("capture", name, "-w", kept); r.code != 2 {
			t.Errorf("capture %s: exit code %d, %s", name, r.code, r.err)
		}
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q now (%v)", text, err)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(pair("n", "max: 10Mbit"))
	l.up("network: gone\nnodes: [{name: a}]\n")
	l.must("down", "gone")
	for line, want := range map[string]string{
		"leases":          "gone n",
		"down":            "n",
		"check":           "n",
		"exec":            "n/a n/b",
		"capture":         "n/a-b",
		"plan":            "h1 h2",
		"graph n --form":  "dot mermaid",
		"convert x --to":  "yaml vxdl",
		"hosts --output=": "table json yaml",
	} {
		words := append([]string{"__complete", "--run", l.run}, strings.Fields(line)...)
		if !strings.HasSuffix(line, "=") {
			words = append(words, "")
		}
		offered, _, _ := strings.Cut(l.must(words...), "\n:")
		if got := strings.Join(strings.Fields(offered), " "); got != want {
			t.Errorf("%s completes with %q, not %q", line, got, want)
		}
	}
}

// What has no links has nothing to be measured: that is no broken promise.
func TestCheckOfALonelyNode(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up("network: lonely\nnodes: [{name: a}]\n")
	if r := l.sublet("check", "lonely"); r.code != 5 || !strings.Contains(r.err, "no links") {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
}

// An upgrade puts a new program in the place of the one that runs.
func TestCheckAfterTheProgramWasReplaced(t *testing.T) {
	if os.Getenv("SUBLET_BIN") != "" {
		t.Skip("the program of SUBLET_BIN is not ours to replace")
	}
	l := newLab(t, "demo")
	l.up(pair("n", "max: 10Mbit"))
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program+".new", text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(program+".new", program); err != nil {
		t.Fatal(err)
	}
	// Long enough that what a bucket holds, and frames that grow, are less than
	// what check allows.
	l.checked("n", broken, "--duration", "4s")
}
