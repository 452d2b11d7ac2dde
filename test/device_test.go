package test

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	product "sublet/lab"
)

// A lab whose host h2 offers an interface.
//
//	h1 --1G-- h2 [eth5] ==veth== [h2-eth5 10.60.0.1] outside
const deviceSubstrate = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
links:
  - {ends: [h1, h2], capacity: 1Gbit}
devices:
  - {name: eth5, host: h2, interface: eth5}
`

const deviceRequest = `network: NAME
nodes:
  - {name: a}
  - {name: b, device: eth5}
links:
  - {ends: [a, b], rate: 10Mbit}
`

// A node has the device for itself, with or without the agent; the next lease gets
// it as the host had it, also when it was released while the agent was down.
func TestDevice(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, deviceSubstrate)
	outside := product.OutsideNamespace(labName(s.run))
	addressed(t, outside, "h2-eth5", "10.60.0.1/24")
	greets(t, outside, 80)
	before := s.hostInterface()
	request := func(name string) string { return strings.Replace(deviceRequest, "NAME", name, 1) }
	s.up(request("first"))
	s.settled()
	s.reachesTester("first")
	r := s.sublet("up", s.file("refused.yaml", request("second")))
	if r.code != 3 || !strings.Contains(r.out+r.err, "device eth5 is taken in this window") {
		t.Errorf("a second lease: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if out := s.must("calendar", "device:eth5"); !strings.Contains(out, "device:eth5") || !strings.Contains(out, "taken") {
		t.Errorf("calendar: %s", out)
	}
	s.must("exec", "first/b", "--", "ip", "link", "set", "eth5", "address", "02:00:00:00:00:09")

	s.kill(agentOf("h2"))
	within(t, filepath.Join(s.run, "netns", "h2", "root.first.b"), func() error {
		c, err := net.DialTimeout("tcp4", "10.60.0.1:80", 5*time.Second)
		if err != nil {
			return fmt.Errorf("the device is gone with the agent: %w", err)
		}
		return c.Close()
	})
	s.must("down", "--no-wait", "first")
	s.start(agentOf("h2"))
	s.settled()
	eventually(t, 20*time.Second, func() error {
		if now := s.hostInterface(); now != before {
			return errors.New("the host has its interface as " + now + ", and had " + before)
		}
		if left := matches(filepath.Join(s.run, "device", "h2", "*")); len(left) > 0 {
			return errors.New("left: " + strings.Join(left, " "))
		}
		return nil
	})
	s.up(request("second"))
	s.settled()
	s.reachesTester("second")
}

// reachesTester sees whether node b of a lease has the device.
func (s *supervisor) reachesTester(lease string) {
	s.t.Helper()
	s.must("exec", lease+"/b", "--", "ip", "address", "add", "10.60.0.2/24", "dev", "eth5")
	if _, ok := s.heard(lease+"/b", "10.60.0.1", 80); !ok {
		s.t.Errorf("%s/b does not reach what is at the device", lease)
	}
	if _, ok := s.heard(lease+"/a", "10.60.0.1", 80); ok {
		s.t.Errorf("%s/a reaches it, too", lease)
	}
}

// hostInterface is what the host says of the interface.
func (s *supervisor) hostInterface() (text string) {
	s.t.Helper()
	within(s.t, s.host("h2"), func() error {
		out, err := exec.Command("ip", "-o", "link", "show", "dev", "eth5").Output()
		text = string(out)
		return err
	})
	return text
}
