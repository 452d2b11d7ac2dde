package test

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	product "sublet/lab"
)

// station is a device at a port of a switch of Open vSwitch.
type station struct {
	fd   int
	to   unix.SockaddrLinklayer
	addr byte
}

const stationType = 0x88b5 // IEEE 802, local experiments

// stations makes pairs of devices in a switch's namespace: the one for its port, and the
// other one for frames of a test.
func (l *lab) stations(host string, ports ...string) (list []*station) {
	l.t.Helper()
	for i, port := range ports {
		within(l.t, l.host(host), func() error {
			if out, err := exec.Command("ip", "link", "add", port, "up", "type", "veth", "peer", "name", port+"-far").CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			if out, err := exec.Command("ip", "link", "set", port+"-far", "up").CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			device, err := net.InterfaceByName(port + "-far")
			if err != nil {
				return err
			}
			s := &station{addr: byte(i + 1)}
			kind := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, stationType))
			s.to = unix.SockaddrLinklayer{Protocol: kind, Ifindex: device.Index}
			if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(kind)); err != nil {
				return err
			}
			l.t.Cleanup(func() { unix.Close(s.fd) })
			list = append(list, s)
			return unix.Bind(s.fd, &s.to)
		})
	}
	return list
}

// send sends a numbered frame to another station.
func (s *station) send(to *station, number uint32) error {
	frame := make([]byte, 60)
	copy(frame, []byte{2, 0x77, 0, 0, 0, to.addr, 2, 0x77, 0, 0, 0, s.addr, stationType >> 8, stationType & 0xff})
	binary.BigEndian.PutUint32(frame[14:], number)
	return unix.Sendto(s.fd, frame, 0, &s.to)
}

// hears are the numbers of frames from another station that have come.
func (s *station) hears(from *station, into map[uint32]bool) {
	frame := make([]byte, 2048)
	for {
		n, at, err := unix.Recvfrom(s.fd, frame, 0)
		if err != nil {
			return
		}
		if ll, is := at.(*unix.SockaddrLinklayer); n >= 60 && is && ll.Pkttype != unix.PACKET_OUTGOING && frame[5] == s.addr && frame[11] == from.addr {
			into[binary.BigEndian.Uint32(frame[14:])] = true
		}
	}
}

// reaches wants a frame to come to another station.
func (s *station) reaches(to *station, number uint32) error {
	if err := s.send(to, number); err != nil {
		return err
	}
	heard := map[uint32]bool{}
	for end := time.Now().Add(time.Second); time.Now().Before(end) && !heard[number]; time.Sleep(5 * time.Millisecond) {
		to.hears(s, heard)
	}
	if !heard[number] {
		return fmt.Errorf("a frame of station %d does not come to station %d", s.addr, to.addr)
	}
	return nil
}

// streams sends frames to another station until end, which says how many were sent, and
// how many came.
func (s *station) streams(to *station) (end func() (sent, heard int)) {
	done, ended := make(chan struct{}), make(chan struct{})
	got := map[uint32]bool{}
	n := uint32(1 << 16)
	go func() {
		defer close(ended)
		for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
			select {
			case <-done:
				tick.Stop()
				return
			default:
			}
			if s.send(to, n) == nil {
				n++
			}
			to.hears(s, got)
		}
	}()
	return sync.OnceValues(func() (int, int) {
		close(done)
		<-ended
		sent := int(n - 1<<16)
		for wait := time.Now().Add(5 * time.Second); len(got) < sent && time.Now().Before(wait); time.Sleep(10 * time.Millisecond) {
			to.hears(s, got)
		}
		return sent, len(got)
	})
}

// beside is Open vSwitch between two hosts, which is shared by a tenant's controller and
// the server.
//
//	h1 - 1 [s1: Open vSwitch] 2 - h2       s1 - sublet openflow slice - the server (the default slice)
//	         3|          4|                                            - a tenant's controller (ports 3 and 4)
//	        station     station
type beside struct {
	*lab
	s1             *openVSwitch
	tenant, server string // addresses of controllers
	file, keep     string
	a, b           *station
	proxy          *exec.Cmd
}

