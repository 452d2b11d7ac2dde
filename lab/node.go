package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/vnet"
)

// makeNamespaces makes the wires, hosts and switches, without links.
func (l *layout) makeNamespaces(ctx context.Context) error {
	if err := shareNetnsDir(); err != nil {
		return err
	}
	for i, name := range l.namespaces() {
		if err := ctx.Err(); err != nil {
			return err
		}
		number := i - len(l.substrate.Hosts) // after the wires come the hosts
		if err := makeNamespace(name, number); err != nil {
			return fmt.Errorf("make namespace %s: %w", name, err)
		}
	}
	return nil
}

// shareNetnsDir does what `ip netns add` does first: namespaces mounted there
// later are seen, and can be unmounted, from every mount namespace.
func shareNetnsDir() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	err := unix.Mount("", netnsDir, "", unix.MS_SHARED|unix.MS_REC, "")
	if err != unix.EINVAL { // EINVAL: not a mount point yet
		return err
	}
	if err := unix.Mount(netnsDir, netnsDir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", netnsDir, err)
	}
	return unix.Mount("", netnsDir, "", unix.MS_SHARED|unix.MS_REC, "")
}

func makeNamespace(name string, number int) error {
	ns, err := kernel.NewNamespace(func() error { return setSysctls(number) })
	if err != nil {
		return err
	}
	defer ns.Close()
	return kernel.Bind(ns, filepath.Join(netnsDir, name))
}

// setSysctls runs inside the namespace, before it has devices; switches, which
// forward, have numbers from 1 on. Packets may come and go by different links,
// and the underlay is IPv4 only. A switch chooses among equal ways by addresses
// and ports, and each by a seed of its own (Linux 6.11): with one for all, what
// the first switch sends one way, the next would too. It sends nothing to a wire
// without a carrier while another of its routes leads there too.
func setSysctls(number int) error {
	values := [][2]string{
		{"ipv4/ip_forward", "0"},
		{"ipv4/conf/all/rp_filter", "0"},
		{"ipv4/conf/default/rp_filter", "0"},
		{"ipv6/conf/all/disable_ipv6", "1"},
		{"ipv6/conf/default/disable_ipv6", "1"},
	}
	if number > 0 {
		values[0][1] = "1"
		values = append(values, [2]string{"ipv4/fib_multipath_hash_policy", "1"}, [2]string{"ipv4/fib_multipath_hash_seed", fmt.Sprint(number)},
			[2]string{"ipv4/conf/all/ignore_routes_with_linkdown", "1"}, [2]string{"ipv4/conf/default/ignore_routes_with_linkdown", "1"})
	}
	for _, v := range values {
		if err := kernel.Sysctl(v[0], v[1]); err != nil {
			return err
		}
	}
	c, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	const loopback = 1 // the first device of every namespace
	return c.Do(kernel.UpLink(loopback))
}

// open gives a netlink socket in a namespace of the lab.
func openNamespace(name string) (*os.File, *kernel.Conn, error) {
	ns, err := kernel.OpenNamespace(filepath.Join(netnsDir, name))
	if err != nil {
		return nil, nil, err
	}
	c, err := kernel.DialIn(ns)
	if err != nil {
		ns.Close()
		return nil, nil, err
	}
	return ns, c, nil
}

// route gives every node its addresses and routes.
func (l *layout) route(ctx context.Context) error {
	ways, err := forwarding(l.substrate)
	if err != nil {
		return err
	}
	for _, node := range l.nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.routeNode(node, ways); err != nil {
			return fmt.Errorf("set addresses and routes of %s: %w", l.namespace(node), err)
		}
	}
	return nil
}

func (l *layout) routeNode(node string, ways map[string]map[string]int) error {
	ns, c, err := openNamespace(l.namespace(node))
	if err != nil {
		return err
	}
	defer ns.Close()
	defer c.Close()
	devices, err := l.addresses(c, node)
	if err != nil {
		return err
	}
	if l.ospf {
		own, _ := Loopback(l.substrate, node)
		const loopback = 1
		if err := c.AddAddress(kernel.Address{Index: loopback, Local: own, Reach: netip.PrefixFrom(own, 32)}); err != nil {
			return err
		}
	}
	if slices.Contains(l.substrate.Switches, node) {
		return c.Batch(l.switchRoutes(node, ways, devices))
	}
	return c.Batch(l.hostRoutes(node, devices))
}

