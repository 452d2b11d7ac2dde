package test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// servicePath is three switches in a line. Stations are at the outer ones.
//
//	a - s1 - s2 - s3 - b      ctl programs all three
const servicePath = `
network: path
nodes: [{name: a}, {name: b}, {name: ctl}]
switches:
  - {name: s1, kind: openflow, controller: ["ptcp:6653"], datapath_id: 1}
  - {name: s2, kind: openflow, controller: ["ptcp:6653"], datapath_id: 2, datapath: kernel}
  - {name: s3, kind: openflow, controller: ["ptcp:6653"], datapath_id: 3, datapath: kernel}
links:
  - {name: c1, ends: [s1, ctl], control: true}
  - {name: c2, ends: [s2, ctl], control: true}
  - {name: c3, ends: [s3, ctl], control: true}
  - {ends: [a, s1], rate: 10Mbit}
  - {name: l12, ends: [s1, s2], rate: 10Mbit}
  - {name: l23, ends: [s2, s3], rate: 10Mbit}
  - {ends: [s3, b], rate: 10Mbit}
`

// The switches of a lease put frames onto a service path, steer them by its identifier
// and index, and take them off; what is on no path does not pass.
func TestOpenFlowServicePath(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("ovs-ofctl is not installed")
	}
	l := newLab(t, "demo")
	l.up(servicePath)
	tell := func(s, verb string, args ...string) (out string) {
		t.Helper()
		eventually(t, 20*time.Second, func() error {
			r := l.sublet(append([]string{"exec", "path/ctl", "--", "ovs-ofctl", "-O", "OpenFlow13", "--timeout=10", verb, "tcp:" + s + ".control:6653"}, args...)...)
			if out = r.out; r.code != 0 {
				return fmt.Errorf("%s of %s: %s", verb, s, r.err)
			}
			return nil
		})
		return out
	}
	push := func(path, to int) string {
		return fmt.Sprintf("encap(nsh(md_type=2)),set_field:%d->nsh_spi,set_field:255->nsh_si,encap(ethernet),output:%d", path, to)
	}
	tell("s1", "add-flow", "in_port=1,actions="+push(0x11, 2))
	tell("s1", "add-flow", "in_port=2,dl_type=0x894f,nsh_spi=0x22,nsh_si=254,actions=decap(),decap(),output:1")
	tell("s3", "add-flow", "in_port=2,actions="+push(0x22, 1))
	tell("s3", "add-flow", "in_port=1,dl_type=0x894f,nsh_spi=0x11,nsh_si=254,actions=decap(),decap(),output:2")
	if err := l.crosses("path/a", "b"); err == nil {
		t.Error("frames pass a switch that has no entry for their path")
	}
	tell("s2", "add-flow", "in_port=1,dl_type=0x894f,nsh_spi=0x11,nsh_si=255,actions=dec_nsh_ttl,set_field:254->nsh_si,output:2")
	tell("s2", "add-flow", "in_port=2,dl_type=0x894f,nsh_spi=0x22,nsh_si=255,actions=dec_nsh_ttl,set_field:254->nsh_si,output:1")
	eventually(t, 20*time.Second, func() error { return l.crosses("path/a", "b") })
	out := l.must("flows", "path/s2")
	for _, want := range []string{"in_port=1,dl_type=0x894f,nsh_spi=0x11,nsh_si=255 actions=dec_nsh_ttl,set_field:254->nsh_si,output:2", "nsh_spi=0x22"} {
		if !strings.Contains(out, want) {
			t.Errorf("flows of s2 lack %s:\n%s", want, out)
		}
	}
	if out := l.must("flows", "trace", "path/s2", "in_port=1,dl_type=0x894f,nsh_spi=0x11,nsh_si=255"); !strings.Contains(out, "leaves by port 2") || strings.Contains(out, "done by the switch's process") {
		t.Errorf("trace:\n%s", out)
	}
}
