package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sublet/vnet"
)

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := header{rapid.Uint64().Draw(t, "run"), rapid.Uint32().Draw(t, "flow"), rapid.Uint32().Draw(t, "epoch"), rapid.Uint64().Draw(t, "seq")}
		b := make([]byte, headerSize)
		h.put(b)
		if got, ok := parseHeader(b); !ok || got != h {
			t.Fatalf("%+v became %+v", h, got)
		}
	})
	if _, ok := parseHeader(make([]byte, headerSize-1)); ok {
		t.Error("a short header was read")
	}
}

// However late it is called, a pacer never lets more through than the rate
// and its lag allow; called in time, it lets exactly the rate through.
func TestPacer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := vnet.Rate(rapid.Int64Range(int64(vnet.Mbit), int64(10*vnet.Gbit)).Draw(t, "rate"))
		const frame = 1514
		bits := 8 * frame * burst(rate, frame, frame-42)
		lag := 2 * burstTime
		p := newPacer(rate, bits, lag, 0)
		now, sent := int64(0), 0.0
		for range 200 {
			now = max(now, p.next(now)) + rapid.Int64Range(0, 3e6).Draw(t, "delay")
			sent += float64(bits)
			if allowed := float64(rate)*(float64(now)+float64(lag))/1e9 + float64(bits); sent > allowed*1.000001 {
				t.Fatalf("%g bits by %d ns at %s: at most %g", sent, now, rate, allowed)
			}
		}
	})
	p := newPacer(vnet.Gbit, 1000, 0, 0)
	for i := range 1000 {
		if due := p.next(int64(i) * 1000); due != int64(i)*1000 {
			t.Fatalf("burst %d due at %d ns", i, due)
		}
	}
}

func TestBurst(t *testing.T) {
	for _, c := range []struct {
		rate vnet.Rate
		want int
	}{{vnet.Kbit, 1}, {10 * vnet.Mbit, 1}, {100 * vnet.Mbit, 8}, {vnet.Gbit, 44}, {40 * vnet.Gbit, 44}} {
		if got := burst(c.rate, 1514, 1472); got != c.want {
			t.Errorf("burst(%s) = %d frames, want %d", c.rate, got, c.want)
		}
	}
}

func TestTally(t *testing.T) {
	const ms = int64(time.Millisecond)
	at := func(t *tally, from, to, step int64) {
		for now := from; now <= to; now += step {
			t.arrive(now*ms, 10, 1000)
		}
	}
	for _, c := range []struct {
		name      string
		arrivals  func(*tally)
		datagrams uint64
		span      time.Duration
	}{
		{"steady", func(t *tally) { at(t, 1000, 3000, 7) }, 1440, 1008 * time.Millisecond},
		{"nothing", func(*tally) {}, 0, 0},
		{"falls silent", func(t *tally) { at(t, 1000, 1700, 10) }, 210, 1010 * time.Millisecond},
		{"silent from the beginning", func(t *tally) { at(t, 1000, 1200, 10) }, 0, 1300 * time.Millisecond},
		{"silent at the beginning", func(t *tally) { at(t, 1000, 1200, 10); at(t, 2000, 3000, 10) }, 510, 1300 * time.Millisecond},
	} {
		x := &tally{warmUp: 500 * ms, window: 1000 * ms}
		c.arrivals(x)
		if got := x.arrived(); got.Datagrams != c.datagrams || got.Span != c.span || got.Payload != 100*c.datagrams {
			t.Errorf("%s: %+v, want %d in %s", c.name, got, c.datagrams, c.span)
		}
	}
}

func TestTallyNumbers(t *testing.T) {
	x := &tally{limit: 1000}
	for _, seq := range []uint64{0, 1, 1, 63, 64, 999, 999, 1000, 1 << 60} {
		x.number(seq)
	}
	if x.distinct != 5 || x.again != 2 || len(x.seen) > 16 {
		t.Errorf("%d distinct, %d again, %d words", x.distinct, x.again, len(x.seen))
	}
}

// loopback is a flow that needs no privilege and no namespace.
var loopback = flow{
	ID: 3, Pair: -1, Interface: "lo", MTU: 1500, Streams: 1,
	Local: netip.MustParseAddr("127.0.0.1"), Peer: netip.MustParseAddr("127.0.0.1"),
}

