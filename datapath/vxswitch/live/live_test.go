package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/internal/stall"
	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

// lab is a hosting switch whose ports are the interfaces of namespaces, named
// by letters; letter x has address 10.7.0.(x-'a'+1).
type lab struct {
	t  *testing.T
	h  *Host
	ns map[string]*os.File
}

func newLab(t *testing.T, config string) *lab {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("makes namespaces and TAP devices: needs root")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("no TAP devices here: ", err)
	}
	l := &lab{t: t, ns: map[string]*os.File{}}
	dir := t.TempDir()
	for _, name := range namesIn(config) {
		l.namespace(filepath.Join(dir, name), name)
	}
	c, err := Parse("test", []byte(strings.ReplaceAll(config, "NS/", dir+"/")))
	if err != nil {
		t.Fatal(err)
	}
	if l.h, err = New(c); err != nil {
		t.Fatal(err)
	}
	l.start()
	for name, ns := range l.ns {
		l.address(name, ns)
	}
	return l
}

// namesIn are the namespaces NS/x of a config.
func namesIn(config string) (names []string) {
	for _, part := range strings.Split(config, "NS/")[1:] {
		names = append(names, part[:1])
	}
	return names
}

func (l *lab) namespace(path, name string) {
	ns, err := kernel.NewNamespace(func() error { return kernel.Sysctl("ipv6/conf/default/disable_ipv6", "1") })
	if err != nil {
		l.t.Fatal(err)
	}
	if err := kernel.Bind(ns, path); err != nil {
		l.t.Fatal(err)
	}
	l.ns[name] = ns
	l.t.Cleanup(func() {
		ns.Close()
		if err := kernel.Unbind(path); err != nil {
			l.t.Error(err)
		}
	})
}

func (l *lab) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.h.Run(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
		l.h.Close()
	})
}

func addr(name string) netip.Addr { return netip.AddrFrom4([4]byte{10, 7, 0, name[0] - 'a' + 1}) }

func (l *lab) address(name string, ns *os.File) {
	conn, err := kernel.DialIn(ns)
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Close()
	link, err := conn.LinkByName("eth0")
	if err != nil {
		return // a port that is not there yet
	}
	if err := conn.AddAddress(kernel.Address{Index: link.Index, Local: addr(name), Reach: netip.PrefixFrom(addr(name), 24)}); err != nil {
		l.t.Fatal(err)
	}
}

// socket is a UDP socket in a namespace.
func (l *lab) socket(name string) *net.UDPConn {
	l.t.Helper()
	var c *net.UDPConn
	err := kernel.In(l.ns[name], func() (err error) {
		c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr(name), 7000)))
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { c.Close() })
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20) })
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// blast sends frames of 1514 bytes as fast as rate, until ctx is done.
func (l *lab) blast(ctx context.Context, from, to string, rate vnet.Rate) {
	c := l.socket(from)
	peer := netip.AddrPortFrom(addr(to), 7000)
	payload := make([]byte, 1472)
	gap := time.Duration(1514 * 8 * 1e9 / float64(rate))
	began := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		if ahead := time.Duration(n)*gap - time.Since(began); ahead > 0 {
			time.Sleep(ahead)
		}
		c.WriteToUDPAddrPort(payload, peer)
	}
}

// measure returns the rate in frames at which a socket of to receives, from
// what came after the first frames, which are the burst. A busy machine lets
// frames, and us, wait: frame k comes at k/rate and a delay that is not
// negative, so the rate is read from the smallest delays at both ends.
func (l *lab) measure(to string, skip, frames int, want vnet.Rate) vnet.Rate {
	l.t.Helper()
	c := l.socket(to)
	defer c.Close()
	buffer := make([]byte, 2048)
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	gap := time.Duration(1514 * 8 * 1e9 / float64(want))
	first, last, began := time.Hour, time.Hour, time.Now()
	for i := -skip; i <= frames; i++ {
		if _, _, err := c.ReadFromUDPAddrPort(buffer); err != nil {
			l.t.Fatalf("frame %d to %s: %v", i, to, err)
		}
		late := time.Since(began) - time.Duration(i)*gap
		if i >= 0 && i < frames/5 {
			first = min(first, late)
		} else if i >= frames-frames/5 {
			last = min(last, late)
		}
	}
	return vnet.Rate(float64(want) / (1 + float64(last-first)/(0.8*float64(frames)*float64(gap))))
}

