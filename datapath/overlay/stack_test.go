package overlay

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// TestStackSeesTunnels: packets of a tunnel by the host's stack pass its firewall and its
// policies of IPsec, on both hosts, and those of other tunnels do not.
func TestStackSeesTunnels(t *testing.T) {
	for _, under := range []func(int) netip.Addr{under4, under6} {
		l := newLab(t)
		l.tunnel(vnet.KernelVXLAN, under)
		l.ping(inner(1))
		l.ping(inner6(1))
		l.ping(inner(1), "-s", "1422", "-M", "do")
		for i, hook := range []*nftables.ChainHook{nftables.ChainHookOutput, nftables.ChainHookInput} {
			lift := l.refuse(l.hosts[i], hook)
			l.silent(fmt.Sprintf("a rule at hook %v of host %d", *hook, i+1))
			lift()
			l.ping(inner(1))
		}
		for i, direction := range []string{"out", "in"} {
			policy := []string{"src", under(0).String(), "dst", under(1).String(), "dir", direction}
			l.ip(l.hosts[i].Namespace, append(append([]string{"xfrm", "policy", "add"}, policy...), "action", "block")...)
			l.silent("a policy " + direction)
			l.ip(l.hosts[i].Namespace, append([]string{"xfrm", "policy", "delete"}, policy...)...)
			l.ping(inner(1))
		}
	}
}

// TestStackTunnelsInESP: tunnels by the host's stack travel in ESP where its policies say
// so, and nothing that comes without is taken then.
func TestStackTunnelsInESP(t *testing.T) {
	for _, mode := range []string{"transport", "tunnel"} {
		l := newLab(t)
		l.tunnel(vnet.KernelVXLAN, under4)
		l.ping(inner(1))
		for i := range l.hosts {
			l.seals(i, mode)
		}
		l.ping(inner(1))
		l.ping(inner6(1), "-s", "1300")
		if out := l.in(l.hosts[1].Namespace, "ip", "-s", "xfrm", "state"); !regexp.MustCompile(`[1-9]\d*\(bytes\), [1-9]\d*\(packets\)`).MatchString(out) {
			t.Errorf("%s: nothing travelled in ESP:\n%s", mode, out)
		}
		l.ip(l.hosts[0].Namespace, "xfrm", "policy", "delete", "src", under4(0).String(), "dst", under4(1).String(), "dir", "out")
		l.silent(mode + ": what comes in the clear")
	}
}

// seals has host i send to the other in ESP, and take nothing of it without. The test is
// skipped where the kernel has no ESP.
func (l *lab) seals(i int, mode string) {
	l.t.Helper()
	ns := l.hosts[i].Namespace
	for direction, ends := range map[string][2]netip.Addr{"out": {under4(i), under4(1 - i)}, "in": {under4(1 - i), under4(i)}} {
		pair := []string{"src", ends[0].String(), "dst", ends[1].String()}
		keys := []string{"enc", "cbc(aes)", "0x000102030405060708090a0b0c0d0e0f", "auth", "hmac(sha256)", "0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}
		state := append(append([]string{"ip", "xfrm", "state", "add"}, pair...), "proto", "esp", "spi", "0x1001", "reqid", "1", "mode", mode)
		if out, err := l.try(ns, append(state, keys...)...); err != nil {
			l.t.Skipf("the kernel has no ESP: %s", out)
		}
		policy := append(append([]string{"xfrm", "policy", "add"}, pair...), "dir", direction, "tmpl")
		l.ip(ns, append(append(policy, pair...), "proto", "esp", "reqid", "1", "mode", mode)...)
	}
}

// TestOtherTunnelsPassTheStackBy: they go on where the host's stack lets nothing through.
func TestOtherTunnelsPassTheStackBy(t *testing.T) {
	l := newLab(t)
	l.tunnel(vnet.VXLAN, under4)
	l.ping(inner(1))
	for i, hook := range []*nftables.ChainHook{nftables.ChainHookOutput, nftables.ChainHookInput} {
		defer l.refuse(l.hosts[i], hook)()
	}
	l.ping(inner(1))
}

// TestStackDeviceGoes: with the last tunnel that needs it, and nothing else is left of it.
func TestStackDeviceGoes(t *testing.T) {
	l := newLab(t)
	l.tunnel(vnet.KernelVXLAN, under4)
	l.ping(inner(1))
	l.transfer(4 << 20)
	l.tunnel(vnet.VXLAN, under4)
	l.ping(inner(1))
	for _, h := range l.hosts {
		check1(t, h.part.Observe(t.Context(), &plan.Host{}))
		if out, err := l.try(h.Namespace, "ip", "link", "show", stackName); err == nil {
			t.Errorf("it is there still: %s", out)
		}
	}
}

// TestStackDeviceIsRepaired: one that somebody deletes or takes down is observed as
// missing, and made anew.
func TestStackDeviceIsRepaired(t *testing.T) {
	l := newLab(t)
	l.tunnel(vnet.KernelVXLAN, under4)
	l.ping(inner(1))
	h := l.hosts[0]
	for what, harm := range map[string]func(){
		"deleted": func() { l.ip(h.Namespace, "link", "del", stackName) },
		"down":    func() { l.ip(h.Namespace, "link", "set", stackName, "down") },
	} {
		harm()
		var have plan.Host
		check1(t, h.part.Observe(t.Context(), &have))
		items := plan.Of[plan.Overlay](have)
		if len(items) != 1 || items[0].MTU != 0 {
			t.Errorf("%s: observed as %+v", what, items)
		}
		check1(t, h.part.Do(t.Context(), plan.Step{Op: plan.Set, Item: item(0, vnet.KernelVXLAN, under4)}))
		l.ping(inner(1))
	}
}

// TestStackTunnelsWantARoute: where the host's routes lead elsewhere, where its classes are
// not, a tunnel by its stack has no next hop.
func TestStackTunnelsWantARoute(t *testing.T) {
	l := newLab(t)
	l.tunnel(vnet.KernelVXLAN, under4)
	l.ping(inner(1))
	h := l.hosts[0]
	l.ip(h.Namespace, "link", "add", "aside", "type", "veth", "peer", "name", "aside1")
	l.ip(h.Namespace, "link", "set", "aside1", "up")
	l.ip(h.Namespace, "link", "set", "aside", "up")
	l.ip(h.Namespace, "route", "add", under4(1).String()+"/32", "dev", "aside")
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		problems := h.part.Problems()
		if len(problems) == 1 && strings.Contains(problems[0].Text, "no route") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("its problems are %+v", problems)
		}
	}
	l.ip(h.Namespace, "route", "del", under4(1).String()+"/32", "dev", "aside")
	l.ping(inner(1))
}

