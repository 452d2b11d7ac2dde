package vxrouter

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sublet/datapath/hop"
	"sublet/datapath/kernel"
)

// surveyPorts reads what both families depend on in the router's namespace, on
// whose thread it runs. off says, for people, what the fast path does not
// carry; "" is nothing.
func surveyPorts(c *kernel.Conn, fabric int) (ports map[int]port, off string, err error) {
	ports, off, err = readLinks(c, fabric)
	if err != nil {
		return nil, "", err
	}
	queues, err := readQueues(c, ports)
	if err != nil {
		return nil, "", err
	}
	if off = cmp.Or(off, queues); off == "" {
		off, err = pollState()
	}
	return ports, off, err
}

// survey reads what one family depends on. most is how many rows the program's
// table holds: routes and neighbours may have half of them each.
func survey(c *kernel.Conn, f *family, ports map[int]port, most int) (v view, off string, err error) {
	v = view{family: f, ports: ports, most: most / 2}
	if f == ipv6 {
		if v.ports, err = narrow(ports); err != nil {
			return v, "", err
		}
	}
	for _, read := range []func(*kernel.Conn, *view) (string, error){readSettings, readRules, readLocals, readTables, readNeighbours} {
		reason, err := read(c, &v)
		if err != nil {
			return v, "", err
		}
		off = cmp.Or(off, reason)
	}
	return v, off, nil
}

// narrow gives ports the MTU that IPv6 has there (net.ipv6.conf.DEVICE.mtu),
// where it is less than the device's.
func narrow(ports map[int]port) (map[int]port, error) {
	ports = maps.Clone(ports)
	for i, p := range ports {
		own, err := strconv.Atoi(readSysctl("ipv6/conf/" + p.name + "/mtu"))
		if err == nil && own < p.mtu { // an error: no IPv6 on it, so no routes
			p.mtu, p.less = own, true
			ports[i] = p
		}
	}
	return ports, nil
}

// readLinks finds the ports; fabric is the id of the namespace that the lease's
// links come from. A device on top of a port takes part of what comes in by it.
func readLinks(c *kernel.Conn, fabric int) (ports map[int]port, off string, err error) {
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETLINK, 0, kernel.LinkHeader(0, 0, 0)).Uint32(unix.IFLA_EXT_MASK, 1<<3))
	if err != nil {
		return nil, "", fmt.Errorf("read devices: %w", err)
	}
	ports = make(map[int]port)
	for _, b := range answers {
		l := parseDevice(b)
		switch {
		case l.kind == "veth" && l.up && l.abroad >= 0:
			l.slot = hop.SlotOf(l.below, l.abroad, fabric)
			ports[l.index] = l.port
			if l.master != 0 {
				off = l.name + " belongs to another device (bridge, bond or VRF)"
			}
		case l.below != 0 && l.abroad < 0 && l.kind != "veth":
			off = l.name + " is a device on top of another"
		}
	}
	return ports, off, nil
}

// netDevice is a device as far as it matters here.
type netDevice struct {
	port
	index, master, below int
	kind                 string
	up                   bool
	abroad               int // id of the namespace of its other end; -1: this one
}

func parseDevice(b []byte) (l netDevice) {
	l.abroad = -1
	if len(b) < 16 {
		return l
	}
	l.index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	l.up = binary.NativeEndian.Uint32(b[8:])&unix.IFF_UP != 0
	kernel.EachAttr(b[16:], func(kind uint16, value []byte) {
		switch kind {
		case unix.IFLA_IFNAME:
			l.name = text(value)
		case unix.IFLA_ADDRESS:
			if len(value) == 6 {
				l.mac = hardware(value)
			}
		case unix.IFLA_MTU:
			l.mtu = int(word(value))
		case unix.IFLA_MASTER:
			l.master = int(word(value))
		case unix.IFLA_LINK:
			l.below = int(word(value))
		case unix.IFLA_LINK_NETNSID:
			l.abroad = int(int32(word(value)))
		case unix.IFLA_LINKINFO:
			kernel.EachAttr(value, func(kind uint16, value []byte) {
				if kind == unix.IFLA_INFO_KIND {
					l.kind = text(value)
				}
			})
		}
	})
	return l
}

func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return string(b[:i])
	}
	return string(b)
}

// readQueues looks for queues and filters on the ports.
func readQueues(c *kernel.Conn, ports map[int]port) (off string, err error) {
	qdiscs, err := c.Qdiscs()
	if err != nil {
		return "", fmt.Errorf("read queues: %w", err)
	}
	for _, q := range qdiscs {
		p, ours := ports[q.Index]
		switch {
		case !ours:
		case q.Parent == kernel.TCClsact:
			off = "tc filters may be on " + p.name + " (it has " + q.Kind + ")"
		case q.Handle != 0 || q.Kind != "noqueue":
			off = p.name + " has a queue of its own (" + q.Kind + ")"
		}
	}
	return off, nil
}

