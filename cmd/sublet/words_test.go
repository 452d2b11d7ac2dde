package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"sublet/vnet"
)

// What is said of mistakes names what to do instead, and nothing of Go.
func TestWordsOfMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"upp":                                  `did you mean "sublet up"?`,
		"laeses":                               `did you mean "sublet leases"?`,
		"lab upp":                              `did you mean "sublet lab up"?`,
		"x":                                    "see sublet --help",
		"exec hello":                           "write hello/NODE",
		"ps hello":                             "write NAME/NODE",
		"capture hello":                        "write NAME/LINK",
		"check":                                "NAME is missing: write sublet check NAME",
		"fail link":                            "NAME is missing",
		"leases a b":                           "2 arguments is too much: write sublet leases [NAME]",
		"impair n/a dely=3ms":                  `did you mean "delay"?`,
		"leases --server h:1":                  "--cert, --key and --ca",
		"leases --server h:1 --cert a --key b": "--cert, --key and --ca",
		"down --all-tenants":                   "--yes",
		"down --all --server h:1 --cert /none --key /none --ca /none": "/none",
	} {
		t.Run(line, func(t *testing.T) {
			if _, _, errs := sublet(t, "", strings.Fields(line)...); !strings.Contains(errs, want) {
				t.Errorf("sublet %s says %q, not %q", line, errs, want)
			}
		})
	}
}

