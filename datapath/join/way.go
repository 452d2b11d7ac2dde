package join

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// device is the node's end of the tunnel. No link's device has its name.
const device = "wg0"

// Rules of the node's namespace. The kernel looks first whether an address is its
// own, which the node's would be: so that rule goes behind the one that leads what
// is for the node into the tunnel.
const (
	tunnelRule = 10
	localRule  = 100
	tableWay   = 77
)

func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
}

func rule(priority, table int, to *net.IPNet) *netlink.Rule {
	r := netlink.NewRule()
	r.Family, r.Priority, r.Table, r.Dst = unix.AF_INET, priority, table, to
	return r
}

// rulesOf are those that a namespace has besides the kernel's.
func rulesOf(j plan.Join) []*netlink.Rule {
	return []*netlink.Rule{rule(localRule, unix.RT_TABLE_LOCAL, nil), rule(tunnelRule, tableWay, host(j.Address))}
}

// in runs f in a namespace with a netlink handle of it.
func in(ns *os.File, f func(*netlink.Handle) error) error {
	return kernel.In(ns, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		return f(h)
	})
}

// makeWay joins the node's links and the tunnel.
func makeWay(ns *os.File, j plan.Join) error {
	return in(ns, func(h *netlink.Handle) error {
		l, err := h.LinkByName(device)
		if err != nil {
			return fmt.Errorf("find device %s: %w", device, err)
		}
		if err := kernel.Sysctl("ipv6/conf/"+device+"/disable_ipv6", "1"); err != nil {
			return err
		}
		if err := errors.Join(h.LinkSetMTU(l, j.MTU), h.LinkSetUp(l)); err != nil {
			return err
		}
		for _, s := range settings(j) {
			if err := kernel.Sysctl(s[0], s[1]); err != nil {
				return err
			}
		}
		return route(h, l, j)
	})
}

// settings are of the kernel, by name: between the links and the tunnel is
// forwarded, and the links answer at once for the node's address.
func settings(j plan.Join) [][2]string {
	list := [][2]string{
		{"ipv4/conf/" + device + "/forwarding", "1"}, {"ipv4/conf/" + device + "/rp_filter", "1"},
		{"ipv4/conf/" + device + "/accept_redirects", "0"}, {"ipv4/conf/" + device + "/send_redirects", "0"},
	}
	for _, d := range j.Devices {
		list = append(list, [2]string{"ipv4/conf/" + d + "/forwarding", "1"}, [2]string{"ipv4/conf/" + d + "/proxy_arp", "1"},
			[2]string{"ipv4/neigh/" + d + "/proxy_delay", "0"}, [2]string{"ipv4/conf/" + d + "/send_redirects", "0"})
	}
	return list
}

func route(h *netlink.Handle, l netlink.Link, j plan.Join) error {
	have, err := h.RuleList(unix.AF_INET)
	if err != nil {
		return err
	}
	err = h.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: host(j.Address), Table: tableWay, Scope: netlink.SCOPE_LINK, Protocol: unix.RTPROT_STATIC})
	if err != nil {
		return fmt.Errorf("lead %s into the tunnel: %w", j.Address, err)
	}
	for _, want := range rulesOf(j) {
		if !hasRule(have, want) {
			if err := h.RuleAdd(want); err != nil {
				return fmt.Errorf("add rule %v: %w", want, err)
			}
		}
	}
	for i := range have {
		if old := &have[i]; old.Priority == 0 || old.Priority == tunnelRule && !hasRule([]netlink.Rule{*old}, rulesOf(j)[1]) {
			old.Family = unix.AF_INET
			if err := h.RuleDel(old); err != nil {
				return fmt.Errorf("remove rule %v: %w", old, err)
			}
		}
	}
	return nil
}

func hasRule(list []netlink.Rule, want *netlink.Rule) bool {
	for _, r := range list {
		if r.Priority == want.Priority && r.Table == want.Table && text(r.Dst) == text(want.Dst) {
			return true
		}
	}
	return false
}

func text(n *net.IPNet) string {
	if n == nil {
		return ""
	}
	return n.String()
}

// isWay says whether the namespace is as makeWay leaves it.
func isWay(ns *os.File, j plan.Join) (right bool, err error) {
	err = in(ns, func(h *netlink.Handle) error {
		l, err := h.LinkByName(device)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil
		}
		if err != nil {
			return err
		}
		rules, err := h.RuleList(unix.AF_INET)
		if err != nil {
			return err
		}
		routes, err := h.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: tableWay}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return err
		}
		right = l.Attrs().Flags&net.FlagUp != 0 && l.Attrs().MTU == j.MTU &&
			len(routes) == 1 && text(routes[0].Dst) == text(host(j.Address)) && routes[0].LinkIndex == l.Attrs().Index
		for _, want := range rulesOf(j) {
			right = right && hasRule(rules, want)
		}
		for _, r := range rules {
			right = right && r.Priority != 0
		}
		for _, s := range settings(j) {
			have, err := os.ReadFile("/proc/sys/net/" + s[0])
			right = right && err == nil && strings.TrimSpace(string(have)) == s[1]
		}
		return nil
	})
	return right, err
}

// clearWay leaves a namespace that the node goes on with as it was before.
func clearWay(ns *os.File) error {
	return in(ns, func(h *netlink.Handle) error {
		have, err := h.RuleList(unix.AF_INET)
		if err != nil {
			return err
		}
		if !hasRule(have, rule(localRule, unix.RT_TABLE_LOCAL, nil)) {
			return nil
		}
		if !hasRule(have, rule(0, unix.RT_TABLE_LOCAL, nil)) {
			if err := h.RuleAdd(rule(0, unix.RT_TABLE_LOCAL, nil)); err != nil {
				return err
			}
		}
		for _, r := range have {
			if r.Priority == localRule || r.Priority == tunnelRule {
				r.Family = unix.AF_INET
				if err := h.RuleDel(&r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