// addresses sets the address of each of the node's links, both of which are a
// subnet of two (RFC 3021), and returns the devices' numbers by link.
func (l *layout) addresses(c *kernel.Conn, node string) (map[int]int, error) {
	devices := map[int]int{}
	for i, link := range l.substrate.Links {
		end := slices.Index(link.Ends[:], node)
		if end < 0 {
			continue
		}
		device, err := c.LinkByName(l.ports[i][end].Interface)
		if err != nil {
			return nil, err
		}
		devices[i] = device.Index
		err = c.AddAddress(kernel.Address{Index: device.Index, Local: l.ports[i][end].Address, Reach: netip.PrefixFrom(l.ports[i][end].Address, 31).Masked(), Metric: metric(i)})
		if err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// metric prefers links in the substrate's order.
func metric(link int) int { return 1 + link }

// protocol marks the lab's routes (RTPROT_STATIC).
const protocol = unix.RTPROT_STATIC

// hostRoutes gives every link to a switch a route to all of the underlay, so
// that a look-up bound to that device finds its gateway.
func (l *layout) hostRoutes(node string, devices map[int]int) []*kernel.Message {
	var routes []*kernel.Message
	for i, link := range l.substrate.Links {
		end := slices.Index(link.Ends[:], node)
		if end < 0 || !slices.Contains(l.substrate.Switches, link.Ends[1-end]) {
			continue
		}
		gateway := l.ports[i][1-end].Address
		m := kernel.AddRoute(kernel.Route{Prefix: underlay, Via: gateway, Index: devices[i]}, protocol)
		m.Attr(unix.RTA_PREFSRC, l.ports[i][end].Address.AsSlice())
		routes = append(routes, m.Uint32(unix.RTA_PRIORITY, uint32(metric(i))))
		if l.ospf {
			routes = append(routes, l.loopRoute(node, i, gateway, devices[i]))
		}
	}
	return routes
}

// relayRoom is left free in packets to loopbacks: eight headers of 20 bytes.
const relayRoom = 8 * 20

// loopRoute leads to loopbacks, from the host's own.
func (l *layout) loopRoute(node string, link int, gateway netip.Addr, device int) *kernel.Message {
	own, _ := Loopback(l.substrate, node)
	m := kernel.AddRoute(kernel.Route{Prefix: loopRange, Via: gateway, Index: device}, protocol)
	m.Attr(unix.RTA_PREFSRC, own.AsSlice()).Uint32(unix.RTA_PRIORITY, uint32(metric(link)))
	return m.Nest(unix.RTA_METRICS, func() {
		m.Uint32(unix.RTAX_MTU, uint32(l.substrate.Links[link].WireMTU()-relayRoom))
	})
}

// switchRoutes sends what is for a host's port on another switch along the
// fabric towards that switch.
func (l *layout) switchRoutes(node string, ways map[string]map[string]int, devices map[int]int) []*kernel.Message {
	var routes []*kernel.Message
	for i, link := range l.substrate.Links {
		for end, host := range link.Ends {
			access := link.Ends[1-end]
			if _, isHost := l.substrate.HostOf(host); !isHost || access == node {
				continue
			}
			by, reachable := ways[access][node]
			if !reachable {
				continue
			}
			prefix := netip.PrefixFrom(l.ports[i][end].Address, 32)
			routes = append(routes, kernel.AddRoute(kernel.Route{Prefix: prefix, Via: l.gateway(by, node), Index: devices[by]}, protocol))
		}
	}
	return routes
}

// gateway is the address at the far end of a node's link.
func (l *layout) gateway(link int, node string) netip.Addr {
	if l.substrate.Links[link].Ends[vnet.Forward] == node {
		return l.ports[link][1].Address
	}
	return l.ports[link][0].Address
}