// No words at all are not a command either.
func TestEmptyCommandIsAMistake(t *testing.T) {
	if code, _, errs := sublet(t, "", "exec", "-d", "hello/a", "--", ""); code != 2 || !strings.Contains(errs, "the command is empty") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A signal ends a command with the code that shells give it, in words.
func TestInterruptionHasItsExitCode(t *testing.T) {
	for _, test := range []struct {
		cause error
		err   error
		code  int
	}{
		{errors.New("interrupt signal received"), &url.Error{Op: "Get", URL: "http://sublet/v1/leases", Err: context.Canceled}, 130},
		{errors.New("terminated signal received"), fmt.Errorf("wait: %w", context.Canceled), 143},
		{errors.New("interrupt signal received"), badInput{errors.New("x")}, 0},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(test.cause)
		if code := interruption(ctx, test.err); code != test.code {
			t.Errorf("%v by %v: exit code %d, not %d", test.err, test.cause, code, test.code)
		}
	}
	if code := interruption(t.Context(), context.Canceled); code != 0 {
		t.Errorf("exit code %d without a signal", code)
	}
	for err, want := range map[error]string{
		fmt.Errorf("a: %w", context.Canceled):         "a: interrupted",
		fmt.Errorf("a: %w", context.DeadlineExceeded): "a: the time for it is over",
	} {
		if got := message(err); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// --all means one tenant's leases, everybody's only with a flag of its own.
func TestAllMeansOnesOwn(t *testing.T) {
	lease := func(tenant, name string, state vnet.State) vnet.Lease {
		return vnet.Lease{Request: vnet.Request{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(name)}, State: state}
	}
	leases := []vnet.Lease{lease("root", "a", vnet.Running), lease("alice", "b", vnet.Booked), lease("root", "c", vnet.Ended)}
	for want, w := range map[string]whose{
		"root/a":         {all: true, tenant: "root"},
		"alice/b":        {all: true, tenant: "alice"},
		"":               {all: true, tenant: "bob"},
		"root/a alice/b": {everybody: true, yes: true},
	} {
		t.Run(want, func(t *testing.T) {
			var got []string
			for _, l := range w.live(leases) {
				got = append(got, l.ID().String())
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%+v releases %v, not %s", w, got, want)
			}
		})
	}
	a := &app{}
	w := whose{all: true}
	if err := a.own(&w); err != nil || os.Geteuid() == 0 && w.tenant != "root" {
		t.Errorf("own leases are those of %q, %v", w.tenant, err)
	}
	a.server = "h:1"
	if err := a.own(&whose{all: true}); exitCode(err) != exitInput {
		t.Errorf("a certificate's own leases: %v", err)
	}
}

// Nothing of a progress line stays before what is printed.
func TestProgressLineIsErased(t *testing.T) {
	terminal, side, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal: ", err)
	}
	t.Setenv("TERM", "xterm")
	shown := make(chan string)
	go func() {
		text, _ := io.ReadAll(terminal) // ends with an error when the other side is closed
		shown <- string(text)
	}()
	p := (&app{err: side}).progress("building root/many")
	time.Sleep(1200 * time.Millisecond)
	p.aside(func() { fmt.Fprintln(side, "root/many is running") })
	p.end()
	p.end()
	side.Close()
	text := <-shown
	terminal.Close()
	if i := strings.Index(text, "building"); i < 0 || !strings.Contains(text[i:], wipe+"root/many is running") {
		t.Errorf("the terminal got %q", text)
	}
}

// A long note is cut in a table of many leases, and whole in JSON; times name
// their zone.
func TestNotesAreCutInTables(t *testing.T) {
	long := strings.Repeat("é", 400)
	var out bytes.Buffer
	a := &app{out: &out, format: "table"}
	l := vnet.Lease{Request: vnet.Request{Network: "n"}, State: vnet.Failed, Stage: -1, Message: long, Window: vnet.Window{Start: time.Now()}}
	if err := a.printLeases([]vnet.Lease{l}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), long) || !strings.Contains(out.String(), "é...") {
		t.Errorf("the table:\n%s", out.String())
	}
	if zone, _ := time.Now().Zone(); !strings.Contains(out.String(), " "+zone) {
		t.Errorf("no zone %s in\n%s", zone, out.String())
	}
	out.Reset()
	a.format = "json"
	if err := a.printLeases([]vnet.Lease{l}); err != nil || !strings.Contains(out.String(), long) {
		t.Errorf("JSON: %v\n%s", err, out.String())
	}
	out.Reset()
	a.format = "table"
	if err := a.printLeases(nil); err != nil || out.String() != "no leases\n" {
		t.Errorf("without leases: %v %q", err, out.String())
	}
}

// What a server finds wrong with a field is told with its place in the file.
func TestServersWordsGetTheirPlace(t *testing.T) {
	a := &app{err: io.Discard}
	name := filepath.Join(t.TempDir(), "r.yaml")
	if err := os.WriteFile(name, []byte("network: n\nwindow:\n  start: 2001-01-01T00:00:00Z\nnodes: [{name: a}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := a.readRequest(name, false)
	if err != nil {
		t.Fatal(err)
	}
	placed := a.placed(r.Network, &vnet.FieldError{Path: "window.start", Problem: "has passed"})
	if want := name + ":3:10: window.start: has passed"; placed.Error() != want || exitCode(placed) != exitInput {
		t.Errorf("%q, not %q", placed, want)
	}
	// What the file reads from others is not read again.
	key := filepath.Join(filepath.Dir(name), "key.pem")
	tls := "network: n\nnodes: [{name: a}]\nswitches:\n  - name: s\n    kind: openflow\n    controller: [ssl:a:6653]\n    fail: secure\n    tls: {key: {from: key.pem}, certificate: {from: key.pem}, ca: {from: key.pem}}\nlinks:\n  - {ends: [s, a], control: true}\n"
	if err := errors.Join(os.WriteFile(key, []byte("x"), 0o600), os.WriteFile(name, []byte(tls), 0o600)); err != nil {
		t.Fatal(err)
	}
	a.sources[r.Network] = source{name, []byte(tls)}
	if placed := a.placed(r.Network, &vnet.FieldError{Path: "switches[0].fail", Problem: "stays"}); !strings.Contains(placed.Error(), name+":7:") {
		t.Errorf("%q", placed)
	}
	if other := (badInput{errors.New("x")}); a.placed(r.Network, other) != other {
		t.Error("another error is changed")
	}
}