// Attributes of RTM_GETNETCONF (linux/netconf.h), and the index of "all".
const (
	netconfIndex, netconfForwarding, netconfReverse, netconfProxy = 1, 2, 3, 5
	netconfAll                                                    = -1
)

// readSettings looks at forwarding and at the check of sources.
func readSettings(c *kernel.Conn, v *view) (off string, err error) {
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETNETCONF, 0, v.header(4)))
	if err != nil {
		return "", fmt.Errorf("read settings: %w", err)
	}
	for _, b := range answers {
		if len(b) < 4 || b[0] != v.af {
			continue
		}
		set := make(map[uint16]int32)
		kernel.EachAttr(b[4:], func(kind uint16, value []byte) { set[kind] = int32(word(value)) })
		index := int(set[netconfIndex])
		if p, ours := v.ports[index]; ours || index == netconfAll {
			off = cmp.Or(off, v.setting(set, p.name))
		}
	}
	return off, nil
}

// setting judges the settings of a port, or, without a name, of all. IPv6
// forwards by one setting for all ports, IPv4 by that of the port.
func (v *view) setting(set map[uint16]int32, port string) string {
	switch {
	case set[netconfForwarding] == 0 && v.family == ipv4 && port != "":
		return "forwarding is off on " + port
	case set[netconfForwarding] == 0 && v.family == ipv6 && port == "":
		return "forwarding is off"
	case set[netconfReverse] != 0 && v.family == ipv4:
		return "sources are checked (rp_filter)"
	case set[netconfProxy] != 0 && v.family == ipv6:
		return "it answers for others (proxy_ndp)"
	}
	return ""
}

// readRules wants the rules that every namespace begins with.
func readRules(c *kernel.Conn, v *view) (off string, err error) {
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETRULE, 0, v.header(12))) // struct fib_rule_hdr
	if err != nil {
		return "", fmt.Errorf("read rules: %w", err)
	}
	switch ours, err := c.Rules(Protocol); {
	case err != nil:
		return "", fmt.Errorf("read rules: %w", err)
	case len(answers) == v.rules+len(slices.DeleteFunc(ours, func(r kernel.Rule) bool { return r.Family != v.af })) && len(answers) != v.rules:
		return "it routes by classes of traffic", nil
	case len(answers) != v.rules:
		return "it has routing rules of its own (ip rule)", nil
	}
	return "", nil
}

// readLocals finds the router's own addresses, which are no sender's of IPv4
// packets that are forwarded. IPv6 does not look.
func readLocals(c *kernel.Conn, v *view) (off string, err error) {
	if v.family == ipv6 {
		return "", nil
	}
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETADDR, 0, v.header(8))) // struct ifaddrmsg
	if err != nil {
		return "", fmt.Errorf("read addresses: %w", err)
	}
	seen := make(map[netip.Addr]bool)
	for _, b := range answers {
		if len(b) < 8 {
			continue
		}
		kernel.EachAttr(b[8:], func(kind uint16, value []byte) {
			if a, ok := v.address(value); kind == unix.IFA_LOCAL && ok && !a.IsLoopback() && !seen[a] {
				seen[a] = true
				v.locals = append(v.locals, a)
			}
		})
	}
	if len(v.locals) > maxLocals {
		return fmt.Sprintf("it has %d addresses, more than %d", len(v.locals), maxLocals), nil
	}
	return "", nil
}

func readTables(c *kernel.Conn, v *view) (off string, err error) {
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETROUTE, 0, v.header(12))) // struct rtmsg
	if err != nil {
		return "", fmt.Errorf("read routes: %w", err)
	}
	wide := 0
	for _, b := range answers {
		if r, ok := v.parseRoute(b); ok {
			v.routes = append(v.routes, r)
			if r.local && !r.prefix.IsSingleIP() {
				wide++
			}
		}
	}
	switch {
	case len(v.routes) > v.most:
		return fmt.Sprintf("it has %d routes, more than %d", len(v.routes), v.most), nil
	case !v.oneTrie && wide > maxWide:
		return fmt.Sprintf("its table local has %d prefixes, more than %d", wide, maxWide), nil
	}
	return "", nil
}

// maxWide bounds the search for what table local hides of main.
const maxWide = 64

func readNeighbours(c *kernel.Conn, v *view) (off string, err error) {
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETNEIGH, 0, v.header(12))) // struct ndmsg
	if err != nil {
		return "", fmt.Errorf("read neighbours: %w", err)
	}
	v.neighbours = make(map[neighbour]hardware)
	for _, b := range answers {
		if n, mac, _, usable := parseNeighbour(b); usable && n.address.BitLen() == v.bits && len(v.neighbours) < v.most {
			v.neighbours[n] = mac
		}
	}
	return "", nil
}
