package main

import (
	"strings"
	"testing"
)

// A wrong command is what is told, also where its flags are unknown too, and
// what its help shows is accepted.
func TestWrongWords(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"frobnicate a --node b", `unknown command "frobnicate"`},
		{"link flap a/b", `unknown command "flap"`},
		{"link flap a/b --hard", `unknown command "flap"`},
		{"link show a --hard", "unknown flag: --hard"},
		{"link show a -o xml", `--output "xml"`},
		{"link down a/b -o xml", `--output "xml"`},
		{"lab up --servers 2", "leave the flags out"},
	} {
		if code, out, errs := sublet(t, "", strings.Fields(c.args)...); code != exitInput || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d, %q, %q", c.args, code, out, errs)
		}
	}
}