// What strangers send to a receiver's ports changes nothing: wrong numbers,
// short packets, connections that say something else or nothing at all.
func TestStrangers(t *testing.T) {
	const run = 77
	r, ports, err := openReceiver(t.Context(), run, loopback)
	must(t, err)
	f := loopback
	f.Ports, f.Rate = ports, 50*vnet.Mbit
	r.sink.expect(command{Epoch: 1, Window: time.Second}, f)

	stranger, err := connected(f, ports.UDP)
	must(t, err)
	defer unix.Close(stranger)
	junk := make([]byte, 100)
	for _, h := range []header{{run: run + 1, flow: 3, epoch: 1}, {run: run, flow: 4, epoch: 1}, {run: run, flow: 3, epoch: 2}, {}} {
		h.put(junk)
		_, err := unix.Write(stranger, junk)
		must(t, err)
	}
	_, err = unix.Write(stranger, []byte("x"))
	must(t, err)
	for i := range 20 { // more than strangers that are waited for, were they to block
		conn, err := net.Dial("tcp4", netip.AddrPortFrom(f.Local, ports.TCP).String())
		must(t, err)
		defer conn.Close()
		if i < 10 {
			_, _ = conn.Write(bytes.Repeat([]byte("y"), 50))
		}
	}

	s, err := openSender(run, f)
	must(t, err)
	must(t, s.connect(t.Context()))
	var g figure
	must(t, s.sendLoad(t.Context(), command{Epoch: 1, Window: 100 * time.Millisecond}, f, &g))
	counts := r.sink.settle(t.Context(), g.Sent, time.Second)
	if g.Sent == 0 || counts.Distinct != g.Sent || counts.Duplicates != 0 {
		t.Errorf("sent %d, arrived %+v", g.Sent, counts)
	}
	if streams := r.streams(t.Context(), 2*connectTime); len(streams) != 1 {
		t.Errorf("%d streams of ours, want 1", len(streams))
	}
	trip, err := s.pings(t.Context(), 1, time.Millisecond, 50*time.Millisecond)
	must(t, err)
	if trip.Received == 0 || trip.Received != trip.Sent || trip.P50 <= 0 || trip.P99 < trip.P50 {
		t.Errorf("round trips %+v", trip)
	}
}

// pipe joins a reader and a writer; Close ends both.
type pipe struct {
	io.Reader
	io.WriteCloser
}

func TestSessionLimits(t *testing.T) {
	silent, _ := io.Pipe()
	_, nowhere := io.Pipe()
	for _, c := range []struct {
		name  string
		pipe  io.ReadWriteCloser
		limit time.Duration
		want  string
	}{
		{"hangs", pipe{silent, nopWriter{}}, 50 * time.Millisecond, "no answer in 50ms"},
		{"does not read", pipe{silent, nowhere}, 50 * time.Millisecond, "no answer in 50ms"},
		{"ends", pipe{strings.NewReader(""), nopWriter{}}, time.Minute, "it ended"},
		{"talks nonsense", pipe{strings.NewReader("hello\n"), nopWriter{}}, time.Minute, "not a reply"},
		{"talks without end", pipe{endless{}, nopWriter{}}, time.Minute, "token too long"},
	} {
		s, err := newSession(t.Context(), "n1", fixed(c.pipe))
		must(t, err)
		if _, err := s.call(t.Context(), command{Op: opOpen}, c.limit); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if _, err := s.call(t.Context(), command{Op: opOpen}, time.Hour); err == nil {
			t.Errorf("%s: a session that failed was used again", c.name)
		}
	}
}

func TestMainProtocol(t *testing.T) {
	var out bytes.Buffer
	if code := Main(strings.NewReader("{\"op\":\"dance\"}\n{\"op\":\"ping\",\"out\":[{\"id\":9}]}\n"), &out); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var first, second reply
	decoder := json.NewDecoder(&out)
	must(t, decoder.Decode(&first))
	must(t, decoder.Decode(&second))
	if !strings.Contains(first.Err, "dance") || len(second.Out) != 1 || second.Out[0].Err != "ping: no sender 9" {
		t.Errorf("%+v, %+v", first, second)
	}
	if code := Main(strings.NewReader("nonsense\n"), io.Discard); code != 1 {
		t.Errorf("exit code %d for nonsense", code)
	}
}

func TestTargets(t *testing.T) {
	link := vnet.VirtualLink{Name: "a", Ends: [2]string{"n1", "n2"}, Latency: 7, Bandwidth: [2]vnet.Bandwidth{{Min: 5, Max: vnet.Unbounded}, {}}}
	l := vnet.Lease{
		Request: vnet.Request{Topology: vnet.Topology{Links: []vnet.VirtualLink{link}}}, Stage: -1,
		Addresses: map[string]netip.Addr{"n1": left.addr, "n2": right.addr},
		Rates:     map[string][2]vnet.Rate{"a": {9, 0}},
	}
	got := Targets(l, 1400, func(_ vnet.VirtualLink, i int) string { return []string{"eth7", "eth8"}[i] })
	want := []Target{
		{"a", "n1", "n2", "eth7", "eth8", left.addr, right.addr, 1400, 5, 9, 9, true, 0, 7, [2]vnet.Impairment{}, 0, 0, 0, 0, false},
		{"a", "n2", "n1", "eth8", "eth7", right.addr, left.addr, 1400, 0, 0, 0, false, 0, 7, [2]vnet.Impairment{}, 0, 0, 0, 0, false},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v", got)
	}
	if opposite(got, 0) != 1 || opposite(got, 1) != 0 || opposite(got[:1], 0) != -1 {
		t.Error("directions are not paired")
	}
}

