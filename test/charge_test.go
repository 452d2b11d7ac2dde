package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// Who floods pays for what the kernel spends on it, and a neighbour of the same host
// does not. The ledger has what was charged when the network is gone, and metrics say it
// while it lives.
func TestFlooderPays(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "hosts:\n  - {name: h1, cpu: 2, memory: 4GiB}\n")
	for _, name := range []string{"flood", "quiet"} {
		s.up(fmt.Sprintf("network: %s\nnodes: [{name: a}, {name: b}]\nlinks: [{ends: [a, b], rate: 100Mbit}]\n", name))
	}
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "flood"}, "b")
	s.must("exec", "flood/a", "--", "python3", "-c", fmt.Sprintf(`
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(20000): s.sendto(bytes(100), (%q, 9))`, address))
	least := (vnet.Measurement{}).KernelTime(true, 20_000, 0).Seconds() / 20 // of what nobody measured; a host that was may be so much faster
	eventually(t, 60*time.Second, func() error {
		if used := s.charged("flood"); used < least {
			return fmt.Errorf("20000 packets are charged %g s of a processor", used)
		}
		return nil
	})
	if flood, quiet := s.charged("flood"), s.charged("quiet"); quiet > flood/10 {
		t.Errorf("the flooder is charged %g s, the neighbour %g s", flood, quiet)
	}
	eventually(t, 30*time.Second, func() error {
		for line := range strings.Lines(s.metrics()) {
			if strings.HasPrefix(line, "sublet_processor_kernel_seconds_total{") && strings.Contains(line, `network="flood"`) && !strings.HasSuffix(line, " 0\n") {
				return nil
			}
		}
		return errors.New("metrics say nothing of it")
	})
	s.must("down", "flood")
	records := decode[[]vnet.Record](t, s.must("ledger", "-o", "json"))
	if i := slices.IndexFunc(records, func(r vnet.Record) bool { return r.Network == "flood" }); i < 0 || records[i].Used.Kernel < least {
		t.Errorf("the ledger says %+v", records)
	}
}

// charged is the kernels' time in a network's account, in seconds.
func (l *lab) charged(network string) float64 {
	l.t.Helper()
	one := decode[[]struct{ Cost vnet.Account }](l.t, l.must("leases", network, "-o", "json"))
	return one[0].Cost.Used.Kernel
}

// metrics are the server's.
func (l *lab) metrics() string {
	l.t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(l.run, "api.sock"))
	}}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://sublet/metrics")
	need(l.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	need(l.t, err)
	return string(text)
}
