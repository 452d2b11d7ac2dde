package vxlink

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// tenants is a link whose port is in a node, and what does things to it.
type tenants struct {
	*bench
	part         *Part
	host         *kernel.Host
	node, fabric string
	link         plan.VxLink
}

func newTenants(t *testing.T, changes ...func(*plan.Port)) *tenants {
	b := newBench(t)
	hosts, parts := b.pair()
	x := &tenants{bench: b, part: parts[0], host: hosts[0], link: across(0, 100*vnet.Mbit)}
	x.node, x.fabric = b.node(x.host, "n0"), x.host.Path(plan.Fabric(demo))
	x.link.Ends[0].Port.More = []netip.Prefix{netip.MustParsePrefix("192.168.7.1/24"), netip.MustParsePrefix("2001:db8::1/64")}
	for _, change := range changes {
		change(x.link.Ends[0].Port)
	}
	add(t, x.part, uplink(), x.link)
	x.stands("at first")
	return x
}

// steps are what an agent would do.
func (x *tenants) steps() []plan.Step {
	x.t.Helper()
	want := plan.Host{}
	want.Add(uplink(), x.link)
	return plan.Diff(want, observe(x.t, x.part))
}

// stands fails if an agent would do something.
func (x *tenants) stands(when string) {
	x.t.Helper()
	if steps := x.steps(); len(steps) > 0 {
		x.t.Errorf("%s: %v", when, steps)
	}
}

// mended fails unless an agent does something, and nothing more afterwards.
func (x *tenants) mended(when string) {
	x.t.Helper()
	steps := x.steps()
	if len(steps) == 0 {
		x.t.Errorf("%s: nothing is mended", when)
	}
	for _, s := range steps {
		check(x.t, x.part.Do(x.t.Context(), s))
	}
	x.stands(when + ", then mended")
}

// shows fails unless the node's interface shows something.
func (x *tenants) shows(what string, yes bool) {
	x.t.Helper()
	if out := x.in(x.node, "ip", "address", "show", "dev", "eth0"); strings.Contains(out, what) != yes {
		x.t.Errorf("%q in the interface is not %t:\n%s", what, yes, out)
	}
}

// damage is something beside the tenant's changes that is to be mended.
func (x *tenants) damage() { x.in(x.fabric, "tc", "filter", "del", "dev", "l0a", "ingress") }

// TestInterfaceIsSetDownInside: it stays down, through repairs and another agent,
// until it is set up; then it has what the kernel took.
func TestInterfaceIsSetDownInside(t *testing.T) {
	x := newTenants(t)
	x.ip(x.node, "link", "set", "eth0", "down")
	x.stands("set down")
	problems := x.part.Problems()
	if len(problems) != 1 || problems[0].Text != "n0: eth0 is down inside" || problems[0].Op != plan.Carry || problems[0].Lease != demo {
		t.Errorf("told are %v", problems)
	}
	x.damage()
	x.mended("damaged while it is down")
	x.shows("state DOWN", true)
	x.part = New(x.host)
	x.stands("by another agent")
	x.ip(x.node, "address", "flush", "dev", "eth0")
	x.stands("flushed while it is down")
	x.shows("2001:db8::1/64", false)
	x.ip(x.node, "link", "set", "eth0", "up")
	x.mended("set up")
	for _, address := range []string{"10.0.0.1 peer 10.0.0.2/32", "192.168.7.1/24", "2001:db8::1/64"} {
		x.shows(address, true)
	}
	if problems := x.part.Problems(); len(problems) > 0 {
		t.Errorf("still told are %v", problems)
	}
}

// An interface that has no address, as those of functions, stays down, too.
func TestInterfaceWithoutAddressIsSetDownInside(t *testing.T) {
	x := newTenants(t, func(p *plan.Port) {
		*p = plan.Port{Namespace: p.Namespace, Interface: p.Interface, MTU: p.MTU}
	})
	x.ip(x.node, "link", "set", "eth0", "down")
	x.stands("set down")
	x.ip(x.node, "link", "set", "eth0", "up")
	x.stands("set up")
}