// TestStackTunnelsOfOthersAreRefused: what comes to the device's port from a port of any
// user, from another address, or by another way than the wire, gets nowhere.
func TestStackTunnelsOfOthersAreRefused(t *testing.T) {
	l := newLab(t)
	l.tunnel(vnet.KernelVXLAN, under4)
	l.ping(inner(1))
	frame := append([]byte{8, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 60)...)
	binary.BigEndian.PutUint32(frame[4:], number<<8)
	l.ip(l.hosts[1].Namespace, "addr", "add", "10.99.0.66/24", "dev", wire)
	l.ip(l.hosts[0].Namespace, "addr", "add", "10.99.0.67/24", "dev", wire)
	for _, c := range []struct {
		host       int
		from, port string
		cause      overlayDrop
	}{
		{1, under4(1).String(), "40000", overlayDropDROP_PORT}, {1, "10.99.0.66", "760", overlayDropDROP_SENDER},
		{0, "10.99.0.67", "760", overlayDropDROP_UNKNOWN}, // by the loopback
	} {
		before := l.drops(c.cause)
		s := l.socket(l.hosts[c.host].Namespace, c.from+":"+c.port, fmt.Sprintf("%s:%d", under4(0), bpf.PortStack))
		_, err := s.Write(frame)
		check1(t, err)
		s.Close()
		for end := time.Now().Add(5 * time.Second); l.drops(c.cause) == before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("a packet from %s:%s is not refused\n%s", c.from, c.port, l.tell())
			}
		}
	}
}

// TestTableByTheStack: a table of the operator's own goes by the host's stack, too.
func TestTableByTheStack(t *testing.T) {
	l := newLab(t)
	for i := range l.hosts {
		l.hosts[i].part.TablesFile = t.TempDir() + "/tables"
	}
	sites := [2]string{l.site(0), l.site(1)}
	for i := range l.hosts {
		table := own(i, 3)
		table.Encapsulation = vnet.KernelVXLAN
		check1(t, l.own(i, table))
	}
	l.pings(sites[0], inner(1), 3)
	lift := l.refuse(l.hosts[0], nftables.ChainHookOutput)
	if out, err := l.try(sites[0], "ping", "-c3", "-i0.05", "-W0.2", inner(1)); err == nil {
		t.Errorf("the firewall does not see it:\n%s", out)
	}
	lift()
	l.pings(sites[0], inner(1), 3)
	for i := range l.hosts {
		check1(t, l.hosts[i].part.ChangeTable(plan.TableChange{Table: "sites", Do: plan.TableRemove}))
	}
}

// silent wants no answer.
func (l *lab) silent(because string) {
	l.t.Helper()
	if out, err := l.try(l.hosts[0].node, "ping", "-c3", "-i0.05", "-W0.2", inner(1)); err == nil {
		l.t.Errorf("%s stops nothing:\n%s", because, out)
	}
}

// refuse has the host's firewall drop datagrams to the device's port at a hook, until what
// it returns is called.
func (l *lab) refuse(h *host, hook *nftables.ChainHook) (lift func()) {
	l.t.Helper()
	ns, err := kernel.OpenNamespace(h.Namespace)
	check1(l.t, err)
	l.t.Cleanup(func() { ns.Close() })
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	check1(l.t, err)
	table := c.AddTable(&nftables.Table{Name: "operator", Family: nftables.TableFamilyINet})
	chain := c.AddChain(&nftables.Chain{Name: "c", Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityFilter})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(bpf.PortStack)},
		&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop},
	}})
	check1(l.t, c.Flush())
	return func() {
		l.t.Helper()
		c.DelTable(table)
		check1(l.t, c.Flush())
	}
}
