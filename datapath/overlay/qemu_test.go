package overlay

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/lab/guest"
	"sublet/plan"
	"sublet/vnet"
)

// The tunnels of a Debian kernel and entries understand each other, both ways.
func TestDebianKernelBothWays(t *testing.T) {
	guest.Needs(t)
	l := newLab(t)
	h := l.hosts[0]
	l.ip(h.Namespace, "link", "del", wire)
	l.ip(h.Namespace, "tuntap", "add", "dev", wire, "mode", "tap")
	l.ip(h.Namespace, "addr", "add", under4(0).String()+"/24", "dev", wire)
	l.ip(h.Namespace, "link", "set", wire, "up")
	m := guest.Boot(t, h.Namespace, wire)
	m.Sh("ip addr add " + under4(1).String() + "/24 dev eth0 && ip link set eth0 up")
	l.ip(h.node, "neigh", "replace", inner(1), "lladdr", mac(1), "dev", "eth0", "nud", "permanent")
	l.ip(h.node, "link", "set", "eth0", "mtu", "1400")
	node, err := kernel.OpenNamespace(h.node)
	check1(t, err)
	defer node.Close()
	ends := fmt.Sprintf(" local %s remote %s ", under4(1), under4(0))
	for protocol, device := range map[vnet.Encapsulation]string{
		vnet.GRE: "type gre" + ends, vnet.IPIP: "type ipip" + ends, vnet.GRETAP: "address " + mac(1) + " type gretap" + ends,
		vnet.Geneve: fmt.Sprintf("address %s type geneve id %d remote %s", mac(1), number, under4(0)),
		vnet.VXLAN:  fmt.Sprintf("address %s type vxlan id %d dstport 4789 srcport 768 832", mac(1), number) + ends,
	} {
		t.Run(string(protocol), func(t *testing.T) {
			l.t, m.T = t, t
			o := item(0, protocol, under4)
			o.MTU = 1400
			check1(t, h.part.Do(t.Context(), plan.Step{Op: plan.Add, Item: o}))
			if protocol == vnet.Geneve {
				l.anyPort(h.part, o)
			}
			m.Sh("ip link add name far0 " + device + " && ip link set far0 mtu 1400 up && ip addr add " + inner(1) + "/24 dev far0")
			defer m.Sh("ip link del far0")
			l.ping(inner(1))
			m.Sh("ping -c 1 -W 5 " + inner(0))
			m.Receive(func() (c net.Conn, err error) {
				err = kernel.In(node, func() error { c, err = net.DialTimeout("tcp", inner(1)+":7000", time.Second); return err })
				return c, err
			}, 1<<20)
			l.fromMachine(m, 1<<20)
		})
	}
}

// anyPort lets an end take packets from ports that anybody has: the kernel's Geneve
// device, other than its VXLAN device, takes no bounds of them.
func (l *lab) anyPort(p *Part, o plan.Overlay) {
	row, err := protocolOf(o.Protocol)
	check1(l.t, err)
	var end overlayTunnelEnd
	check1(l.t, p.table.objects.Ends.Lookup(endKey(row, o), &end))
	end.Ports = 0
	check1(l.t, p.table.objects.Ends.Put(endKey(row, o), end))
}

// fromMachine reads bytes by TCP that the machine made and summed up.
func (l *lab) fromMachine(m *guest.Machine, size int64) {
	l.t.Helper()
	listener := l.listen(l.hosts[0].node, inner(0))
	defer listener.Close()
	sum := make(chan []byte, 1)
	go func() {
		h := sha256.New()
		if c, err := listener.Accept(); err == nil {
			_ = c.SetDeadline(time.Now().Add(30 * time.Second))
			_, _ = io.Copy(h, c)
			c.Close()
		}
		sum <- h.Sum(nil)
	}()
	_, port, _ := strings.Cut(listener.Addr().String(), ":")
	want := m.Sh(fmt.Sprintf("head -c %d /dev/urandom > /sent; nc %s %s < /sent; sha256sum /sent", size, inner(0), port))
	if got := fmt.Sprintf("%x", <-sum); !strings.Contains(want, got) {
		l.t.Errorf("from the machine came something else: %s, not %s", got, want)
	}
}
