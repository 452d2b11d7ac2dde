package lab

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/fabric"
	"sublet/vnet"
)

// HasFRR says whether what a fabric needs of FRR is installed.
func HasFRR() bool { return kernel.MissingFRR() == "" }

// NoFRR is what to say where it is wanted and missing.
const NoFRR = "FRR is not installed: switches forward along one fixed path, without OSPF, equal-cost paths and loopback addresses: apt-get install frr"

// FRRDir holds the configuration, log and sockets (NAME.vty) of a node's
// daemons: vtysh --vty_socket takes it.
func FRRDir(run, node string) string { return filepath.Join(dirOf(run), "frr", node) }

// maxSocket is the longest path of a socket (sockaddr_un).
const maxSocket = 107

// runOSPF makes switches relays and starts the daemons.
func (l *layout) runOSPF(ctx context.Context, run string, s *state) error {
	if err := l.setRelays(run); err != nil {
		return err
	}
	return l.startOSPF(ctx, run, s)
}

// startOSPF starts FRR in every switch and host. All zebras start before any
// ospfd: one that finds no zebra waits ten seconds before it looks again.
func (l *layout) startOSPF(ctx context.Context, run string, s *state) error {
	for _, node := range l.nodes {
		if err := l.configure(run, node); err != nil {
			return fmt.Errorf("configure FRR of %s: %w", node, err)
		}
	}
	for _, daemon := range kernel.FRRDaemons {
		for _, node := range l.nodes {
			if err := l.startDaemon(run, s, node, daemon); err != nil {
				return err
			}
		}
		for _, node := range l.nodes {
			if err := s.awaitFile(ctx, filepath.Join(FRRDir(run, node), daemon+".vty"), daemon+"-"+node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *layout) startDaemon(run string, s *state, node, daemon string) error {
	dir := FRRDir(run, node)
	command := append([]string{"/usr/bin/unshare", "--mount", "--propagation", "private",
		"/bin/sh", "-c", `mount --bind "$0" /etc/group && exec "$@"`, filepath.Join(dir, "group")},
		kernel.FRRArgv(daemon, dir, dir, "warnings")...)
	return s.start(l.namespace(node), daemon+"-"+node, command...)
}

// awaitFile waits until a process of the lab has made a file.
func (s *state) awaitFile(ctx context.Context, path, name string) error {
	const patience = 30 * time.Second // two processors start some hundred daemons
	return s.awaitWithin(ctx, patience, func(context.Context) error {
		_, err := os.Lstat(path)
		return err
	}, name)
}

// awaitWithin is await of some processes only, and for some time only.
func (s *state) awaitWithin(ctx context.Context, patience time.Duration, ready func(context.Context) error, names ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	some := &state{Run: s.Run, Processes: slices.DeleteFunc(slices.Clone(s.Processes), func(p process) bool { return len(names) > 0 && !slices.Contains(names, p.Name) })}
	return some.await(ctx, ready)
}

func (l *layout) configure(run, node string) error {
	dir := FRRDir(run, node)
	if longest := filepath.Join(dir, "ospfd.vty"); len(longest) > maxSocket {
		return fmt.Errorf("%s is longer than %d bytes, as sockets' names must not be: use a shorter run directory", longest, maxSocket)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{"zebra.conf": l.zebra(node), "ospfd.conf": l.ospfd(node), "group": kernel.FRRGroup} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// zebra writes routes with their next hops: groups of next hops that the
// kernel keeps by themselves lose those of a link that flaps (FRR 8.4). Of a
// host it writes nothing: the host knows the fabric, and sends by its own
// routes as before.
func (l *layout) zebra(node string) string {
	if slices.Contains(l.substrate.Switches, node) {
		return "ip forwarding\nno zebra nexthop kernel enable\n"
	}
	return "no ip forwarding\nroute-map none deny 10\nip protocol ospf route-map none\n"
}

// ospfd's is the same for switches and hosts, but that a host never lets others'
// packets pass (RFC 6987). Every link costs 1. Hello and dead interval tolerate
// three lost packets; a cut wire is seen by its carrier, long before.
func (l *layout) ospfd(node string) string {
	var b strings.Builder
	const interfaceIs = "interface %s\n ip ospf area 0\n ip ospf network point-to-point\n"
	fmt.Fprintf(&b, interfaceIs+" ip ospf passive\n", "lo")
	for i, link := range l.substrate.Links {
		if end := slices.Index(link.Ends[:], node); end >= 0 {
			fmt.Fprintf(&b, interfaceIs+" ip ospf cost 1\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n ip ospf retransmit-interval 1\n", l.ports[i][end].Interface)
		}
	}
	id, _ := Loopback(l.substrate, node)
	fmt.Fprintf(&b, "router ospf\n ospf router-id %s\n maximum-paths 64\n timers throttle spf 10 50 1000\n timers throttle lsa all 100\n timers lsa min-arrival 50\n", id)
	if !slices.Contains(l.substrate.Switches, node) {
		b.WriteString(" max-metric router-lsa administrative\n")
	}
	return b.String()
}

// convergence is how long OSPF may take to fill all tables: adjacencies form
// within seconds of the hello interval.
const convergence = 60 * time.Second

// awaitOSPF waits until every switch has all equal ways to all loopbacks.
func (l *layout) awaitOSPF(ctx context.Context, s *state) error {
	want := l.nextHops()
	var names []string
	for _, node := range l.nodes {
		names = append(names, "zebra-"+node, "ospfd-"+node)
	}
	left := slices.Clone(l.substrate.Switches)
	return s.awaitWithin(ctx, convergence, func(context.Context) error {
		for len(left) > 0 {
			if err := l.converged(left[0], want[left[0]]); err != nil {
				return fmt.Errorf("OSPF of %s: %w", left[0], err)
			}
			left = left[1:]
		}
		return nil
	}, names...)
}

// nextHops is how many next hops each switch should have to each loopback.
func (l *layout) nextHops() map[string]map[netip.Addr]int {
	f := fabric.FabricOf(l.substrate)
	at := make(map[string]int) // switch of each loopback's node, by node
	for i, s := range l.substrate.Switches {
		at[s] = i
	}
	want := make(map[string]map[netip.Addr]int)
	for i, s := range l.substrate.Switches {
		want[s] = make(map[netip.Addr]int)
		for j, t := range l.substrate.Switches {
			if n := len(f.Next(i, j)); i != j && n > 0 {
				address, _ := Loopback(l.substrate, t)
				want[s][address] = n
			}
		}
	}
	for _, link := range l.substrate.Links {
		l.waysToHost(link, at, f.Next, want)
	}
	return want
}

func (l *layout) waysToHost(link vnet.SubstrateLink, at map[string]int, next func(int, int) []fabric.Arc, want map[string]map[netip.Addr]int) {
	for end, host := range link.Ends {
		access, isSwitch := at[link.Ends[1-end]]
		if _, isHost := l.substrate.HostOf(host); !isHost || !isSwitch {
			continue
		}
		address, _ := Loopback(l.substrate, host)
		for i, s := range l.substrate.Switches {
			n := len(next(i, access))
			if i == access {
				n = 1
			}
			want[s][address] = max(want[s][address], n)
		}
	}
}

// converged says what a switch's table lacks.
func (l *layout) converged(node string, want map[netip.Addr]int) error {
	ns, c, err := openNamespace(l.namespace(node))
	if err != nil {
		return err
	}
	defer ns.Close()
	defer c.Close()
	have, err := nextHops(c)
	if err != nil {
		return err
	}
	for address, n := range want {
		if have[address] < n {
			return fmt.Errorf("%d of %d ways to %s", have[address], n, address)
		}
	}
	return nil
}

// nextHops counts the ways of OSPF's routes to single addresses.
func nextHops(c *kernel.Conn) (map[netip.Addr]int, error) {
	header := make([]byte, unix.SizeofRtMsg)
	header[0] = unix.AF_INET
	routes, err := c.Dump(kernel.NewMessage(unix.RTM_GETROUTE, 0, header))
	if err != nil {
		return nil, err
	}
	have := make(map[netip.Addr]int)
	for _, b := range routes {
		if len(b) < unix.SizeofRtMsg || b[1] != 32 || b[5] != unix.RTPROT_OSPF {
			continue
		}
		count, target := 1, netip.Addr{}
		kernel.EachAttr(b[unix.SizeofRtMsg:], func(kind uint16, v []byte) {
			switch kind {
			case unix.RTA_DST:
				target, _ = netip.AddrFromSlice(v)
			case unix.RTA_MULTIPATH:
				count = hops(v)
			}
		})
		have[target] = count
	}
	return have, nil
}

// hops counts the struct rtnexthop of a route.
func hops(b []byte) (n int) {
	for len(b) >= unix.SizeofRtNexthop {
		length := (int(binary.NativeEndian.Uint16(b)) + 3) &^ 3
		if length < unix.SizeofRtNexthop || length > len(b) {
			break
		}
		n, b = n+1, b[length:]
	}
	return n
}