// within measures until the rate is right to 1 %. A machine that is busy with
// other things takes the switch's or the sender's CPU away now and then, which
// must not fail the test; what takes rate away for good fails every attempt.
func (l *lab) within(to string, skip, frames int, want vnet.Rate) {
	l.t.Helper()
	stall.Try(l.t, func() (lacked float64, wrong error) {
		part := float64(l.measure(to, skip, frames, want)) / float64(want)
		wrong = fmt.Errorf("received %.4f of %.3f Mbit/s, want it to 1 %%", part, want.Mbps())
		switch {
		case part > 1.01:
			return stall.Above(part - 1), wrong
		case part < 0.99:
			return 1 - part, wrong
		}
		return 0, nil
	})
}

const pair = `
ports:
- {name: a, tap: eth0, namespace: NS/a}
- {name: b, tap: eth0, namespace: NS/b}
virtual_switches:
- name: one
  ports: [{port: a, in: %s, out: 1Gbit}, {port: b, in: 1Gbit, out: %s}]
`

// TestCapacityIsEnforced in both directions, to 1 %, from 1 Mbit/s up.
func TestCapacityIsEnforced(t *testing.T) {
	for _, c := range []struct {
		in, out string
		want    vnet.Rate
	}{{"1Mbit", "1Gbit", vnet.Mbit}, {"1Gbit", "1Mbit", vnet.Mbit}, {"20Mbit", "1Gbit", 20 * vnet.Mbit}, {"1Gbit", "20Mbit", 20 * vnet.Mbit}, {"1Gbit", "50Mbit", 50 * vnet.Mbit}} {
		t.Run(fmt.Sprintf("in %s out %s", c.in, c.out), func(t *testing.T) {
			l := newLab(t, fmt.Sprintf(pair, c.in, c.out))
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() { l.blast(ctx, "a", "b", c.want*2) })
			seconds := 1.5
			l.within("b", 10+int(c.want/1514/8/50), int(seconds*float64(c.want)/1514/8), c.want)
			cancel()
			wg.Wait()
		})
	}
}

const tenants = `
ports:
- {name: a, tap: eth0, namespace: NS/a}
- {name: b, tap: eth0, namespace: NS/b}
- {name: c, tap: eth0, namespace: NS/c}
- {name: d, tap: eth0, namespace: NS/d}
virtual_switches:
- name: victim
  ports: [{port: a, in: 20Mbit, out: 20Mbit}, {port: b, in: 20Mbit, out: 20Mbit}]
- name: neighbour
  ports: [{port: c, in: 50Mbit, out: 50Mbit}, {port: d, in: 30Mbit, out: 30Mbit}]
`

// TestNeighbourSaturates: two tenants on one hosting switch, one sends more
// than it leased and has a scheduler that means no good: the other's rate stays.
func TestNeighbourSaturates(t *testing.T) {
	for _, how := range []string{"honest", "returns nothing", "returns what is not there", "is slow", "panics"} {
		t.Run(how, func(t *testing.T) {
			l := newLab(t, tenants)
			if how != "honest" {
				l.install("neighbour", hostile(how))
			}
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() { l.blast(ctx, "c", "d", 80*vnet.Mbit) })
			wg.Go(func() { l.blast(ctx, "a", "b", 50*vnet.Mbit) })
			l.within("b", 300, 2500, 20*vnet.Mbit)
			cancel()
			wg.Wait()
		})
	}
}

