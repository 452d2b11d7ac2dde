package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
)

// realSwitch is K1 (section 4.1.4): what controllers answer an Open vSwitch, and the
// generator in its place, on the same processor, with as many packets waiting.
func (b *bench) realSwitch() error {
	s := &realSwitchOf{out: -1, in: -1}
	defer s.stop()
	if err := s.start(b); err != nil {
		return err
	}
	t := harness.Table{Head: []string{"packets waiting", "controller", "Open vSwitch, in a ms", "generator, in a ms", "generator over Open vSwitch", "processor time of controllers, us each: Open vSwitch", "generator"}}
	for _, n := range []int{1, 16, 64} {
		f := figures{}
		var failed error
		err := b.each(1, func(p *peer, a answer) {
			f.add(p.name, "generator", a.PerSecond/1000)
			f.add(p.name, "generator cpu", 1e6/a.PerCPU)
			r, err := s.load(p, n)
			if err != nil {
				failed = err
				return
			}
			f.add(p.name, "real", r.perSecond/1000)
			f.add(p.name, "real cpu", r.cpu*1e6)
		}, "--mode", "throughput", "--outstanding", strconv.Itoa(n), "--hosts", "0")
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		for _, p := range b.peers {
			t.Add(n, p.name, f.of(p.name, "real", "%.2f"), f.of(p.name, "generator", "%.2f"), f[p.name+" generator"].Over(f[p.name+" real"]).Format("%.2f"),
				f.of(p.name, "real cpu", "%.0f"), f.of(p.name, "generator cpu", "%.0f"))
		}
	}
	t.Print(os.Stdout)
	return nil
}

// realSwitchOf is an Open vSwitch between two stations in this namespace.
type realSwitchOf struct {
	ctl     string
	begun   []*exec.Cmd
	out, in int // sockets of the stations
	dir     string
}

// real is what a controller answered it.
type real struct {
	perSecond float64
	cpu       float64 // seconds of the controller's processor for each
}

func (s *realSwitchOf) start(b *bench) (err error) {
	if s.dir, err = os.MkdirTemp("", "ovs"); err != nil {
		return err
	}
	if s.ctl, _, err = bed.StartOVS(b.ctx, s.dir, s.daemon, harness.Commands); err != nil {
		return err
	}
	lines := []string{s.ctl + "add-br br0 -- set bridge br0 datapath_type=netdev protocols=OpenFlow13 fail_mode=secure other_config:disable-in-band=true"}
	for i, name := range []string{"sender", "receiver"} {
		lines = append(lines, fmt.Sprintf("ip link add %s type veth peer name p-%s", name, name), "ip link set "+name+" up", "ip link set p-"+name+" up",
			fmt.Sprintf("%sadd-port br0 p-%s -- set interface p-%s ofport_request=%d", s.ctl, name, name, i+1))
	}
	if err = harness.Commands(lines...); err != nil {
		return err
	}
	if s.out, err = open("sender"); err != nil {
		return err
	}
	s.in, err = open("receiver")
	return err
}

// daemon starts a program that ends with the bench.
func (s *realSwitchOf) daemon(argv ...string) (int, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := bed.StartDaemon(cmd, s.dir, argv[len(argv)-1]); err != nil {
		return 0, err
	}
	s.begun = append(s.begun, cmd)
	return cmd.Process.Pid, nil
}

func (s *realSwitchOf) stop() {
	for _, cmd := range s.begun {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for _, socket := range []int{s.out, s.in} {
		if socket >= 0 {
			unix.Close(socket)
		}
	}
	os.RemoveAll(s.dir)
}

// kind is an Ethernet type that nothing else here sends (IEEE 802, experimental).
const kind = 0x88b5

// open is a socket that sends and receives frames of kind at a device.
func open(device string) (socket int, err error) {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return -1, err
	}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, kind))
	if socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol)); err != nil {
		return -1, err
	}
	wait := unix.NsecToTimeval(int64(200 * time.Millisecond))
	if err = unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err == nil {
		err = unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Index})
	}
	return socket, err
}

// load gives the switch to a controller and has n packets of new senders wait at a time.
// Each reaches the other station only by the controller's answer, which has no entry.
func (s *realSwitchOf) load(p *peer, n int) (r real, err error) {
	if err = harness.Commands(s.ctl+"set-controller br0 tcp:"+p.address(), s.ctl+"-- set controller br0 max_backoff=1000"); err != nil {
		return r, err
	}
	defer func() {
		if failed := harness.Commands(s.ctl + "del-controller br0"); err == nil {
			err = failed
		}
	}()
	if err = s.controlled(); err != nil {
		return r, fmt.Errorf("%s: %w", p.name, err)
	}
	if err = s.during(300*time.Millisecond, n, new(int)); err != nil {
		return r, err
	}
	before, err := processor(p.pid())
	if err != nil {
		return r, err
	}
	answered, begin := 0, time.Now()
	if err = s.during(*window, n, &answered); err != nil {
		return r, err
	}
	took := time.Since(begin)
	after, err := processor(p.pid())
	return real{float64(answered) / took.Seconds(), (after - before).Seconds() / float64(max(answered, 1))}, err
}

// controlled returns when the switch asks the controller.
func (s *realSwitchOf) controlled() error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if err := s.send(); err != nil {
			return err
		}
		if s.arrives() {
			time.Sleep(100 * time.Millisecond)
			for s.arrives() {
			}
			return nil
		}
	}
	return errors.New("no frame passes Open vSwitch within 20 s")
}

// during keeps n packets waiting for a time, and counts those that come.
func (s *realSwitchOf) during(window time.Duration, n int, answered *int) error {
	waiting := 0
	for end := time.Now().Add(window); time.Now().Before(end); {
		for ; waiting < n; waiting++ {
			if err := s.send(); err != nil {
				return err
			}
		}
		if s.arrives() {
			waiting, *answered = waiting-1, *answered+1
		} else {
			waiting = 0 // they are lost
		}
	}
	return nil
}

// send sends a frame of a new station to one that is nowhere.
func (s *realSwitchOf) send() error {
	f := binary.BigEndian.AppendUint64(append(make([]byte, 0, 60), 2, 0, 0, 0, 0, 1), rand.Uint64())[:12]
	f[6] = f[6]&^1 | 2 // one station's, locally administered
	_, err := unix.Write(s.out, binary.BigEndian.AppendUint16(f, kind)[:60])
	return err
}

// arrives says whether a frame comes within 200 ms.
func (s *realSwitchOf) arrives() bool {
	received := make([]byte, 128)
	for {
		_, err := unix.Read(s.in, received)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
