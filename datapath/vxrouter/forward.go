package vxrouter

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"sublet/datapath/kernel"
)

// mark is a number that IPv4 keeps for administrators and does nothing with
// (net.ipv4.conf.all.tag): it says that Sublet routes this node, and made it a
// router. What the tenant sets afterwards, forwarding above all, is theirs.
const mark = "ipv4/conf/all/tag"

// Values of the mark. A node whose mark the tenant changed is made anew.
const (
	markEnd    = Protocol
	markRouter = Protocol + 1
)

func markOf(forward bool) string {
	if forward {
		return strconv.Itoa(markRouter)
	}
	return strconv.Itoa(markEnd)
}

// makeForwarding makes the calling thread's namespace a router or none, once:
// one that is marked already has the settings that its tenant wants.
func makeForwarding(on bool) error {
	if readSysctl(mark) == markOf(on) {
		return nil
	}
	if err := errors.Join(writeForwarding(on), ignoreDead("1")); err != nil {
		return err
	}
	return setSysctl(mark, markOf(on)) // last: what went before is complete
}

// writeForwarding switches forwarding of the calling thread's namespace.
func writeForwarding(on bool) error {
	value := "0"
	if on {
		value = "1"
		if err := noRedirects(); err != nil {
			return err
		}
	}
	return setSysctls([][2]string{
		{"ipv4/ip_forward", value}, {"ipv6/conf/all/forwarding", value},
		{"ipv4/conf/all/rp_filter", "0"}, {"ipv4/conf/default/rp_filter", "0"},
	})
}

// ignoreDead says whether what leads to an interface without carrier is passed over,
// so that other ways are taken.
func ignoreDead(value string) error {
	return setSysctls([][2]string{
		{"ipv4/conf/all/ignore_routes_with_linkdown", value},
		{"ipv6/conf/all/ignore_routes_with_linkdown", value}, {"ipv6/conf/default/ignore_routes_with_linkdown", value},
	})
}

func clearForwarding() error {
	if err := errors.Join(writeForwarding(false), ignoreDead("0")); err != nil {
		return err
	}
	return setSysctl(mark, "0")
}

// noRedirects stops a router from telling its neighbours of shorter routes: where a
// switch keeps two stations apart, the way through the router is the planned
// one. A setting of one interface counts beside that of all of them.
func noRedirects() error {
	names, err := os.ReadDir("/proc/sys/net/ipv4/conf")
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := setSysctl("ipv4/conf/"+n.Name()+"/send_redirects", "0"); err != nil {
			return err
		}
	}
	return nil
}

func setSysctls(list [][2]string) error {
	for _, s := range list {
		if err := setSysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

// setSysctl writes only what differs: writing rp_filter flushes route caches.
func setSysctl(name, value string) error {
	if readSysctl(name) == value {
		return nil
	}
	return kernel.Sysctl(name, value)
}

// readForwarding tells whether the namespace was made a router, and whether it
// is ours.
func readForwarding() (on, ours bool, err error) {
	have, err := os.ReadFile("/proc/sys/net/" + mark)
	switch strings.TrimSpace(string(have)) {
	case strconv.Itoa(markRouter):
		return true, true, nil
	case strconv.Itoa(markEnd):
		return false, true, nil
	}
	return false, false, err
}

func readSysctl(name string) string {
	data, err := os.ReadFile("/proc/sys/net/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