// install gives a virtual switch a scheduler of the test's.
func (l *lab) install(name string, k vxswitch.SchedulerKind) {
	l.t.Helper()
	var err error
	l.h.Do(context.Background(), func() {
		id, _ := l.h.s.Find(name)
		v, _ := l.h.s.Virtual(id)
		for i := range v.Ports {
			v.Ports[i].Scheduler = k
		}
		err = l.h.s.Apply(l.h.now(), vxswitch.Set{Virtual: v})
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// hostile is a scheduler that breaks in its way.
type hostile string

func (k hostile) String() string { return string(k) }

func (k hostile) New(n int, e vxswitch.Entries) vxswitch.Scheduler {
	return &hostileScheduler{sched.RR{}.New(n, e), k}
}

type hostileScheduler struct {
	vxswitch.Scheduler
	how hostile
}

func (s *hostileScheduler) Pick(now vxswitch.Time) int {
	switch s.how {
	case "returns nothing":
		return vxswitch.Nobody
	case "returns what is not there":
		return 77
	case "is slow":
		for began := time.Now(); time.Since(began) < 300*time.Microsecond; {
		}
	case "panics":
		panic("no")
	}
	return s.Scheduler.Pick(now)
}

// TestTenantsDoNotMeet: a frame of one virtual switch never leaves by another's
// port, and what nobody claims goes nowhere.
func TestTenantsDoNotMeet(t *testing.T) {
	l := newLab(t, tenants)
	a, b, d := l.socket("a"), l.socket("b"), l.socket("d")
	got := make([]byte, 100)
	for i := range 20 { // the first ones ask for addresses
		a.WriteToUDPAddrPort([]byte("hello"), netip.AddrPortFrom(addr("b"), 7000))
		a.WriteToUDPAddrPort([]byte("hello"), netip.AddrPortFrom(addr("d"), 7000))
		b.SetReadDeadline(time.Now().Add(time.Second))
		if _, _, err := b.ReadFromUDPAddrPort(got); err != nil {
			t.Fatalf("frame %d to the own neighbour: %v", i, err)
		}
	}
	d.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, from, err := d.ReadFromUDPAddrPort(got); err == nil {
		t.Fatalf("%d bytes of %v came to another tenant", n, from)
	}
}

// TestSegmentsStayWhole: TCP passes in segments that are longer than frames,
// and they count as the frames they are.
func TestSegmentsStayWhole(t *testing.T) {
	l := newLab(t, fmt.Sprintf(pair, "1Gbit", "1Gbit"))
	const size = 8 << 20
	again, err := l.tcp("a", "b", size)
	if err != nil {
		t.Fatal(err)
	}
	st := l.status()
	frames, bytes := st.Ports[0].In.Packets, st.Ports[0].In.Bytes
	if frames*1514 > size*2/3 {
		t.Errorf("%d frames for %d bytes: segments were cut", frames, size)
	}
	wire := func(size uint64) uint64 { return size * 1514 / 1448 }
	if least := wire(size); bytes < least || bytes > wire(size+again)*101/100 {
		t.Errorf("%d bytes counted, want %d: what %d bytes are on a wire, of which %d were sent again", bytes, least, size, again)
	}
}

func (l *lab) status() (st Status) {
	l.h.Do(context.Background(), func() { st = l.h.Status() })
	return st
}

// tcp sends size bytes.
// tcp sends so many bytes from one station to another, and returns how many of
// them were sent again.
func (l *lab) tcp(from, to string, size int) (again uint64, err error) {
	var listener net.Listener
	err = kernel.In(l.ns[to], func() (err error) {
		listener, err = net.Listen("tcp4", netip.AddrPortFrom(addr(to), 7001).String())
		return err
	})
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	arrived, sent := make(chan struct{}), make(chan error, 1)
	go func() {
		sent <- kernel.In(l.ns[from], func() (err error) {
			again, err = send(netip.AddrPortFrom(addr(to), 7001).String(), size, arrived)
			return err
		})
	}()
	err = receive(listener, size)
	close(arrived)
	return again, errors.Join(err, <-sent)
}

func send(to string, size int, arrived <-chan struct{}) (again uint64, err error) {
	c, err := net.Dial("tcp4", to)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write(make([]byte, size)); err != nil {
		return 0, err
	}
	<-arrived
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var info *unix.TCPInfo
	var asked error
	err = raw.Control(func(fd uintptr) { info, asked = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err := errors.Join(err, asked); err != nil {
		return 0, err
	}
	return info.Bytes_retrans, nil
}

func receive(listener net.Listener, size int) error {
	c, err := listener.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	buffer := make([]byte, 1<<16)
	for got := 0; got < size; {
		n, err := c.Read(buffer)
		if got += n; err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", got, size, err)
		}
	}
	return nil
}

// TestChangeUnderTraffic adds and removes tenants and ports, and changes rates
// and buffers, beside a tenant that must not notice: nothing lost, nothing
// reordered.
func TestChangeUnderTraffic(t *testing.T) {
	l := newLab(t, tenants)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { l.count(ctx, "a", "b") })
	base := l.h.cfg
	for i := range 200 {
		next := *base
		next.Switches = append([]VirtualConfig(nil), base.Switches...)
		next.Switches[0].Buffer = size(100000 + i*1000)
		next.Switches[0].Scheduler = []string{"drr", "rr", "fcfs", "lqf", "sp"}[i%5]
		if i%2 == 0 {
			next.Switches, next.Ports = next.Switches[:1], next.Ports[:2]
		} else {
			next.Switches[1].Ports = append([]VirtualPortConfig(nil), base.Switches[1].Ports...)
			next.Switches[1].Ports[0].Out = rate(vnet.Mbit * vnet.Rate(1+i%40))
		}
		var err error
		l.h.Do(ctx, func() { err = l.h.Change(&next) })
		if err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
	}
	cancel()
	wg.Wait()
}

// count sends numbered frames to a receiver that must get all, in order.
func (l *lab) count(ctx context.Context, from, to string) {
	c, d := l.socket(from), l.socket(to)
	got := make([]byte, 100)
	for n := 0; ctx.Err() == nil; n++ {
		c.WriteToUDPAddrPort(fmt.Append(nil, n), netip.AddrPortFrom(addr(to), 7000))
		d.SetReadDeadline(time.Now().Add(3 * time.Second))
		k, _, err := d.ReadFromUDPAddrPort(got)
		if err != nil || string(got[:k]) != fmt.Sprint(n) {
			l.t.Errorf("frame %d: got %q, %v", n, got[:k], err)
			return
		}
	}
}

const planned = `
ports:
- {name: a, tap: eth0, namespace: NS/a, address: "02:00:00:00:00:0a"}
- {name: b, tap: eth0, namespace: NS/b, address: "02:00:00:00:00:0b"}
- {name: c, tap: eth0, namespace: NS/c, address: "02:00:00:00:00:0c"}
virtual_switches:
- name: one
  ports: [{port: a, in: 1Gbit, out: 1Gbit}, {port: b, in: 1Gbit, out: 1Gbit}, {port: c, in: 1Gbit, out: 1Gbit}]
  stations:
  - {port: a, mac: "02:00:00:00:00:0a", address: 10.7.0.1}
  - {port: b, mac: "02:00:00:00:00:0b", address: 10.7.0.2}
  - {port: c, mac: "02:00:00:00:00:0c", address: 10.7.0.3}
`

// Stations that are planned find each other and talk without a frame of theirs
// at a third port; one whose station is planned no more is found by everybody
// being asked.
func TestPlannedStationsMeetAlone(t *testing.T) {
	l := newLab(t, planned)
	at := func(i int) uint64 { return l.status().Switches[0].Ports[i].Out.Offered.Packets }
	c := l.socket("c")
	defer c.Close()
	l.stream("a", "b")
	if got := at(2); got != 0 || at(1) == 0 {
		t.Errorf("%d frames for c, %d for b", got, at(1))
	}
	next := *l.h.cfg
	next.Switches = slices.Clone(next.Switches)
	next.Switches[0].Stations = next.Switches[0].Stations[:1]
	l.change(&next)
	l.stream("c", "b")
	if at(0) == 0 {
		t.Error("nobody else was asked for b")
	}
}

// Stations that cannot be are refused by where they are.
func TestStationsAreChecked(t *testing.T) {
	for old, bad := range map[string]string{
		`{port: b, mac: "02:00:00:00:00:0b"`: `{port: x, mac: "02:00:00:00:00:0b"`,
		`address: 10.7.0.2}`:                 `address: 10.7.0}`,
		`{port: c, mac: "02:`:                `{port: c, mac: "03:`,
	} {
		_, err := Parse("f", []byte(strings.Replace(planned, old, bad, 1)))
		if err == nil || !strings.Contains(err.Error(), "stations[") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
