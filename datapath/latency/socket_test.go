package latency

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/vnet"
)

// itself is a host whose tunnels lead to itself, in a namespace of its own.
func itself(t testing.TB, addresses ...string) *Prober {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	ns, err := kernel.NewNamespace(func() error { return exec.Command("ip", "link", "set", "lo", "up").Run() })
	if err != nil {
		t.Fatal(err)
	}
	host, err := kernel.NewHost(kernel.Config{Host: "h", Run: t.TempDir(), Namespace: fmt.Sprintf("/proc/self/fd/%d", ns.Fd())})
	if err != nil {
		t.Fatal(err)
	}
	var list []Tunnel
	for i, text := range addresses {
		a := netip.MustParseAddr(text)
		list = append(list, Tunnel{VNI: vnet.VNI(i + 1), Local: a, Remote: a, Class: 1<<16 | 16})
	}
	t.Cleanup(func() { host.Close(); ns.Close() })
	return &Prober{Host: host, Log: slog.New(slog.DiscardHandler), Tunnels: func() ([]Tunnel, bool) { return list, true }}
}

// Probes are sent, answered and heard by sockets of both families, and those are gone
// with the loop.
func TestProbesAreAnswered(t *testing.T) {
	p := itself(t, "127.0.0.1", "::1")
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Loop(ctx) })
	for end := time.Now().Add(30 * time.Second); p.Of(1).Number < 2 || p.Of(2).Number < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("after half a minute %+v and %+v", p.Of(1), p.Of(2))
			break
		}
	}
	stop()
	running.Wait()
	if len(p.sockets) != 0 {
		t.Errorf("%d sockets are left", len(p.sockets))
	}
	if rtt := p.Of(1).RTT(); rtt <= 0 || rtt > timeout {
		t.Errorf("a round trip of %s", rtt)
	}
}

// BenchmarkProbe is 64 probes with their answers: what both ends do. cpu-us is the time
// of processors that one of them takes, the kernel's included.
func BenchmarkProbe(b *testing.B) {
	p := itself(b, "127.0.0.1")
	ctx, stop := context.WithCancel(context.Background())
	var receiving sync.WaitGroup
	p.learn(0)
	p.open(ctx, &receiving)
	began, n := processors(b), 0
	for b.Loop() {
		for range 64 {
			n++
			p.mu.Lock()
			p.tunnels[1].next = 0
			p.mu.Unlock()
			p.ask(clock())
		}
		for p.Of(1).Asked < uint64(n) {
			time.Sleep(5 * time.Millisecond)
		}
	}
	b.ReportMetric(float64((processors(b)-began).Microseconds())/float64(n), "cpu-us/probe")
	stop()
	receiving.Wait()
	p.close()
}

func processors(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTick is a look at 2,000 tunnels of which none is to be asked.
func BenchmarkTick(b *testing.B) {
	p := Prober{tunnels: make(map[vnet.VNI]*tunnel)}
	for i := range 2000 {
		p.tunnels[vnet.VNI(i)] = &tunnel{next: time.Hour}
	}
	for b.Loop() {
		p.ask(0)
	}
}
