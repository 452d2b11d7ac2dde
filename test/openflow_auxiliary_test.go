package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/report"
)

// auxiliaryNetwork is a learning switch with three auxiliary connections to its
// controller, which is at a port of it or at a control link.
func auxiliaryNetwork(name, transport, control string) string {
	tls := ""
	if transport == "ssl" {
		tls = ", tls: {key: {from: s1.key}, certificate: {from: s1.pem}, ca: {from: ca.pem}}"
	}
	return fmt.Sprintf(`network: %s
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
  - {name: ctl, host: h2, memory: 768MiB, files: [{path: /tls/key, from: ctl.key}, {path: /tls/cert, from: ctl.pem}, {path: /tls/ca, from: ca.pem}]}
switches: [{name: s1, host: h1, kind: openflow, controller: ["%s:ctl:6653"], auxiliary: 3%s}]
links:
  - {ends: [a, s1], rate: 10Mbit}
  - {ends: [s1, b], rate: 10Mbit}
  - {ends: [s1, ctl]%s}
`, name, transport, tls, control)
}

// A leased switch makes auxiliary connections to its controller, an application of
// os-ken, over TCP and TLS, in band and out of band; all of them come again when its
// process was killed.
//
//	a - s1 - b,  s1 - ctl
func TestOpenFlowAuxiliary(t *testing.T) {
	t.Parallel()
	python := os.Getenv("OSKEN_PYTHON")
	if _, err := os.Stat(python); err != nil {
		t.Skip("os-ken is not installed: tools/install-deps installs it, and make names it by OSKEN_PYTHON")
	}
	l := newLab(t, "demo")
	dir := filepath.Dir(l.run)
	ca, key := signedBy(t, dir, "ca", nil, nil)
	signedBy(t, dir, "ctl", ca, key)
	signedBy(t, dir, "s1", ca, key)
	for _, x := range []struct{ name, transport, control string }{
		{"tcp-out", "tcp", ", control: true"}, {"tcp-in", "tcp", ""}, {"tls-out", "ssl", ", control: true"}, {"tls-in", "ssl", ""},
	} {
		l.up(auxiliaryNetwork(x.name, x.transport, x.control))
		l.must("cp", oskenApplication, x.name+"/ctl:/tmp/learning.py")
		l.must("cp", "testdata/osken_auxiliary.py", x.name+"/ctl:/tmp/auxiliary.py")
		command := []string{"exec", "-d", x.name + "/ctl", "--", python, "/tmp/auxiliary.py"}
		if x.transport == "ssl" {
			command = append(command, "/tls/key", "/tls/cert", "/tls/ca")
		}
		l.must(command...)
		l.hasAuxiliary(x.name)
		if err := unix.Kill(l.openFlowProcess("h1"), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.hasAuxiliary(x.name)
		l.must("down", x.name)
	}
}

// hasAuxiliary waits until the switch of a network of auxiliaryNetwork has made all its
// connections, its controller has greeted each, and stations reach each other.
func (l *lab) hasAuxiliary(network string) {
	l.t.Helper()
	eventually(l.t, 60*time.Second, func() error {
		r := l.sublet("flows", "status", network+"/s1", "-o", "json")
		if r.code != 0 {
			return fmt.Errorf("%s%s", r.out, r.err)
		}
		log := l.must("logs", network+"/ctl")
		if c := decode[report.OpenFlowStatus](l.t, r.out).Controllers; len(c) != 1 || !c[0].Connected || c[0].Auxiliary != 3 {
			return fmt.Errorf("connections of %s: %+v\n%s", network, c, log)
		}
		for number := range 4 {
			if !strings.Contains(log, fmt.Sprintf("connection %d\n", number)) {
				return fmt.Errorf("the controller of %s has not greeted connection %d:\n%s", network, number, log)
			}
		}
		return l.crosses(network+"/a", "b")
	})
}
