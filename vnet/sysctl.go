package vnet

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Settings that a request may state. Each is of the node's network alone, and the
// node's root could set it inside. Left out are those that write to the log of the
// host (log_martians), that Sublet itself uses (tag), that unfold what only the
// host's administrator may (keys of IOAM and segment routing), and those by which a
// node that is there no longer answers (icmp_echo_ignore_all), since reach would
// take it for broken.
var (
	sysctls = []string{
		"net.core.somaxconn",
		"net.ipv4.fib_multipath_hash_policy",
		"net.ipv4.fib_multipath_use_neigh",
		ipForward,
		"net.ipv4.ip_default_ttl",
		"net.ipv4.ip_local_port_range",
		"net.ipv4.ip_nonlocal_bind",
		"net.ipv4.ip_unprivileged_port_start",
		"net.ipv4.ping_group_range",
		"net.ipv4.tcp_ecn",
		"net.ipv4.tcp_fastopen",
		"net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl",
		"net.ipv4.tcp_keepalive_probes",
		"net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_max_syn_backlog",
		"net.ipv4.tcp_mtu_probing",
		"net.ipv4.tcp_retries2",
		"net.ipv4.tcp_rmem",
		"net.ipv4.tcp_sack",
		"net.ipv4.tcp_slow_start_after_idle",
		"net.ipv4.tcp_syn_retries",
		"net.ipv4.tcp_syncookies",
		"net.ipv4.tcp_timestamps",
		"net.ipv4.tcp_tw_reuse",
		"net.ipv4.tcp_window_scaling",
		"net.ipv4.tcp_wmem",
		"net.ipv6.bindv6only",
		"net.ipv6.fib_multipath_hash_policy",
		"net.ipv6.ip_nonlocal_bind",
	}
	// conf are those of an interface, or of all or default in its place.
	conf = map[string][]string{
		"ipv4": {
			"accept_local", "accept_redirects", "accept_source_route", "arp_accept", "arp_announce", "arp_evict_nocarrier",
			"arp_filter", "arp_ignore", "arp_notify", "bc_forwarding", forwarding, "ignore_routes_with_linkdown",
			"promote_secondaries", "proxy_arp", "proxy_arp_pvlan", "route_localnet", "rp_filter", "secure_redirects",
			"send_redirects", "shared_media", "src_valid_mark",
		},
		"ipv6": {
			"accept_dad", "accept_ra", "accept_redirects", "accept_source_route", "addr_gen_mode", "autoconf",
			"dad_transmits", disableIPv6, forwarding, "hop_limit", "ignore_routes_with_linkdown", "keep_addr_on_down",
			"ndisc_notify", "optimistic_dad", "proxy_ndp", "router_solicitations", "use_tempaddr",
		},
	}
)

// Settings that are more than their node's matter.
const (
	ipForward   = "net.ipv4.ip_forward"
	forwarding  = "forwarding"
	disableIPv6 = "disable_ipv6"
)

// Places in conf that are no interface.
var everyInterface = []string{"all", "default"}

var sysctlValue = lazy(`^[0-9]{1,10}([ \t][0-9]{1,10}){0,2}$`)

// confOf takes net.FAMILY.conf.INTERFACE.WORD apart.
func confOf(name string) (family, device, word string, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 5 || parts[0] != "net" || parts[2] != "conf" || !slices.Contains(conf[parts[1]], parts[4]) {
		return "", "", "", false
	}
	return parts[1], parts[3], parts[4], true
}

// SafeSysctl says whether a request may state a setting.
func SafeSysctl(name string) bool {
	_, device, _, ok := confOf(name)
	return slices.Contains(sysctls, name) || ok && (slices.Contains(everyInterface, device) || device == "lo" || ValidInterface(device))
}

// SysctlDevice is the interface whose setting this is; "": none's.
func SysctlDevice(name string) string {
	if _, device, _, ok := confOf(name); ok && device != "lo" && !slices.Contains(everyInterface, device) {
		return device
	}
	return ""
}

