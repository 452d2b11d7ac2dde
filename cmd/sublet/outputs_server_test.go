package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// served is a server of this process without agents: what is booked for later lives
// there, and nothing is built. It returns its run directory.
func served(t *testing.T, substrate string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "served") // short: sockets have short names
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan string, 1)
	go func() {
		var out, errs bytes.Buffer
		run(ctx, []string{"--run", dir, "serve", "--substrate", substrate, "--data", filepath.Join(dir, "data")}, strings.NewReader(""), &out, &errs)
		ended <- errs.String()
	}()
	t.Cleanup(func() { stop(); <-ended })
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if code, _, _ := sublet(t, "", "--run", dir, "leases"); code == exitDone {
			return dir
		}
		select {
		case says := <-ended:
			ended <- ""
			t.Fatalf("the server ended: %s", says)
		default:
		}
		if time.Since(begin) > time.Minute {
			t.Fatal("the server does not answer")
		}
	}
}

// later is a request that begins in a week, with a stage on command.
const later = `
network: NAME
labels: {course: COURSE}
window: {start: START, end: END}
nodes: [{name: a}, {name: b}]
links: [{name: a-b, ends: [a, b], min: 10Mbit, max: 100Mbit}]
stages:
- {name: second, begins: command}
`

func inDays(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.RFC3339) }

func laterRequest(name, course string) string {
	return strings.NewReplacer("NAME", name, "COURSE", course, "START", inDays(7), "END", inDays(8)).Replace(later)
}

// What commands print that ask a server is what the schemas say.
func TestOutputsOfServer(t *testing.T) {
	dir := served(t, "fat-tree:2")
	for _, c := range []struct{ form, line, stdin string }{
		{"leases", "leases", ""},
		{"up", "up --no-wait -", laterRequest("net", "one")},
		{"leases", "leases", ""},
		{"leases", "leases net", ""},
		{"stages", "stage net", ""},
		{"link-states", "link show net", ""},
		{"proof", "proof net", ""},
		{"chains", "chains net", ""},
		{"events", "events", ""},
		{"hosts", "hosts", ""},
		{"links", "links", ""},
		{"calendar", "calendar --until 10d", ""},
		{"policy", "policy", ""},
		{"ledger", "ledger", ""},
		{"notify", "notify", ""},
		{"token", "token create", ""},
		{"tokens", "token list", ""},
		{"offers", "offers -", laterRequest("other", "one")},
		{"change", "apply --no-wait -", strings.ReplaceAll(laterRequest("net", "one"), "10Mbit", "20Mbit")},
		{"change", "renew net --for 2d", ""},
		{"up", "clone net copy --from 9d --no-wait", ""},
		{"maintenance", "maintenance add h1 --start 7d --for 1h", ""},
		{"maintenance-list", "maintenance list", ""},
		{"drained", "drain h1", ""},
		{"aftermath", "fail host h1", ""},
		{"aftermath", "restore host h1", ""},
		{"released", "down copy", ""},
		{"leases", "wait -l course=none --for released", ""},
		{"leases", "leases", ""},
	} {
		code, out, errs := sublet(t, c.stdin, append(strings.Fields("--run "+dir+" "+c.line), "-o", "json")...)
		if code != exitDone {
			t.Errorf("sublet %s: exit code %d: %s", c.line, code, errs)
			continue
		}
		wantForm(t, c.form, []byte(out))
	}
	code, out, errs := sublet(t, strings.ReplaceAll(laterRequest("much", "one"), "10Mbit, max: 100Mbit", "400Gbit"), "--run", dir, "up", "-", "-o", "json")
	if code != exitRefused {
		t.Fatalf("400 Gbit/s: exit code %d: %s", code, errs)
	}
	wantForm(t, "up", []byte(out))
	wantForm(t, "failure", []byte(errs))
}
