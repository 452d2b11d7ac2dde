package measure

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct {
		samples []float64
		p, want float64
	}{
		{nil, 50, 0},
		{[]float64{7}, 50, 7},
		{[]float64{7}, 99, 7},
		{[]float64{3, 1, 2}, 50, 2},
		{[]float64{4, 3, 2, 1}, 50, 2},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
		{hundred, 0.1, 1},
	} {
		if got := Percentile(c.samples, c.p); got != c.want {
			t.Errorf("Percentile(%d samples, %g) = %g, want %g", len(c.samples), c.p, got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("Percentile sorted its caller's samples")
	}
}

func TestPercentileDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 300).Draw(t, "samples")
		p := float64(rapid.IntRange(1, 100).Draw(t, "p"))
		got := Percentile(samples, p)
		if !slices.Contains(samples, got) {
			t.Fatalf("%g is not a sample", got)
		}
		atMost, below := 0, 0
		for _, x := range samples {
			if x <= got {
				atMost++
			}
			if x < got {
				below++
			}
		}
		n := float64(len(samples))
		if float64(atMost)*100 < p*n || float64(below)*100 >= p*n {
			t.Fatalf("P%g = %g: %d below, %d at most, of %g", p, got, below, atMost, n)
		}
	})
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{
		{nil, 1},
		{[]float64{0, 0}, 1},
		{[]float64{5, 5, 5}, 1},
		{[]float64{1, 0, 0, 0}, 0.25},
		{[]float64{1, 2, 3}, 36.0 / 42},
	} {
		if got := Jain(c.shares); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Jain(%v) = %g, want %g", c.shares, got, c.want)
		}
	}
}

func TestLoss(t *testing.T) {
	for _, c := range []struct {
		sent, received uint64
		want           float64
	}{{0, 0, 0}, {10, 10, 0}, {10, 11, 0}, {10, 0, 1}, {1000, 999, 0.001}} {
		if got := Loss(c.sent, c.received); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("Loss(%d, %d) = %g, want %g", c.sent, c.received, got, c.want)
		}
	}
}

// The factors of virtual-networks.md section 9.3: 1514/1472 for UDP and
// 1514/1448 for TCP with time stamps, at an MTU of 1500.
func TestFrameRates(t *testing.T) {
	frames, goodput := UDPRates(1000, 1000*uint64(UDPPayload(1500)), time.Second)
	if frames != 1514*8000 || goodput != 1472*8000 {
		t.Errorf("UDP: %v frames, %v payload", frames, goodput)
	}
	tcp := func(data, acks, payload uint64) TCPCount {
		return TCPCount{data + acks, data, payload, (data + acks) * TCPHeaders(true)}
	}
	w := TCPWindow{Begin: tcp(100, 10, 90*1448), End: tcp(1100, 510, 1100*1448), Final: tcp(2000, 900, 2000*1448), Span: time.Second}
	frames, goodput = w.Rates()
	if frames != (1000*1514+500*66)*8 || goodput != 1000*1448*8 {
		t.Errorf("TCP: %d frames, %d payload", frames, goodput)
	}
	if TCPHeaders(true) != 66 || TCPHeaders(false) != 54 {
		t.Errorf("headers %d and %d", TCPHeaders(true), TCPHeaders(false))
	}
}

func TestRatesOfNothing(t *testing.T) {
	if f, g := (TCPWindow{Span: time.Second}).Rates(); f != 0 || g != 0 {
		t.Errorf("empty window: %v, %v", f, g)
	}
	if r := Rate(1e9, 0); r != 0 {
		t.Errorf("empty span: %v", r)
	}
	broken := TCPWindow{Begin: TCPCount{DataSegments: 9, Headers: 9}, Final: TCPCount{DataSegments: 1, Payload: 1}, Span: time.Second}
	if f, g := broken.Rates(); f != 0 || g != 0 {
		t.Errorf("counters that run backwards: %v, %v", f, g)
	}
}

