package test

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"sublet/internal/stall"
	"sublet/vnet"
)

// slowBackbone is a substrate whose capacity a TCP stream fills with little work.
//
//	h1 ---200M--- h2
const slowBackbone = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
links:
  - {name: backbone, ends: [h1, h2], capacity: 200Mbit}
`

// stream is a TCP connection between nodes that carries what it can.
type stream struct {
	t        *testing.T
	name     string
	from, to net.Conn

	mu      sync.Mutex
	samples []sample
}

// sample is how many bytes had arrived at a time.
type sample struct {
	at    time.Time
	bytes int64
}

// streamSample is how often the counter is read.
const streamSample = 20 * time.Millisecond

func (s *supervisor) stream(from, to node) *stream {
	s.t.Helper()
	f := &stream{t: s.t, name: from.name + " to " + to.name}
	address := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(s.addressOf(to.host, to.id, to.name)), 0))
	var listener net.Listener
	err := inNamespace(s.namespaceOf(to), func() (err error) {
		listener, err = net.ListenTCP("tcp", address)
		return err
	})
	if err == nil {
		defer listener.Close()
		err = inNamespace(s.namespaceOf(from), func() (err error) {
			f.from, err = net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr))
			return err
		})
	}
	if err == nil {
		f.to, err = listener.Accept()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { f.from.Close(); f.to.Close() })
	go f.send()
	go f.receive()
	return f
}

func (f *stream) send() {
	buffer := make([]byte, 64<<10)
	for {
		if _, err := f.from.Write(buffer); err != nil {
			return
		}
	}
}

func (f *stream) receive() {
	buffer := make([]byte, 64<<10)
	var bytes int64
	for {
		n, err := f.to.Read(buffer)
		bytes += int64(n)
		f.note(bytes)
		if err != nil {
			return
		}
	}
}

func (f *stream) note(bytes int64) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.samples); n > 1 && f.samples[n-1].at.Sub(f.samples[n-2].at) < streamSample {
		f.samples[n-1] = sample{now, bytes}
		return
	}
	f.samples = append(f.samples, sample{now, bytes})
}

// rate is the frames' rate over a span, from the payload that arrived.
func (f *stream) rate(from, to time.Time) vnet.Rate {
	const payload, frame = 1450 - 20 - 20 - 12, 1450 + 14 // a tunnel's MTU, TCP with time stamps
	bits := float64(f.at(to)-f.at(from)) * 8 / to.Sub(from).Seconds()
	return vnet.Rate(bits * frame / payload)
}

// at interpolates the counter.
func (f *stream) at(t time.Time) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := 1; i < len(f.samples); i++ {
		if a, b := f.samples[i-1], f.samples[i]; !b.at.Before(t) {
			part := float64(t.Sub(a.at)) / float64(b.at.Sub(a.at))
			return a.bytes + int64(part*float64(b.bytes-a.bytes))
		}
	}
	return f.samples[len(f.samples)-1].bytes
}

// near says that a rate is within a tenth of another.
func near(a, b vnet.Rate) bool { return math.Abs(float64(a)/float64(b)-1) < 0.1 }

// changes checks that the rate reaches a new value in less than a second after
// a change, and stays there; in between it never stops.
func (f *stream) changes(changed time.Time, want vnet.Rate) {
	f.t.Helper()
	const window, bound = 200 * time.Millisecond, time.Second
	watch := stall.Start()
	time.Sleep(time.Until(changed.Add(2*bound + window)))
	report := watch.Stop()
	var line string
	reached := time.Duration(-1)
	for after := time.Duration(0); after < 2*bound; after += window / 2 {
		rate := f.rate(changed.Add(after), changed.Add(after+window))
		line += fmt.Sprintf(" %.0f", float64(rate)/1e6)
		if reached < 0 && near(rate, want) {
			reached = after
		}
		if rate == 0 && report.Lost() < window {
			f.t.Errorf("%s: nothing arrived from %s to %s after the change", f.name, after, after+window)
		}
	}
	settled := f.rate(changed.Add(bound), changed.Add(2*bound))
	if reached >= 0 && reached < bound && near(settled, want) {
		f.t.Logf("%s: %s reached %s after the change", f.name, want, reached)
		return
	}
	what := fmt.Sprintf("%s: %s reached after %s, then %s; Mbit/s every %s:%s; %s", f.name, want, reached, settled, window/2, line, report)
	if lacked := max(1-float64(settled)/float64(want), 0.1); settled <= want && report.Explains(lacked) {
		f.t.Skip("not measured: " + what)
	}
	f.t.Error(what)
}

// A TCP stream runs on over a link whose stage changes, inside a host and
// between two, and has the new rate within a second. Other links of the same
// network, and on the same uplink, lose no packet.
func TestLiveStage(t *testing.T) {
	s := newSupervisor(t, slowBackbone)
	request := parseRequest(t, `network: live
tenant: root
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h1}]
links:
  - {name: far, ends: [a, b], rate: 20Mbit}
  - {name: near, ends: [a, c], rate: 20Mbit}
  - {name: calm, ends: [c, b], rate: 5Mbit}
stages:
  - {name: more, after: 5s, links: {far: {rate: 80Mbit}, near: {rate: 80Mbit}}}
  - {name: less, after: 8s, links: {far: {rate: 20Mbit}, near: {rate: 20Mbit}}}
`)
	s.admit(request)
	id := idOf(request)
	s.ready(id)
	lease, err := s.api.Lease(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := node{"h1", id, "a"}, node{"h2", id, "b"}, node{"h1", id, "c"}
	flows := []*flow{s.flow(c, b), s.flow(b, c)}
	streams := []*stream{s.stream(a, b), s.stream(a, c)}
	for i, rate := range []vnet.Rate{80 * vnet.Mbit, 20 * vnet.Mbit} {
		for _, f := range streams {
			f.changes(lease.Window.Start.Add(request.Stages[i].After), rate)
		}
	}
	endLossless(flows...)
}

// A TCP stream runs on while a neighbour arrives, which takes what it had
// beyond its minimum, and leaves.
func TestLiveNeighbour(t *testing.T) {
	s := newSupervisor(t, slowBackbone)
	elastic := parseRequest(t, `network: elastic
tenant: root
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links:
  - {ends: [a, b], min: 20Mbit, max: 120Mbit}
`)
	calm := parseRequest(t, `network: calm
tenant: root
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links:
  - {ends: [a, b], rate: 5Mbit}
`)
	neighbour := parseRequest(t, `network: neighbour
tenant: root
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links:
  - {ends: [a, b], rate: 150Mbit}
`)
	for _, r := range []vnet.Request{elastic, calm} {
		s.admit(r)
		s.ready(idOf(r))
	}
	between := func(r vnet.Request) (a, b node) { return node{"h1", idOf(r), "a"}, node{"h2", idOf(r), "b"} }
	quietA, quietB := between(calm)
	flows := []*flow{s.flow(quietA, quietB), s.flow(quietB, quietA)}
	f := s.stream(between(elastic))
	f.changes(time.Now(), 120*vnet.Mbit)
	s.admit(neighbour)
	f.changes(time.Now(), 45*vnet.Mbit)
	s.ready(idOf(neighbour))
	if _, err := s.api.Release(t.Context(), idOf(neighbour)); err != nil {
		t.Fatal(err)
	}
	f.changes(time.Now(), 120*vnet.Mbit)
	endLossless(flows...)
}
