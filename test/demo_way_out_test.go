package test

import (
	"os/exec"
	"testing"

	product "sublet/lab"
)

// The demo lab has a way out: a request with internet: runs there, and reaches the
// namespace that stands for the Internet, which reaches nothing but the lab.
//
//	web (h1) ---- internet (h2) ==== Internet [198.51.100.1]
func TestDemoHasAWayOut(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up("network: shop\nnodes: [{name: web, host: h1}]\ninternet: {rate: 20Mbit, publish: ['8080:web:80']}\n")
	l.must("exec", "shop/web", "--", "ping", "-c", "1", "-w", "10", product.OutsideAddress.String())
	if r := runCommand(exec.Command("ip", "netns", "exec", labName(l.run)+".internet", "ip", "route", "show", "default")); r.code != 0 || r.out != "" {
		t.Errorf("from the outside of a lab a way leads on: %s%s", r.out, r.err)
	}
	l.must("down", "shop")
	l.settled()
}