// An interface may be a port of a bridge that its tenant makes, and has to keep its name.
func TestInterfaceIsBridgedAndRenamedInside(t *testing.T) {
	x := newTenants(t, func(p *plan.Port) {
		*p = plan.Port{Namespace: p.Namespace, Interface: p.Interface, MTU: p.MTU}
	})
	x.ip(x.node, "link", "add", "br0", "type", "bridge")
	x.ip(x.node, "link", "set", "eth0", "master", "br0")
	x.ip(x.node, "link", "set", "br0", "up")
	x.stands("bridged")
	x.ip(x.node, "link", "set", "eth0", "down")
	x.ip(x.node, "link", "set", "eth0", "name", "in0")
	x.mended("renamed")
	x.shows("eth0", true)
}

// TestMTUIsLoweredInside: it stays, also when IPv6 ends with it, and a larger one
// than the link's does not.
func TestMTUIsLoweredInside(t *testing.T) {
	x := newTenants(t)
	for _, mtu := range []string{"1400", "1000"} {
		x.ip(x.node, "link", "set", "eth0", "mtu", mtu)
		x.stands("MTU " + mtu)
		x.damage()
		x.mended("damaged with MTU " + mtu)
		x.shows("mtu "+mtu, true)
	}
	x.shows("2001:db8::1/64", false)
	x.ip(x.node, "address", "flush", "dev", "eth0")
	x.mended("flushed with MTU 1000")
	x.shows("mtu 1000", true)
	x.shows("192.168.7.1/24", true)
	x.ip(x.node, "link", "set", "eth0", "mtu", "9000")
	x.mended("MTU 9000")
	x.shows("mtu 1450", true)
	x.shows("2001:db8::1/64", true)
}

// TestPlanChangesMTU: an interface follows, whose tenant did not lower it.
func TestPlanChangesMTU(t *testing.T) {
	x := newTenants(t)
	to := func(mtu int) {
		p := *x.link.Ends[0].Port
		p.MTU = mtu
		x.link.Ends[0].Port = &p
		x.mended("planned otherwise")
	}
	to(1400)
	x.shows("mtu 1400", true)
	to(1450)
	x.shows("mtu 1450", true)
	x.ip(x.node, "link", "set", "eth0", "mtu", "1300")
	to(1400)
	x.shows("mtu 1300", true)
	x.ip(x.node, "link", "set", "eth0", "down")
	to(1450)
	x.shows("mtu 1300", true)
	x.shows("state DOWN", true)
}

// ownMade is what a tenant makes at an interface, and how it is seen there.
var ownMade = []struct{ command, shown string }{
	{"address add 172.20.1.5/24 brd + dev eth0 label eth0:x", "inet 172.20.1.5/24 brd 172.20.1.255 scope global eth0:x"},
	{"address add 172.20.2.5 peer 172.20.2.6 dev eth0", "inet 172.20.2.5 peer 172.20.2.6/32 scope global eth0"},
	{"address add 2001:db8:7::5/64 dev eth0 nodad", "inet6 2001:db8:7::5/64 scope global"},
	{"route add default via 172.20.1.1 metric 7", "default via 172.20.1.1 dev eth0 metric 7"},
	{"route add 172.21.0.0/16 via 172.22.0.1 dev eth0 onlink mtu 1200", "172.21.0.0/16 via 172.22.0.1 dev eth0 onlink mtu 1200"},
	{"route add 172.23.0.0/16 via 172.20.2.6 table 77", "172.23.0.0/16 via 172.20.2.6 dev eth0 table 77"},
	{"-6 route add 2001:db8:8::/48 via 2001:db8:7::1", "2001:db8:8::/48 via 2001:db8:7::1 dev eth0 metric 1024"},
}

// makeOwn makes that, and has the agent look.
func (x *tenants) makeOwn() {
	x.t.Helper()
	for _, made := range ownMade {
		x.ip(x.node, strings.Fields(made.command)...)
	}
	x.ip(x.node, "link", "set", "eth0", "mtu", "1400")
	x.stands("made")
	x.hasOwn("made")
}

func (x *tenants) hasOwn(when string) {
	x.t.Helper()
	x.shows("mtu 1400", true)
	have := x.in(x.node, "ip", "address", "show", "dev", "eth0") + x.in(x.node, "ip", "route", "show", "table", "all") + x.in(x.node, "ip", "-6", "route")
	for _, made := range ownMade {
		if !strings.Contains(have, made.shown) {
			x.t.Errorf("%s: %q is not in\n%s", when, made.shown, have)
		}
	}
}