func newBeside(t *testing.T) *beside {
	t.Helper()
	needOpenVSwitch(t)
	control := listenForSwitch(t)
	x := &beside{server: freePort(t), tenant: freePort(t)}
	x.lab = newLab(t, fmt.Sprintf(`hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
switches:
  - {name: s1, openflow: {listen: "%s", datapath_id: "a1"}, ports: {h1-s1: 1, s1-h2: 2}, entries: 50, meters: 50}
links:
  - {ends: [h1, s1], capacity: 50Mbit}
  - {ends: [s1, h2], capacity: 50Mbit}
`, x.server))
	list := x.stations("s1", "p3", "p4")
	x.a, x.b = list[0], list[1]
	x.s1 = x.openVSwitch("s1", "00000000000000a1", control, "to-h1", "to-h2", "p3", "p4")
	x.s1.others = 1 // of the tenant's rate
	x.direct("h1", "to-s1", product.PortAddress(1, 1))
	x.direct("h2", "to-s1", product.PortAddress(0, 0))
	x.keep = filepath.Join(filepath.Dir(x.run), "slices")
	x.file = x.lab.file("slices.yaml", fmt.Sprintf(`switch: tcp:%s
slices:
  - {name: tenant, controller: ["tcp:%s"], ports: [3, 4], rate: 1Mbit}
  - {name: rest, controller: ["tcp:%s"], default: true}
`, control.Addr(), x.tenant, x.server))
	x.begin("controller", "--listen", x.tenant, "--app", "learning")
	x.proxy = x.begin("openflow", "slice", x.file, "--keep", x.keep)
	return x
}

// begin starts the program beside the lab, until the test ends.
func (x *beside) begin(args ...string) *exec.Cmd {
	x.t.Helper()
	log, err := os.Create(filepath.Join(filepath.Dir(x.run), args[0]+".log"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// heldTo wants a burst of frames, of which there are more than a rate lets through, held.
func (x *beside) heldTo(kbps float64) {
	x.t.Helper()
	const size = 60
	burst := 120 / 8e-3 / size // frames of 120 kbit
	got := map[uint32]bool{}
	began := time.Now()
	sent := int(20 * burst)
	for n := range sent {
		if err := x.a.send(x.b, uint32(n)); err != nil {
			x.t.Fatal(err)
		}
		x.b.hears(x.a, got)
	}
	eventually(x.t, 20*time.Second, func() error { // those on the way
		before := len(got)
		time.Sleep(200 * time.Millisecond)
		if x.b.hears(x.a, got); len(got) != before {
			return fmt.Errorf("%d frames came, and more come", len(got))
		}
		return nil
	})
	most := burst + time.Since(began).Seconds()*kbps/8e-3/size
	x.t.Logf("%d of %d frames came, of which the rate lets %.0f through", len(got), sent, most)
	if float64(len(got)) < burst/2 || float64(len(got)) > 1.1*most && most < float64(sent) {
		x.t.Errorf("%d frames of the slice came, of which its rate lets %.0f through", len(got), most)
	}
}

// A tenant's controller and the server share one Open vSwitch: a lease over it runs and
// keeps its entries, the tenant's stations reach each other by entries of the tenant's.
// What shares the switch is killed, and the switch, while both carry traffic: no frame is
// lost without the program between, and no entry.
func TestSlicesBesideTheServer(t *testing.T) {
	t.Parallel()
	x := newBeside(t)
	x.up(fmt.Sprintf(overSwitches, "first"))
	if err := x.s1.has(2); err != nil {
		t.Fatal(err) // it runs only when they are there
	}
	number := uint32(0)
	learned := func() error {
		number += 2
		if err := x.b.send(x.a, number); err != nil {
			return err
		}
		return x.a.reaches(x.b, number+1)
	}
	eventually(t, 30*time.Second, learned)
	eventually(t, 30*time.Second, func() error { return x.crosses("first/a", "b") })
	eventually(t, 30*time.Second, func() error { // by an entry, not by way of the controller
		err := learned()
		if flows := x.s1.ofctl("dump-flows"); !strings.Contains(flows, "dl_dst=02:77:00:00:00:02 actions=output:4") {
			return fmt.Errorf("the tenant's controller has made no entry (%v):\n%s", err, flows)
		}
		return err
	})

	x.heldTo(1000)
	before := x.s1.cookies()
	end := x.a.streams(x.b)
	time.Sleep(300 * time.Millisecond) // of traffic before
	_ = x.proxy.Process.Kill()
	_ = x.proxy.Wait()
	if err := x.crosses("first/a", "b"); err != nil {
		t.Error(err)
	}
	x.proxy = x.begin("openflow", "slice", x.file, "--keep", x.keep)
	eventually(t, 30*time.Second, func() error {
		if !strings.Contains(x.must("leases", "first"), "running") {
			return fmt.Errorf("%s", x.must("leases", "first"))
		}
		return nil
	})
	if sent, heard := end(); heard != sent || sent < 60 {
		t.Errorf("%d frames of %d came while what shares the switch was killed", heard, sent)
	}
	if after := x.s1.cookies(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("entries were\n%v\nand are\n%v", before, after)
	}

	x.s1.restart()
	eventually(t, time.Minute, func() error { return x.s1.has(2) })
	eventually(t, time.Minute, func() error { return x.crosses("first/a", "b") })
	eventually(t, time.Minute, learned)
	x.must("down", "first")
	eventually(t, time.Minute, func() error { return x.s1.has(0) })
	if err := learned(); err != nil {
		t.Error(err)
	}
}
