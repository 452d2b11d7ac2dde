package test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/datapath/vxswitch/live"
	"sublet/report"
	"sublet/vnet"
)

// red has a port of 20 Mbit/s on a link of 100.
//
//	h1:  a -100M- s -20M out- b
const red = `network: red
tenant: red
nodes: [{name: a, host: h1}, {name: b, host: h1}]
switches: [{name: s, kind: vxswitch, host: h1, ports: {b-s: {out: 20Mbit}}}]
links: [{ends: [a, s], rate: 100Mbit}, {ends: [b, s], rate: 100Mbit}]
`

// blue has two switches on two hosts.
//
//	h1:  a -50M- s -50M- b        h2
//	             |
//	             +------50M------ s2 -50M- c
const blue = `network: blue
tenant: blue
nodes: [{name: a, host: h1}, {name: b, host: h1}, {name: c, host: h2}]
switches:
  - {name: s, kind: vxswitch, host: h1, scheduler: lqf, buffer: 128KiB, manager: codel}
  - {name: s2, kind: vxswitch, host: h2}
links: [{ends: [a, s], rate: 50Mbit}, {ends: [b, s], rate: 50Mbit}, {ends: [s, s2], rate: 50Mbit}, {ends: [s2, c], rate: 50Mbit}]
`

// hosting is the process that carries a host's switches of kind vxswitch.
func (s *supervisor) hosting(host string) int {
	s.t.Helper()
	socket := filepath.Join(s.run, "vxswitch", host, "socket")
	for _, file := range matches("/proc/[0-9]*/cmdline") {
		words, _ := os.ReadFile(file)
		if argv := strings.Split(string(words), "\x00"); len(argv) > 2 && argv[1] == "vxswitch" && strings.Contains(string(words), socket) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

// Two tenants share one hosting switch: each has their rates and counters, and
// what one changes or releases does not touch the other's packets. The process
// survives its agent, comes back after its own death, and goes with the last
// lease.
func TestTenantsShareAHostingSwitch(t *testing.T) {
	s := newSupervisor(t, "demo")
	requests := []vnet.Request{parseRequest(t, red), parseRequest(t, blue)}
	s.settled()
	for _, r := range requests {
		s.admit(r)
		s.ready(idOf(r))
	}
	s.settled()
	pid := s.hosting("h1")
	id := idOf(requests[1])
	a, b, c := node{"h1", id, "a"}, node{"h1", id, "b"}, node{"h2", id, "c"}
	flows := []*flow{s.flow(a, b), s.flow(c, a)}
	s.holds(node{"h1", idOf(requests[0]), "a"}, node{"h1", idOf(requests[0]), "b"}, "red.red.s.vxswitch", 20*vnet.Mbit)
	s.counted("h1", "red.red.s.vxswitch", "blue.blue.s.vxswitch")
	s.kill(agentOf("h1"))
	time.Sleep(time.Second)
	s.start(agentOf("h1"))
	s.settled()
	s.must("down", "red/red")
	s.gone(idOf(requests[0]))
	s.settled()
	if now := s.hosting("h1"); now != pid || pid == 0 {
		t.Errorf("the hosting switch was process %d and is %d", pid, now)
	}
	endLossless(flows...)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, 30*time.Second, func() error {
		if now := s.hosting("h1"); now == pid || now == 0 {
			return fmt.Errorf("process %d of a killed hosting switch", now)
		}
		return nil
	})
	s.settled()
	again := s.flow(a, c)
	time.Sleep(200 * time.Millisecond)
	endLossless(again)
	s.must("down", "blue/blue")
	s.gone(id)
	s.settled()
	if now := s.hosting("h1"); now != 0 {
		t.Errorf("process %d hosts nobody", now)
	}
}

// holds floods the port at a node, and says that no more than its rate passes.
func (s *supervisor) holds(from, to node, name string, rate vnet.Rate) {
	s.t.Helper()
	var c *net.UDPConn
	err := inNamespace(s.namespaceOf(from), func() (err error) {
		address := netip.MustParseAddr(s.addressOf(to.host, to.id, to.name))
		c, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 9)))
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for payload := make([]byte, 1200); ; {
			select {
			case <-stop:
				return
			default:
				_, _ = c.Write(payload) // refusals come back
			}
		}
	}()
	began, before := time.Now(), s.delivered(to.host, name)
	time.Sleep(2 * time.Second)
	sent, took := s.delivered(to.host, name)-before, time.Since(began)
	close(stop)
	<-done
	c.Close()
	const slack = 50 * time.Millisecond // a port's burst, and the refusals that come back
	carries := func(d time.Duration) vnet.Bytes { return vnet.Bytes(float64(rate) / 8 * d.Seconds()) }
	if most := carries(took+slack) * 101 / 100; sent > most || sent < carries(took)/3 {
		s.t.Errorf("a port of %s carries %s in %s", rate, sent, took)
	}
}