// TestOwnSettingsComeBack: an interface that is made again, whoever took it away, has
// the addresses, routes and MTU that root of its node gave the one before, also by
// another agent; what was taken away by hand stays away.
func TestOwnSettingsComeBack(t *testing.T) {
	x := newTenants(t)
	x.makeOwn()
	for _, do := range []struct{ when, where, command string }{
		{"deleted inside", x.node, "link delete eth0"},
		{"deleted outside", x.fabric, "link delete l0a"},
		{"renamed", x.node, "link set eth0 name in0"},
	} {
		x.ip(do.where, strings.Fields(do.command)...)
		x.mended(do.when)
		x.hasOwn(do.when)
	}
	check(t, kernel.Unbind(x.node))
	observe(t, x.part) // there is none
	x.bench.node(x.host, "n0")
	x.mended("in a node that was made anew")
	x.hasOwn("in a node that was made anew")
	x.part = New(x.host)
	x.stands("by another agent")
	x.ip(x.node, "link", "delete", "eth0")
	x.mended("by another agent")
	x.hasOwn("by another agent")
	x.ip(x.node, "address", "delete", "172.20.1.5/24", "dev", "eth0")
	x.stands("an address is deleted")
	x.ip(x.node, "link", "delete", "eth0")
	x.mended("an address was deleted")
	x.shows("172.20.1.5", false)
	x.shows("172.20.2.5", true)
}

// TestOwnStateComesBack: what was set down is down again, and a new link knows nothing
// of a former one.
func TestOwnStateComesBack(t *testing.T) {
	x := newTenants(t)
	x.makeOwn()
	x.ip(x.node, "link", "set", "eth0", "down")
	x.stands("set down")
	x.ip(x.node, "link", "delete", "eth0")
	x.mended("deleted while it was down")
	x.shows("state DOWN", true)
	x.shows("172.20.1.5", true)
	x.ip(x.node, "link", "set", "eth0", "name", "in0")
	x.mended("renamed while it was down")
	x.shows("state UP", true)
	x.shows("172.20.1.5", true)
	check(t, x.part.Do(t.Context(), plan.Step{Op: plan.Delete, Item: x.link}))
	add(t, x.part, x.link)
	x.stands("made anew")
	x.shows("state UP", true)
	x.shows("172.20.1.5", false)
}

// TestHalfMadePortIsCompleted: what a killed agent left down is no tenant's.
func TestHalfMadePortIsCompleted(t *testing.T) {
	x := newTenants(t)
	x.ip(x.fabric, "link", "set", "l0a", "down", "alias", "")
	x.ip(x.node, "link", "set", "eth0", "down", "mtu", "1400")
	x.mended("half made")
	x.shows("mtu 1450", true)
	x.shows("state UP", true)
}

// TestSwitchesPortIsSetUp: in a switch nobody is root.
func TestSwitchesPortIsSetUp(t *testing.T) {
	b := newBench(t)
	p, host := b.host("h1")
	b.node(host, "n0")
	link := local(0)
	is := plan.Port{Namespace: plan.SwitchNamespace(demo, "sw", vnet.SwitchKernel), Interface: "p0", MTU: 1450}
	link.Ends[1].Port = &is
	inside := b.namespace(host.Path(is.Namespace))
	add(t, p, link)
	for _, do := range [][]string{{"link", "set", "p0", "down"}, {"link", "set", "p0", "mtu", "1000"}} {
		b.ip(inside, do...)
		repaired(t, p, link, strings.Join(do, " "))
	}
	if have := plan.Of[plan.VxLink](observe(t, p)); !reflect.DeepEqual(have, []plan.VxLink{link}) {
		t.Errorf("observed %v", have)
	}
}

// What one tenant sets down takes no more than so much of a report.
func TestProblemsOfALeaseAreBounded(t *testing.T) {
	p := &Part{down: make(map[string]report.ItemError)}
	for _, tenant := range []vnet.TenantID{"alice", "bob"} {
		for i := range map[vnet.TenantID]int{"alice": 100 * mostDown, "bob": 1}[tenant] {
			key := fmt.Sprint(tenant, i)
			p.down[key] = report.ItemError{Key: key, Lease: vnet.LeaseID{Tenant: tenant, Network: "net"}}
		}
	}
	list := p.Problems()
	if len(list) != mostDown+1 || list[mostDown].Lease.Tenant != "bob" {
		t.Errorf("%d problems: %v", len(list), list)
	}
}
