package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sublet/vnet"
)

// hostile is what a tenant may put where others read it.
const hostile = "name\x1b]0;owned\a \u009b2J\x7f\r\u202ereversed\u2066\n\tnext"

// What others say is shown and not done, in tables, lines and errors, and JSON says
// the same as before.
func TestWhatOthersSayIsHarmless(t *testing.T) {
	var out, told bytes.Buffer
	a := &app{out: &out, err: &told, format: "table"}
	if err := a.table("A B", [][]string{{hostile, "b"}}); err != nil {
		t.Fatal(err)
	}
	if err := a.printHappening(vnet.Happening{Kind: "lease", Why: hostile, By: hostile}); err != nil {
		t.Fatal(err)
	}
	p := a.progress("asking")
	a.tellOf(p, "%s\n", hostile)
	p.end()
	a.tellError(&vnet.FieldError{Path: "x", Problem: hostile}, exitInput)
	for _, text := range []string{out.String(), told.String()} {
		for _, r := range text {
			if r != '\n' && acts(r) {
				t.Fatalf("%q is printed: %q", r, text)
			}
		}
	}
	if text := out.String(); !strings.Contains(text, `\x1b]0;owned`) || strings.Count(text, "\n") != 5 {
		t.Errorf("%s", text)
	}
	out.Reset()
	a.format = "json"
	var back string
	if err := a.print(hostile, "", nil); err != nil || json.Unmarshal(out.Bytes(), &back) != nil || back != hostile {
		t.Errorf("%v: %q became %s", err, hostile, out.String())
	}
	if strings.ContainsAny(out.String(), "\u009b\x7f\u202e") {
		t.Errorf("%q", out.String())
	}
}
