package ofload

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"sublet/openflow/controller"
	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// serving is a learning controller of this process.
func serving(t *testing.T) netip.AddrPort {
	t.Helper()
	c, err := controller.New(controller.Config{
		Listen: netip.MustParseAddrPort("127.0.0.1:0"), App: controller.NewLearning, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c.Address()
}

func run(t *testing.T, c Config) Result {
	t.Helper()
	c.Connect, c.Warmup, c.Duration = serving(t), 100*time.Millisecond, 2*time.Second
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Responses == 0 || r.Errors > 0 || r.Lost > 0 || r.FlowMods+r.PacketOuts != r.Responses {
		t.Errorf("%+v", r)
	}
	return r
}

// In a closed loop every packet but those that wait is answered, every switch is
// served, and what is known is answered by entries.
func TestClosedLoop(t *testing.T) {
	t.Parallel()
	for _, version := range []uint8{of10.Version, of13.Version} {
		closedLoop(t, version)
	}
}

func closedLoop(t *testing.T, version uint8) {
	r := run(t, Config{Switches: 20, Outstanding: 8, Hosts: 50, Version: version})
	if r.FlowMods < r.Responses*9/10 {
		t.Errorf("%d of %d answers are entries, of addresses that are known", r.FlowMods, r.Responses)
	}
	if r.Unanswered != 20*8 || r.Least == 0 || r.Jain < 0.9 {
		t.Errorf("%d unanswered, %d to %d answers by switch, Jain %.3f", r.Unanswered, r.Least, r.Most, r.Jain)
	}
	if l := r.Latency; l.P50 <= 0 || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max {
		t.Errorf("latencies %+v", l)
	}
}

// In an open loop the stated rate is offered, to a switch that joins late too, and
// nonsense on another connection disturbs nobody.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	r := run(t, Config{Switches: 5, Outstanding: 64, Rate: 2000, Newcomer: true, Malformed: true, Seed: 7, Version: of13.Version})
	if r.Sent < 2000 || r.Sent > 5000 {
		t.Errorf("%d packets were sent in 2 s at 2,000 a second", r.Sent)
	}
	if r.FlowMods != 0 {
		t.Errorf("%d entries for addresses that were never seen", r.FlowMods)
	}
	if n := r.Newcomer; n == nil || n.GreetedMS < 0 || n.Share < 0.5 || n.Share > 2 {
		t.Errorf("newcomer %+v", n)
	}
	if r.Malformed == nil || *r.Malformed == 0 {
		t.Error("lengths below that of a header were borne")
	}
}

// A controller that greets nobody is told of, not waited for.
func TestControllerThatIsNone(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), Config{Connect: netip.MustParseAddrPort("127.0.0.1:1"), Switches: 1, Outstanding: 1, Duration: time.Second, Version: of13.Version}); err == nil {
		t.Error("nobody listens there")
	}
}

// Percentiles are within the 1/64 that a bucket is wide.
func TestPercentiles(t *testing.T) {
	var h histogram
	for us := 1; us <= 10000; us++ {
		h.add(time.Duration(us) * time.Microsecond)
	}
	for p, want := range map[float64]float64{50: 5000, 90: 9000, 99: 9900, 99.9: 9990, 100: 10000} {
		if got := h.percentile(p); got < want*63/64 || got > want*65/64 {
			t.Errorf("percentile %g is %g us, want %g", p, got, want)
		}
	}
	for v := uint64(1); v < 1<<60; v += v/4 + 1 {
		if b := bucketOf(v); least(b) > v || least(b+1) <= v {
			t.Fatalf("%d is in the bucket from %d to %d", v, least(b), least(b+1))
		}
	}
}