func TestJudge(t *testing.T) {
	const m = vnet.Mbit
	all := Scope{TCP: true, UDP: true, Loss: true}
	short := Scope{TCP: true, UDP: true, Loss: true, Window: 3 * time.Second} // 8.07 kbit/s
	for _, c := range []struct {
		name string
		l    vnet.LinkVerdict
		done Scope
		why  string
	}{
		{"static kept", vnet.LinkVerdict{Min: 100 * m, Max: 100 * m, Alloc: 100 * m, TCP: 99 * m, UDP: 101 * m, UDPLoss: 0.001}, all, Kept},
		{"TCP over", vnet.LinkVerdict{Max: 100 * m, Alloc: 100 * m, TCP: 102 * m, UDP: 100 * m}, all,
			"TCP took 102 Mbit/s, over the allocated 100 Mbit/s"},
		{"UDP over", vnet.LinkVerdict{Max: 200 * m, Alloc: 100 * m, TCP: 100 * m, UDP: 101*m + 1000}, all,
			"UDP took 101 Mbit/s, over the allocated 100 Mbit/s"},
		{"UDP under", vnet.LinkVerdict{Min: 100 * m, Max: 500 * m, Alloc: 300 * m, TCP: 300 * m, UDP: 98 * m}, all,
			"UDP got 98 Mbit/s, under the guaranteed 100 Mbit/s"},
		{"TCP and loss", vnet.LinkVerdict{Min: 100 * m, Max: 100 * m, Alloc: 100 * m, TCP: 50 * m, UDP: 100 * m, UDPLoss: 0.002}, all,
			"TCP got 50 Mbit/s, under the guaranteed 100 Mbit/s; UDP lost 0.2 % at 0.9 of the allocated rate"},
		{"above the minimum, not the rest", vnet.LinkVerdict{Min: 100 * m, Max: 500 * m, Alloc: 300 * m, TCP: 100 * m, UDP: 99 * m, UDPLoss: 0.6}, all, Kept},
		{"loss into the minimum", vnet.LinkVerdict{Min: 200 * m, Max: 500 * m, Alloc: 300 * m, TCP: 300 * m, UDP: 300 * m, UDPLoss: 0.4}, all,
			"UDP at 0.9 of the allocated rate delivered 162 Mbit/s, under the guaranteed 200 Mbit/s"},
		{"cap only", vnet.LinkVerdict{Max: 100 * m, Alloc: 100 * m, TCP: 1 * m, UDP: 1 * m, UDPLoss: 0.9}, all, Kept},
		{"best effort passes", vnet.LinkVerdict{TCP: 1, UDPLoss: 0.9}, all, Kept},
		{"best effort starved", vnet.LinkVerdict{UDPLoss: 1}, all, "no traffic passed"},
		{"nothing passes", vnet.LinkVerdict{Max: 100 * m, Alloc: 100 * m}, all, "no traffic passed"},
		{"only TCP measured", vnet.LinkVerdict{Min: 100 * m, Max: 100 * m, Alloc: 100 * m, TCP: 100 * m}, Scope{TCP: true}, Kept},
		{"few frames", vnet.LinkVerdict{Min: m / 10, Max: m / 10, Alloc: m / 10, TCP: 92 * m / 1000, UDP: 108 * m / 1000}, short, Kept},
		{"fewer than few", vnet.LinkVerdict{Min: m / 10, Max: m / 10, Alloc: m / 10, TCP: 91 * m / 1000, UDP: m / 10}, short,
			"TCP got 0.091 Mbit/s, under the guaranteed 0.1 Mbit/s"},
		{"1 % where frames are many", vnet.LinkVerdict{Max: 10 * m, Alloc: 10 * m, TCP: 10 * m, UDP: 10110 * m / 1000}, short,
			"UDP took 10.11 Mbit/s, over the allocated 10 Mbit/s"},
		{"what a bucket lets through", vnet.LinkVerdict{Max: 2 * m, Alloc: 2 * m, UDP: 2170 * m / 1000}, Scope{UDP: true, Window: 3 * time.Second, Burst: 1 << 16}, Kept},
		{"more than that", vnet.LinkVerdict{Max: 2 * m, Alloc: 2 * m, UDP: 2210 * m / 1000}, Scope{UDP: true, Window: 3 * time.Second, Burst: 1 << 16},
			"UDP took 2.21 Mbit/s, over the allocated 2 Mbit/s"},
		{"fast enough", vnet.LinkVerdict{Min: m, Max: m, Alloc: m, TCP: m, UDP: m, Latency: 100, LatencyBound: 100}, all, Kept},
		{"too slow", vnet.LinkVerdict{Min: m, Max: m, Alloc: m, TCP: m, UDP: m, Latency: 41.5, LatencyBound: 1}, all,
			"half the median round trip was 41.5 us, over the bound of 1 us"},
		{"best effort, too slow", vnet.LinkVerdict{TCP: m, UDP: m, UDPLoss: 1, Latency: 1500, LatencyBound: 1000}, all,
			"half the median round trip was 1500 us, over the bound of 1000 us"},
		{"slow without a bound", vnet.LinkVerdict{Min: m, Max: m, Alloc: m, TCP: m, UDP: m, Latency: 1e6}, all, Kept},
		{"nothing measured", vnet.LinkVerdict{Min: 100 * m, Max: 100 * m, Alloc: 100 * m}, Scope{}, Kept},
	} {
		ok, why := Judge(c.l, c.done)
		if why != c.why || ok != (c.why == Kept) {
			t.Errorf("%s: %v, %q; want %q", c.name, ok, why, c.why)
		}
	}
}
