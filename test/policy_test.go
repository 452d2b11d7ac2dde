package test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func ofLength(name, length string) string {
	return "network: " + name + "\nnodes: [{name: a}]\nwindow: {for: " + length + "}\n"
}

// A policy file holds from the start, is shown, and is read again when it
// changes; one that is wrong ends no server and changes nothing.
func TestPolicyFile(t *testing.T) {
	t.Parallel()
	l := local(t)
	file := l.file("policy.yaml", "default: {length: 1h, default_length: 10m, nodes: 1}\n")
	substrate := l.file("substrate.yaml", oneHost)
	if r := l.sublet("serve", "--data", filepath.Join(filepath.Dir(l.run), "none"), "--substrate", substrate,
		"--policy", l.file("wrong.yaml", "defalt: {}\n")); r.code != 2 || !strings.Contains(r.err, `wrong.yaml:1:1: document has no field "defalt": did you mean "default"?`) {
		t.Errorf("a wrong policy: exit %d\n%s", r.code, r.err)
	}
	open := l.file("open.yaml", "default: {}\n")
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	if r := l.sublet("serve", "--data", filepath.Join(filepath.Dir(l.run), "none"), "--substrate", substrate, "--policy", open); r.code != 2 {
		t.Errorf("a policy that everybody can write: exit %d\n%s", r.code, r.err)
	}
	l.background("serve", "--data", filepath.Join(filepath.Dir(l.run), "data"), "--substrate", substrate, "--policy", file)
	eventually(t, 20*time.Second, func() error {
		if r := l.sublet("hosts"); r.code != 0 {
			return errors.New(r.err)
		}
		return nil
	})
	user := l.tenants(alice)[0]
	long, short := l.file("long.yaml", ofLength("n", "2h")), l.file("short.yaml", ofLength("n", "30m"))
	if r := user.sublet("up", "--no-wait", long); r.code != 3 || !strings.Contains(r.err, "quota length of uid12345 is 1h: 2h asked") || !strings.Contains(r.err, "duration 1h instead of 2h") {
		t.Errorf("too long: exit %d\n%s", r.code, r.err)
	}
	user.must("up", "--no-wait", short)
	if shown := user.must("policy"); !strings.Contains(shown, "nodes") || !strings.Contains(shown, "length") {
		t.Errorf("sublet policy shows\n%s", shown)
	}
	if r := user.sublet("policy", "--all"); r.code != 2 {
		t.Errorf("everybody's limits for a tenant: exit %d", r.code)
	}
	l.must("policy", "--all", "-o", "yaml")

	rewrite := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	limit := func(want string) {
		eventually(t, 20*time.Second, func() error {
			if shown := user.must("policy"); !strings.Contains(shown, want) {
				return errors.New(shown)
			}
			return nil
		})
	}
	rewrite("default: {length: 3h}\n")
	limit("3h")
	user.must("up", "--no-wait", l.file("more.yaml", ofLength("m", "2h")))
	rewrite("default: {length: soon}\n")
	time.Sleep(3 * time.Second)
	limit("3h")
	rewrite("others: refused\n")
	eventually(t, 20*time.Second, func() error {
		if shown := user.must("policy", "-o", "json"); !strings.Contains(shown, `"refused": true`) {
			return errors.New(shown)
		}
		return nil
	})
	if r := user.sublet("up", "--no-wait", l.file("last.yaml", ofLength("k", "1h"))); r.code != 3 || !strings.Contains(r.err, "uid12345 is none of the tenants") {
		t.Errorf("one whom the policy does not name: exit %d\n%s", r.code, r.err)
	}
	user.must("down", "--no-wait", "n")
}