// delivered is what a switch has sent by all its ports.
func (s *supervisor) delivered(host, name string) vnet.Bytes {
	s.t.Helper()
	for _, v := range decode[live.Status](s.t, s.must("vxswitch", "status", "--host", host, "-o", "json")).Switches {
		if v.Name == name {
			return vnet.Bytes(v.Delivered.Bytes)
		}
	}
	return 0
}

// counted says that a host's hosting switch has counted frames of each of some
// switches, in all forms.
func (s *supervisor) counted(host string, names ...string) {
	s.t.Helper()
	st := decode[live.Status](s.t, s.must("vxswitch", "status", "--host", host, "-o", "json"))
	metrics := s.must("vxswitch", "status", "--host", host, "--prometheus")
	type hostPaths struct{ Paths []report.Forwarding }
	paths := s.must("plan", host, "-o", "json")
	for _, name := range names {
		var delivered uint64
		for _, v := range st.Switches {
			if v.Name == name {
				delivered = v.Delivered.Packets
			}
		}
		var told uint64
		for _, p := range decode[[]hostPaths](s.t, paths)[0].Paths {
			if strings.HasPrefix(p.Of, name+"/") {
				told += p.Packets
			}
		}
		if delivered == 0 || told < delivered || !strings.Contains(metrics, `sublet_vxswitch_delivered_frames_total{switch="`+name+`"`) {
			s.t.Errorf("%s has delivered %d frames, then %d by plan; in\n%s", name, delivered, told, metrics)
		}
	}
	if st.CPU == 0 {
		s.t.Error("it has used no processor time")
	}
}

// The shipped example, as a user leases it: it is admitted, its promises hold,
// and buffers beyond the host's memory are refused with an offer or a reason.
func TestCrosspointExample(t *testing.T) {
	l := newLab(t, "demo")
	l.must("up", "../examples/crosspoint.yaml")
	l.settled()
	for _, from := range []string{"web", "backup"} {
		l.must("exec", "shop/"+from, "--", "ping", "-c2", "-i0.2", "-W2", "server")
	}
	text, err := os.ReadFile("../examples/crosspoint.yaml")
	if err != nil {
		t.Fatal(err)
	}
	big := strings.NewReplacer("network: shop", "network: large", "buffer: 256KiB", "buffer: 1GiB").Replace(string(text))
	if r := l.sublet("up", l.file("large.yaml", big)); r.code != 3 || !strings.Contains(r.err+r.out, "memory") {
		t.Errorf("buffers of 6 GiB on hosts of less: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	l.must("down", "shop")
}

// sliced is a switch whose settings are changed while it carries frames.
//
//	h1:  a - s - b
func sliced(settings string) string {
	return `network: cut
tenant: cut
nodes: [{name: a, host: h1}, {name: b, host: h1}]
switches: [{name: s, kind: vxswitch, host: h1` + settings + `}]
links: [{ends: [a, s], rate: 50Mbit}, {ends: [b, s], rate: 50Mbit}]
`
}

// A tenant chooses while a switch runs how it forwards and which frames are a slice's,
// and loses no packet of what the choice is not about.
func TestSwitchIsCutWhileItRuns(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	r := parseRequest(t, sliced(""))
	s.settled()
	s.admit(r)
	s.ready(idOf(r))
	s.settled()
	flows := s.flow(node{"h1", idOf(r), "a"}, node{"h1", idOf(r), "b"})
	apply := func(settings string) {
		t.Helper()
		s.must("apply", s.file("cut.yaml", sliced(settings)))
		s.settled()
	}
	pings := func(tos string) bool {
		return s.sublet("exec", "cut/cut/a", "--", "ping", "-c2", "-i0.2", "-W2", "-Q", tos, "b").code == 0
	}
	const af11, ef = "0x28", "0xb8" // DSCP 10 and 46
	if !pings(af11) || !pings(ef) {
		t.Error("a switch that learns lets something out")
	}
	apply(", lookup: classifier, table: [{dscp: 10}, {dscp: 46, to: [b-s, a-s]}]")
	if pings(af11) || !pings(ef) || !pings("0") {
		t.Error("a classifier does not drop what its table drops, or drops more")
	}
	const voice = "cut.cut.s.vxswitch/voice"
	apply(", lend: 50%, slices: [{name: voice, claim: {dscp: 46}, share: 20%, lend: 10%, lookup: static}]")
	if before := s.delivered("h1", voice); !pings(ef) || s.delivered("h1", voice) <= before {
		t.Errorf("a slice has delivered %s, and %s after it was sent something", before, s.delivered("h1", voice))
	}
	if before := s.delivered("h1", voice); !pings("0") || s.delivered("h1", voice) != before {
		t.Error("frames that a slice does not claim are its own")
	}
	s.counted("h1", "cut.cut.s.vxswitch")
	apply(", lookup: static")
	if !pings(ef) || s.delivered("h1", voice) != 0 {
		t.Error("a slice that was taken away is still there, or a static switch does not know who is planned")
	}
	endLossless(flows)
	s.must("down", "cut/cut")
	s.gone(idOf(r))
	s.settled()
}
