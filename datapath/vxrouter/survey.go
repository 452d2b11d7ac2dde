package vxrouter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// survey reads what the short way depends on in the router's namespace, on
// whose thread it runs. off says, for people, what it does not carry; "" is
// nothing.
func survey(c *kernel.Conn) (v view, off string, err error) {
	for _, read := range []func(*kernel.Conn, *view) (string, error){readLinks, readQueues, readSettings, readRules, readLocals, readTables, readNeighbours} {
		reason, err := read(c, &v)
		if err != nil {
			return v, "", err
		}
		if off == "" {
			off = reason
		}
	}
	if off == "" {
		off, err = glance()
	}
	return v, off, err
}

// glance looks for what the kernel does not tell of: packet sockets and
// netfilter. It runs every second.
func glance() (off string, err error) {
	sockets, err := os.ReadFile("/proc/thread-self/net/packet")
	if err != nil {
		return "", err
	}
	if bytes.Count(sockets, []byte("\n")) > 1 {
		return "packets are captured in it (a packet socket is open)", nil
	}
	tables, _ := os.ReadFile("/proc/thread-self/net/ip_tables_names") // no such file: no such module
	if len(tables) > 0 {
		return "iptables has tables in it: " + strings.Join(strings.Fields(string(tables)), ", "), nil
	}
	n, err := filterTables()
	if n > 0 {
		off = "nftables has tables in it"
	}
	return off, err
}

// readLinks finds the ports. A device on top of a port takes part of what
// comes in by it.
func readLinks(c *kernel.Conn, v *view) (off string, err error) {
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETLINK, 0, kernel.LinkHeader(0, 0, 0)).Uint32(unix.IFLA_EXT_MASK, 1<<3))
	if err != nil {
		return "", fmt.Errorf("read devices: %w", err)
	}
	v.ports = make(map[int]port)
	for _, b := range answers {
		l := parseDevice(b)
		switch {
		case l.kind == "veth" && l.up && l.abroad:
			v.ports[l.index] = l.port
			if l.master != 0 {
				off = l.name + " belongs to another device (bridge, bond or VRF)"
			}
		case l.below != 0 && !l.abroad && l.kind != "veth":
			off = l.name + " is a device on top of another"
		}
	}
	return off, nil
}

// netDevice is a device as far as it matters here.
type netDevice struct {
	port
	index, master, below int
	kind                 string
	up, abroad           bool // abroad: its other end is in another namespace
}

func parseDevice(b []byte) (l netDevice) {
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
			l.abroad = true
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
func readQueues(c *kernel.Conn, v *view) (off string, err error) {
	qdiscs, err := c.Qdiscs()
	if err != nil {
		return "", fmt.Errorf("read queues: %w", err)
	}
	for _, q := range qdiscs {
		p, ours := v.ports[q.Index]
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
	netconfIndex, netconfForwarding, netconfReverse, netconfLinkDown = 1, 2, 3, 6
	netconfAll                                                       = -1
)

// readSettings looks at forwarding and at the check of sources.
func readSettings(c *kernel.Conn, v *view) (off string, err error) {
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETNETCONF, 0, []byte{unix.AF_INET, 0, 0, 0}))
	if err != nil {
		return "", fmt.Errorf("read settings: %w", err)
	}
	for _, b := range answers {
		if len(b) < 4 || b[0] != unix.AF_INET {
			continue
		}
		set := make(map[uint16]int32)
		kernel.EachAttr(b[4:], func(kind uint16, value []byte) { set[kind] = int32(word(value)) })
		index := int(set[netconfIndex])
		p, ours := v.ports[index]
		if !ours && index != netconfAll {
			continue
		}
		switch {
		case ours && set[netconfForwarding] == 0:
			off = "forwarding is off on " + p.name
		case set[netconfReverse] != 0:
			off = "sources are checked (rp_filter)"
		case set[netconfLinkDown] != 0:
			off = "routes depend on carriers (ignore_routes_with_linkdown)"
		}
	}
	return off, nil
}

// readRules wants the three rules that every namespace begins with.
func readRules(c *kernel.Conn, _ *view) (off string, err error) {
	header := make([]byte, 12) // struct fib_rule_hdr
	header[0] = unix.AF_INET
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETRULE, 0, header))
	if err != nil {
		return "", fmt.Errorf("read rules: %w", err)
	}
	if len(answers) != 3 {
		return "it has routing rules of its own (ip rule)", nil
	}
	return "", nil
}

func readLocals(c *kernel.Conn, v *view) (off string, err error) {
	header := make([]byte, 8) // struct ifaddrmsg
	header[0] = unix.AF_INET
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETADDR, 0, header))
	if err != nil {
		return "", fmt.Errorf("read addresses: %w", err)
	}
	seen := make(map[netip.Addr]bool)
	for _, b := range answers {
		if len(b) < 8 {
			continue
		}
		kernel.EachAttr(b[8:], func(kind uint16, value []byte) {
			if a, ok := netip.AddrFromSlice(value); kind == unix.IFA_LOCAL && ok && a.Is4() && !a.IsLoopback() && !seen[a] {
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
	header := make([]byte, 12) // struct rtmsg
	header[0] = unix.AF_INET
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETROUTE, 0, header))
	if err != nil {
		return "", fmt.Errorf("read routes: %w", err)
	}
	for _, b := range answers {
		if r, ok := parseRoute(b); ok {
			v.routes = append(v.routes, r)
		}
	}
	if len(v.routes) > maxRoutes/2 {
		return fmt.Sprintf("it has %d routes, more than %d", len(v.routes), maxRoutes/2), nil
	}
	return "", nil
}

func readNeighbours(c *kernel.Conn, v *view) (off string, err error) {
	header := make([]byte, 12) // struct ndmsg
	header[0] = unix.AF_INET
	answers, err := c.Dump(kernel.NewMessage(unix.RTM_GETNEIGH, 0, header))
	if err != nil {
		return "", fmt.Errorf("read neighbours: %w", err)
	}
	v.neighbours = make(map[neighbour]hardware)
	for _, b := range answers {
		if n, mac, _, usable := parseNeighbour(b); usable && len(v.neighbours) < maxRoutes/2 {
			v.neighbours[n] = mac
		}
	}
	return "", nil
}

// filterTables counts the tables of nftables in the calling thread's
// namespace; a kernel without nftables has none.
func filterTables() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return 0, nil
	}
	defer unix.Close(fd)
	const getTable = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETTABLE
	m := make([]byte, unix.NLMSG_HDRLEN+4) // struct nfgenmsg, all families
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], getTable)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("ask for tables of nftables: %w", err)
	}
	answer := make([]byte, 16<<10)
	n, _, err := unix.Recvfrom(fd, answer, 0) // the first part says enough
	if err != nil {
		return 0, fmt.Errorf("read tables of nftables: %w", err)
	}
	if n < unix.NLMSG_HDRLEN {
		return 0, nil
	}
	switch binary.NativeEndian.Uint16(answer[4:]) {
	case unix.NLMSG_DONE, unix.NLMSG_ERROR: // an error: no such protocol
		return 0, nil
	}
	return 1, nil
}
