package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sublet/report"
)

// oskenApplication is a learning switch on os-ken, whose entries have the cookie 7.
const oskenApplication = "testdata/osken_learning.py"

// An application of os-ken and Sublet's controller control one leased switch in turn:
// each finds what the other left, and makes the switch forward.
//
//	a - s1 - b,  s1 -control- ctl
func TestControllersInTurn(t *testing.T) {
	t.Parallel()
	python := os.Getenv("OSKEN_PYTHON")
	if _, err := os.Stat(python); err != nil {
		t.Skip("os-ken is not installed: tools/install-deps installs it, and make names it by OSKEN_PYTHON")
	}
	text, err := os.ReadFile(oskenApplication)
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, "demo")
	l.up(`network: turn
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
  - {name: ctl, host: h2, memory: 768MiB}
switches: [{name: s1, host: h1, kind: openflow, controller: ["tcp:ctl:6653"]}]
links:
  - {ends: [a, s1], rate: 10Mbit}
  - {ends: [s1, b], rate: 10Mbit}
  - {ends: [s1, ctl], control: true}
`)
	app := t.TempDir() + "/learning.py"
	if err := os.WriteFile(app, text, 0o644); err != nil {
		t.Fatal(err)
	}
	l.must("cp", app, "turn/ctl:/tmp/learning.py")
	l.must("cp", program, "turn/ctl:/tmp/sublet")
	osken := []string{python, "/tmp/learning.py"}
	ours := []string{"/tmp/sublet", "controller", "--listen", "0.0.0.0:6653", "--app", "learning"}
	l.controls(osken, "cookie=0x7,")
	l.controls(ours, "cookie=0x5b1e")
	l.controls(osken, "cookie=0x7,")
	l.must("down", "turn")
}

// controls has a controller make the switch of network turn forward by entries of its
// cookie, and ends it.
func (l *lab) controls(command []string, cookie string) {
	l.t.Helper()
	l.must(append([]string{"exec", "-d", "turn/ctl", "--", "sh", "-c", `echo $$ >/tmp/pid; exec "$@"`, "sh"}, command...)...)
	eventually(l.t, 60*time.Second, func() error {
		s := decode[report.OpenFlowStatus](l.t, l.must("flows", "status", "turn/s1", "-o", "json"))
		if len(s.Controllers) != 1 || !s.Controllers[0].Connected {
			return fmt.Errorf("%v is not connected: %+v\n%s", command, s.Controllers, l.must("logs", "turn/ctl"))
		}
		if err := l.crosses("turn/a", "b"); err != nil {
			return err
		}
		if out := l.must("flows", "turn/s1"); !strings.Contains(out, cookie) {
			return fmt.Errorf("no entry has %s:\n%s", cookie, out)
		}
		return nil
	})
	l.must("exec", "turn/ctl", "--", "sh", "-c", "kill $(cat /tmp/pid)")
	eventually(l.t, 20*time.Second, func() error {
		if s := decode[report.OpenFlowStatus](l.t, l.must("flows", "status", "turn/s1", "-o", "json")); s.Controllers[0].Connected {
			return fmt.Errorf("%v is still connected", command)
		}
		return nil
	})
}
