package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"

	"sublet/plan"
	"sublet/vnet"
)

// changedInside is a tenant's change in a node: a shell's commands, what shows it,
// and whether it stays.
type changedInside struct {
	node, do, shows string
	stays           bool
}

// tenantsChanges are of each kind, those that stay first. What does not is between
// b and r, and seen by b's ping. A larger MTU than the link carries comes back to
// that of the link.
var tenantsChanges = []changedInside{
	{"a", "ip address add 10.99.0.1/32 dev eth0", "ip -4 address show dev eth0 | grep -q 10.99.0.1", true},
	{"a", "ip link add mine type veth peer name mine2; ip link set mine mtu 999 up", "ip link show mine | grep -q 'mtu 999'", true},
	{"a", "ip route add blackhole 10.98.0.0/16", "ip route show 10.98.0.0/16 | grep -q blackhole", true},
	{"r", "ip route add 10.96.0.0/16 dev eth0", "ip route show 10.96.0.0/16 | grep -q eth0", true},
	{"a", "ip rule add pref 5000 from 10.97.0.0/16 lookup main", "ip rule | grep -q 10.97", true},
	{"a", "tc qdisc replace dev eth0 root pfifo limit 77", "tc qdisc show dev eth0 | grep -q 'limit 77p'", true},
	{"a", "tc qdisc add dev eth0 clsact; tc filter add dev eth0 egress prio 7 u32 match u32 0 0 flowid 1:1", "tc filter show dev eth0 egress | grep -q 'pref 7 '", true},
	{"r", "sysctl -qw net.ipv4.conf.eth0.send_redirects=0", "test $(sysctl -n net.ipv4.conf.eth0.send_redirects) = 0", true},
	{"a", "ip neigh add 10.99.0.9 lladdr 02:00:00:00:00:09 dev eth0 nud permanent", "ip neigh show 10.99.0.9 | grep -q PERMANENT", true},
	{"r", "ip link set eth1 mtu 1000", "ip link show eth1 | grep -q 'mtu 1000'", true},
	{"a", "ip link set eth0 mtu 9000", "ip link show eth0 | grep -q 'mtu 9000'", false},
	{"b", "ip address flush dev eth0", "! ip -4 address show dev eth0 | grep -q inet", false},
	{"b", "ip route flush proto 155", "! ip route show proto 155 | grep -q .", false},
	{"b", "ip link set eth0 down; ip link set eth0 name eth9; ip link set eth9 up", "ip link show eth9", false},
	{"b", "ip link delete eth0", "test $(sysctl -n net.ipv4.conf.eth0.arp_announce || echo 0) != 2", false},
	{"r", "ip link set eth1 down; ip address flush dev eth1; ip link set eth1 up", "! ip -4 address show dev eth1 | grep -q inet", false},
}

// TestWhatATenantChangesInside: what root of a node changes stays where it harms
// nobody, through all that is mended beside it; what takes its place in the network
// away is undone, and told.
//
//	a - r - b
func TestWhatATenantChangesInside(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up("network: n\nnodes: [{name: a, host: h1}, {name: b, host: h2, sysctls: {net.ipv4.conf.eth0.arp_announce: \"2\"}}]\nrouters: [{name: r, host: h1}]\nlinks: [{ends: [a, r], rate: 10Mbit}, {ends: [r, b], rate: 10Mbit}]\n")
	for _, c := range tenantsChanges {
		if c.stays {
			l.must("exec", "n/"+c.node, "--", "sh", "-ec", c.do)
		}
	}
	l.filters("a")
	for _, c := range tenantsChanges {
		if c.stays {
			continue
		}
		before := l.repairs("n")
		l.must("exec", "n/"+c.node, "--", "sh", "-c", c.do)
		eventually(t, 10*time.Second, func() error {
			if r := l.sublet("exec", "n/"+c.node, "--", "sh", "-c", c.shows+" >/dev/null 2>&1"); r.code == 0 {
				return fmt.Errorf("%s in %s stays", c.do, c.node)
			}
			if l.repairs("n") == before {
				return fmt.Errorf("%s in %s was undone and is not told", c.do, c.node)
			}
			return l.pinged("n", "b", "a")
		})
	}
	for _, c := range tenantsChanges {
		if c.stays {
			if r := l.sublet("exec", "n/"+c.node, "--", "sh", "-c", c.shows); r.code != 0 {
				t.Errorf("%s in %s was undone: %s%s", c.do, c.node, r.out, r.err)
			}
		}
	}
	if !l.hasFilters("a") {
		t.Error("the tenant's table of nftables is gone")
	}
	eventually(t, 10*time.Second, func() error {
		if state, message, _ := l.stateOf("n"); state != vnet.Running {
			return fmt.Errorf("it is %s: %s", state, message)
		}
		if out := l.must("events", "n"); !strings.Contains(out, "repaired") {
			return fmt.Errorf("no event tells of repairs:\n%s", out)
		}
		return nil
	})
	l.settled()
}

// repairs is how many a network has had.
func (l *lab) repairs(network string) uint64 {
	l.t.Helper()
	for _, v := range decode[[]struct {
		Network string
		Repairs *vnet.Repairs
	}](l.t, l.must("leases", "-o", "json")) {
		if v.Network == network && v.Repairs != nil {
			return v.Repairs.Count
		}
	}
	return 0
}

// tenantsTable is a table of nftables that a tenant makes.
const tenantsTable = "mine"

// filters makes it in a node of network n on h1.
func (l *lab) filters(node string) {
	l.t.Helper()
	within(l.t, l.run+"/netns/h1/"+plan.Namespace(l.leaseOf("n"), node), func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		c.AddTable(&nftables.Table{Name: tenantsTable, Family: nftables.TableFamilyINet})
		return c.Flush()
	})
}

// hasFilters says whether it is there.
func (l *lab) hasFilters(node string) (has bool) {
	l.t.Helper()
	within(l.t, l.run+"/netns/h1/"+plan.Namespace(l.leaseOf("n"), node), func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		_, err = c.ListTableOfFamily(tenantsTable, nftables.TableFamilyINet)
		has = err == nil
		return nil
	})
	return has
}
