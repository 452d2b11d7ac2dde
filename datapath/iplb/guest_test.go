package iplb

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
	"sublet/lab/guest"
	"sublet/plan"
)

// A Debian kernel takes off what senders put on, by its own tunnels: stacks of
// IP in IP and GRE, of large packets too, which the sender's kernel cuts.
func TestDebianKernelTakesHeadersOff(t *testing.T) {
	guest.Needs(t)
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	ns, err := kernel.NewNamespace(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	l := &line{t: t, ns: []*os.File{ns}}
	l.run(0, "ip tuntap add dev tap0 mode tap")
	l.run(0, "ip addr add 10.1.0.1/24 dev tap0")
	l.run(0, "ip link set tap0 up")
	m := guest.Boot(t, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd()), "tap0")
	m.Sh("ip addr add 10.1.0.2/24 dev eth0 && ip link set eth0 up")
	l.run(0, "ip route add 10.255.0.0/24 via 10.1.0.2")
	l.run(0, "ip route add 10.3.0.0/24 via 10.1.0.2 mtu 1400")
	for _, address := range []netip.Addr{relay1, relay2, netip.MustParseAddr("10.3.0.2")} {
		m.Sh(fmt.Sprintf("ip addr add %s/32 dev lo", address))
	}
	for _, kind := range []string{"ipip", "gre"} {
		for i, address := range []netip.Addr{relay1, relay2} {
			m.Sh(fmt.Sprintf("ip link add name %s%d type %s local %s remote 10.1.0.1 && ip link set %s%d up", kind, i+1, kind, address, kind, i+1))
		}
	}
	sender := table(t)
	sender.Source = netip.MustParseAddr("10.1.0.1")
	l.attach(0, "tap0", ebpf.AttachTCXEgress, sender.Transmit())
	for _, c := range []struct {
		form   plan.Relaying
		kind   string
		relays []netip.Addr
	}{
		{plan.ByIPIP, "ipip", []netip.Addr{relay1}}, {plan.ByIPIP, "ipip", []netip.Addr{relay1, relay2}}, {plan.ByGRE, "gre", []netip.Addr{relay1}},
	} {
		t.Run(fmt.Sprint(c.kind, " ", len(c.relays)), func(t *testing.T) {
			l.t, m.T = t, t
			set(t, sender, plan.Spread{Prefix: netip.MustParsePrefix("10.3.0.0/24"), By: c.form, Paths: []plan.RelayPath{{Relays: c.relays}}})
			before := make([]int, len(c.relays))
			for i := range c.relays {
				before[i] = taken(m, c.kind, i)
			}
			l.run(0, "ping -c 2 -i 0.2 -W 5 10.3.0.2")
			m.Receive(func() (c net.Conn, err error) {
				err = kernel.In(ns, func() error { c, err = net.DialTimeout("tcp4", "10.3.0.2:7000", time.Second); return err })
				return c, err
			}, 1<<20)
			for i := range c.relays {
				if n := taken(m, c.kind, i) - before[i]; n < 1<<20>>16+2 { // segments come joined, 64 KiB at most
					t.Errorf("relay %d took headers off %d packets", i+1, n)
				}
			}
		})
	}
	if counts, err := sender.Counts(); err != nil || counts["refused"]+counts["too-big"]+counts["native"] != 0 {
		t.Errorf("sender: %v, %v", counts, err)
	}
}

// alone is a number on a line of its own.
var alone = regexp.MustCompile(`(?m)^(\d{1,9})\r?$`)

// taken is how many packets a tunnel of the guest took headers off.
func taken(m *guest.Machine, kind string, i int) int {
	m.T.Helper()
	text := m.Sh(fmt.Sprintf("cat /sys/class/net/%s%d/statistics/rx_packets", kind, i+1))
	found := alone.FindStringSubmatch(text) // the guest's kernel writes on the same line
	if found == nil {
		m.T.Fatalf("no number: %s", text)
	}
	n, _ := strconv.Atoi(found[1])
	return n
}
