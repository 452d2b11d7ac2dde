package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// Labels choose networks in every command that lists, follows or waits for them.
func TestLabelsChoose(t *testing.T) {
	dir := served(t, "fat-tree:2")
	do := func(want int, stdin, line string) string {
		t.Helper()
		code, out, errs := sublet(t, stdin, append([]string{"--run", dir}, strings.Fields(line)...)...)
		if code != want {
			t.Errorf("sublet %s: exit code %d, not %d: %s", line, code, want, errs)
		}
		return out + errs
	}
	do(exitDone, laterRequest("net", "one"), "up --no-wait -")
	do(exitDone, laterRequest("other", "two"), "up --no-wait -")
	for _, line := range []string{"leases -l course=one", "proof -l course=one", "events -l course=one", "proof -l course!=two"} {
		if out := do(exitDone, "", line); !strings.Contains(out, "net") || strings.Contains(out, "other") {
			t.Errorf("sublet %s says %s", line, out)
		}
	}
	var proofs []proofView
	if err := json.Unmarshal([]byte(do(exitDone, "", "proof -l course -o json")), &proofs); err != nil || len(proofs) != 4 {
		t.Errorf("%d proofs of two networks: %v", len(proofs), err)
	}
	if out := do(exitDone, "", "events -l course=none"); !strings.Contains(out, "nothing happened") {
		t.Errorf("events of no network: %s", out)
	}
	do(exitInput, "", "proof -l course=none")
	do(exitInput, "", "wait -l course=none")
	if out := do(exitFailed, "", "wait -l course=one --timeout 100ms"); !strings.Contains(out, "net is not running") {
		t.Errorf("wait says %s", out)
	}
	followsByLabels(t, dir, do)
	for line, want := range map[string]string{
		"__complete fail ":               "link\nhost\n:4",
		"__complete restore host ":       "h1\n",
		"__complete lab up ":             "demo\n",
		"__complete up --substrate ":     "fat-tree:\n",
		"__complete up ":                 "yaml\nyml\njson\nxml\nvxdl\ngraphml\n:8",
		"__complete create substrate x ": ":2",
	} {
		code, out, errs := sublet(t, "", append([]string{"--run", dir}, strings.Split(line, " ")...)...)
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("sublet %s offers %q: %s", line, out, errs)
		}
	}
	do(exitDone, "", "down -l course=two --no-wait")
	do(exitDone, "", "wait -l course=two --for released")
	do(exitDone, "", "wait -l course=none --for released")
	if out := do(exitDone, "", "leases -o json"); strings.Count(out, `"state": "booked"`) != 2 {
		t.Errorf("%s", out)
	}
}

// followsByLabels watches the networks of a label while others come.
func followsByLabels(t *testing.T, dir string, do func(int, string, string) string) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	read, write := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx, []string{"--run", dir, "watch", "-l", "course=one", "-o", "json"}, strings.NewReader(""), write, io.Discard)
		write.Close()
	}()
	seen := make(map[vnet.VNetID]bool)
	for lines := bufio.NewScanner(read); !seen["late"] && lines.Scan(); {
		var s report.Sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		wantForm(t, "sample", lines.Bytes())
		if len(seen) == 0 { // the present states have come
			do(exitDone, laterRequest("stranger", "two"), "up --no-wait -")
			do(exitDone, laterRequest("late", "one"), "up --no-wait -")
		}
		seen[s.Lease.Network] = true
	}
	stop()
	go io.Copy(io.Discard, read)
	<-ended
	if len(seen) != 2 || !seen["net"] || !seen["late"] {
		t.Errorf("watch shows %v", seen)
	}
}