// Settings lists the names of the settings in the order in which they are made:
// what sets others along with it comes before those.
func (s Setup) Settings() []string {
	rank := func(name string) int {
		_, device, _, _ := confOf(name)
		switch {
		case name == ipForward:
			return 0
		case device == "all":
			return 1
		}
		return 2
	}
	return slices.SortedFunc(maps.Keys(s.Sysctls), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
}

// Sysctls lists the settings that a request may state, those of interfaces for one
// place.
func Sysctls(device string) []string {
	list := slices.Clone(sysctls)
	for _, family := range slices.Sorted(maps.Keys(conf)) {
		for _, word := range conf[family] {
			list = append(list, "net."+family+".conf."+device+"."+word)
		}
	}
	return list
}

// nearestSysctl is what may have been meant.
func nearestSysctl(name string) string {
	parts := strings.Split(name, ".")
	if len(parts) != 5 || parts[2] != "conf" {
		return Nearest(name, sysctls)
	}
	near := Nearest(parts[4], conf[parts[1]])
	if near == "" {
		return ""
	}
	parts[4] = near
	return strings.Join(parts, ".")
}

func (s Setup) checkSysctls(path string) error {
	for _, name := range slices.Sorted(maps.Keys(s.Sysctls)) {
		if !SafeSysctl(name) {
			if near := nearestSysctl(name); near != "" && near != name {
				return fieldf(path, "%q is not a setting that a request may state: did you mean %q?", name, near)
			}
			return fieldf(path, "%q is not a setting that a request may state: docs/programs.md lists those of a node's network", name)
		}
		if !sysctlValue().MatchString(s.Sysctls[name]) {
			return fieldf(key(path, name), "%q is not up to three whole numbers: write one such as 1, or \"4096 87380 6291456\"", s.Sysctls[name])
		}
	}
	return nil
}

// checkForwarding keeps routers forwarding: their lease would not run.
func (n VirtualNode) checkForwarding(path, kind string) error {
	if kind != "router" || n.Protocol == ProtocolNone {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(n.Sysctls)) {
		_, _, word, _ := confOf(name)
		if (name == ipForward || word == forwarding) && strings.Trim(n.Sysctls[name], "0") == "" {
			return fieldf(key(path+".sysctls", name), "a router forwards: leave it out, state protocol: none, or write it under nodes")
		}
	}
	return nil
}

// deviceSysctls checks settings of single interfaces: they are there when the node
// begins, and IPv6 stays on where it has addresses.
func (c *checker) deviceSysctls(r Request) error {
	names, seen := r.Union().Interfaces(), make(map[string]bool)
	for _, top := range r.allStages() {
		var has map[string][]string
		for _, n := range top.All() {
			if seen[n.Name] || len(n.Sysctls) == 0 {
				continue
			}
			seen[n.Name] = true
			if has == nil {
				has = top.interfacesByNode(names)
			}
			if err := n.checkSysctlDevices(has[n.Name], r.Union().hasIPv6(n.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n VirtualNode) checkSysctlDevices(has []string, six bool) error {
	for _, name := range slices.Sorted(maps.Keys(n.Sysctls)) {
		device := SysctlDevice(name)
		if device != "" && !slices.Contains(has, device) {
			return fieldf("nodes", "%s has a setting %s and no interface %s when it begins: state that of one it has, or of all", n.Name, name, device)
		}
		if _, _, word, _ := confOf(name); word == disableIPv6 && strings.Trim(n.Sysctls[name], "0") != "" && six {
			return fieldf("nodes", "%s has addresses of IPv6 and %s: leave out one of them", n.Name, name)
		}
	}
	return nil
}

// interfacesByNode lists the names of what a topology's links are at each node.
func (t Topology) interfacesByNode(names map[string][2]string) map[string][]string {
	has := make(map[string][]string)
	for _, l := range t.Links {
		for end, node := range l.Ends {
			has[node] = append(has[node], names[l.Name][end])
		}
	}
	return has
}

// hasIPv6 says whether a link gives a node an address of IPv6.
func (t Topology) hasIPv6(node string) bool {
	for _, l := range t.Links {
		for end, name := range l.Ends {
			if name != node {
				continue
			}
			for _, p := range l.Addresses[end] {
				if p.Addr().Is6() {
					return true
				}
			}
		}
	}
	return false
}
