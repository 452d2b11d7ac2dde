package main

import (
	"strings"
	"testing"
)

// What cannot be measured is refused before anything is made.
func TestProfileRefuses(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"", "FUNCTION is missing"},
		{"/nowhere/ids eth0 eth1", "/nowhere/ids"},
		{"--share 0 sh", "--share 0: choose 1 to 100 percent"},
		{"--share 101 sh", "--share 101"},
		{"--size 59 sh", "--size 59: choose 60 to 1514"},
		{"--size 1515 sh", "--size 1515"},
		{"--window 1ms sh", "--window 1ms: choose 100ms to 1m"},
		{"--size 60" + strings.Repeat(",60", 200) + " --share 1 sh", "choose 1 to 200"},
		{"-o xml sh", "choose table, json or yaml"},
	} {
		code, _, errs := sublet(t, "", append([]string{"profile"}, strings.Fields(row.args)...)...)
		if code != exitInput || !strings.Contains(errs, row.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, %q", row.args, code, errs)
		}
	}
}
