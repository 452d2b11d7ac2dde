package iplb

import (
	"net/netip"
	"sublet/plan"
	"testing"

	"github.com/cilium/ebpf"
)

// Programs by themselves, everything in the nearest cache: what they read and
// decide, without headers.
func BenchmarkPrograms(b *testing.B) {
	tab := table(b)
	set(b, tab, plan.Spread{Mode: plan.PerFlow, Paths: []plan.RelayPath{{}}})
	all := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	if err := tab.SetRelaying(Relaying{Addresses: []netip.Addr{relay1}, Senders: all, Inside: all}); err != nil {
		b.Fatal(err)
	}
	other := packet(1000, 470)
	other[12], other[13] = 0x86, 0xdd
	for _, c := range []struct {
		name    string
		program *ebpf.Program
		in      []byte
	}{
		{"nothing to do", tab.Transmit(), other},
		{"path chosen", tab.Transmit(), packet(1000, 470)},
		{"relay, datagram of others", tab.Relay(), packet(1000, 470)},
		{"relay, header of others", tab.Relay(), wrapped(packet(1000, 470), relay2)},
		{"echo, datagram of others", tab.Echo(), packet(1000, 470)},
	} {
		b.Run(c.name, func(b *testing.B) {
			_, each, err := c.program.Benchmark(c.in, b.N, b.ResetTimer)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(each.Nanoseconds()), "ns/packet")
		})
	}
}