type nopWriter struct{}

func (nopWriter) Write(b []byte) (int, error) { return len(b), nil }
func (nopWriter) Close() error                { return nil }

// endless is a line without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// fixed is a Starter that gives the same pipe.
func fixed(p io.ReadWriteCloser) Starter {
	return func(context.Context, string) (io.ReadWriteCloser, error) { return p, nil }
}

// A link over several paths is measured by as many connections as find the
// least of them, and one flow at its part.
func TestTargetOverPaths(t *testing.T) {
	paths := []vnet.PathShare{{Units: 192}, {Units: 64}}
	if got := leastPart(paths, 40*vnet.Mbit); got != 10*vnet.Mbit {
		t.Errorf("the least part of 40 Mbit/s is %s", got)
	}
	if got := leastPart(paths[:1], 40*vnet.Mbit); got != 0 {
		t.Errorf("the least part of one path is %s", got)
	}
	split := trial{Target: Target{Min: 40 * vnet.Mbit, Alloc: 40 * vnet.Mbit, Flow: 10 * vnet.Mbit}}
	if split.streams(4) != 40 || split.datagrams() != 10*vnet.Mbit {
		t.Errorf("%d streams, UDP at %s", split.streams(4), split.datagrams())
	}
	whole := trial{Target: Target{Min: 40 * vnet.Mbit, Alloc: 40 * vnet.Mbit}}
	if whole.streams(4) != 4 || whole.datagrams() != 40*vnet.Mbit {
		t.Errorf("%d streams, UDP at %s", whole.streams(4), whole.datagrams())
	}
}

// Other frames of a check count where they share a device with the data: its
// own pings and the answers of its opposite's at both ends, acknowledgements
// of others' data at the end they share.
func TestBeside(t *testing.T) {
	targets := append(static("a", left, right, vnet.Mbit), static("b", end{node: "n2", dev: "eth0"}, end{node: "n3", dev: "eth0"}, vnet.Mbit)...)
	c := &check{trials: newTrials(targets)}
	for i, o := range c.trials {
		o.pings, o.acks = vnet.Rate(1+i), vnet.Rate(100*(1+i))
	}
	// a, b of links a and b: n1>n2, n2>n1, n2>n3, n3>n2, all by eth0.
	for i, want := range [][2]vnet.Rate{
		{1 + 2, 1 + 2 + 4 + 3 + 300},
		{1 + 2 + 3 + 4 + 400, 1 + 2},
		{2 + 1 + 100 + 3 + 4, 3 + 4},
		{3 + 4, 3 + 4 + 1 + 2 + 200},
	} {
		near, far := c.beside(c.trials[i])
		if near != want[0] || far != want[1] {
			t.Errorf("trial %d: %d and %d, want %v", i, near, far, want)
		}
	}
}

func TestSlowLinksTakeLonger(t *testing.T) {
	for _, c := range []struct {
		rate            vnet.Rate
		length, warming time.Duration
		streams         int
	}{
		{100 * vnet.Mbit, DefaultDuration, DefaultWarmUp, DefaultStreams},
		{256 * vnet.Kbit, 6056 * time.Millisecond, 3028 * time.Millisecond, 1},
		{8 * vnet.Kbit, mostDuration, mostDuration / 2, 1},
		{0, DefaultDuration, DefaultWarmUp, DefaultStreams},
	} {
		opt := Options{Targets: static("a", left, right, c.rate)}.withDefaults()
		streams := newTrials(opt.Targets)[0].streams(opt.Streams)
		if opt.Duration != c.length || opt.WarmUp != c.warming || streams != c.streams {
			t.Errorf("%s: %s after %s by %d streams", c.rate, opt.Duration, opt.WarmUp, streams)
		}
	}
}

// Only what waiting may explain is doubted: a link of half its rate is not
// excused by some milliseconds.
func TestStarved(t *testing.T) {
	const window = time.Second
	for _, c := range []struct {
		rate  vnet.Rate
		late  time.Duration
		doubt bool
	}{
		{99 * vnet.Mbit, window, false},
		{97 * vnet.Mbit, 4 * time.Millisecond, false},
		{97 * vnet.Mbit, 6 * time.Millisecond, true},
		{105 * vnet.Mbit, 6 * time.Millisecond, false},
		{105 * vnet.Mbit, 60 * time.Millisecond, true},
		{50 * vnet.Mbit, 20 * time.Millisecond, false},
		{50 * vnet.Mbit, 60 * time.Millisecond, true},
		{120 * vnet.Mbit, 9 * time.Millisecond, false},
	} {
		o := newTrials(static("a", left, right, 100*vnet.Mbit))[0]
		o.late = c.late
		if why := starved(o, c.rate, window); (why != "") != c.doubt {
			t.Errorf("%s, late by %s: %q", c.rate, c.late, why)
		}
	}
}
