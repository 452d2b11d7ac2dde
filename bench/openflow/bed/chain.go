package bed

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"time"

	"sublet/measure/pktgen"
)

// Chain is switches of one kind in a line, each in a namespace of its own, that
// forward as learning switches, with a station at either end.
type Chain struct {
	From, To pktgen.Place
	keys     [2]string // of their namespaces
	bed      *Bed
}

// AddChain makes one. Processes run on processor 0.
func (b *Bed) AddChain(ctx context.Context, kind Kind, switches int) (*Chain, error) {
	name := func(i int) string { return fmt.Sprintf("c%d.%s.%d", switches, kind.datapath(), i) + string(kind[:1]) }
	for i := range switches + 2 {
		if err := b.space(name(i)); err != nil {
			return nil, err
		}
		if err := b.in(name(i), "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1", "ip link set lo up"); err != nil {
			return nil, err
		}
	}
	c := &Chain{bed: b, keys: [2]string{name(0), name(switches + 1)}}
	for i := range switches + 1 { // to the next one leads east, to the one before west
		if err := b.in(name(i), fmt.Sprintf("ip link add east type veth peer name west netns %s", b.host.Path(name(i+1))), "ip link set east up"); err != nil {
			return nil, err
		}
		if err := b.in(name(i+1), "ip link set west up"); err != nil {
			return nil, err
		}
	}
	var processes []int
	for i := range switches {
		s := &Switch{Name: string(kind), Kind: kind, Key: name(i + 1), bed: b}
		pid, err := s.learn(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s %d of a chain: %w", kind, i+1, err)
		}
		if pid != 0 {
			processes = append(processes, pid)
		}
	}
	if err := c.open("east", 0); err != nil {
		return nil, err
	}
	if err := c.open("west", 1); err != nil {
		return nil, err
	}
	c.From.Processes = processes
	return c, c.connected(ctx)
}

// open makes a station of a device.
func (c *Chain) open(device string, end int) error {
	if err := c.bed.in(c.keys[end], fmt.Sprintf("ip addr add 10.0.0.%d/24 dev %s", end+1, device)); err != nil {
		return err
	}
	place, err := pktgen.Open(c.bed.host.Path(c.keys[end]), device, netip.AddrFrom4([4]byte{10, 0, 0, byte(end + 1)}))
	if end == 0 {
		c.From = place
	} else {
		c.To = place
	}
	return err
}

// connected waits until the stations reach each other.
func (c *Chain) connected(ctx context.Context) error {
	for end := time.Now().Add(patience); ; {
		out, err := exec.CommandContext(ctx, "nsenter", "--net="+c.bed.host.Path(c.keys[0]), "ping", "-c1", "-W1", "10.0.0.2").CombinedOutput()
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			if err != nil {
				err = fmt.Errorf("the ends of the chain do not reach each other: %w: %s", err, out)
			}
			return err
		}
	}
}

// learn makes a switch with ports west and east forward by itself; pid is 0 without a process.
func (s *Switch) learn(ctx context.Context) (pid int, err error) {
	if s.Kind == Bridge {
		return 0, s.bed.in(s.Key, "sysctl -qw net.bridge.bridge-nf-call-iptables=0", "ip link add br0 type bridge mcast_snooping 0", "ip link set br0 up", "ip link set west master br0", "ip link set east master br0")
	}
	return s.daemon("taskset", "-c", "0", s.bed.Exe, "openflow", "run", "--quiet", "--controller", "ptcp:127.0.0.1:6654", "--dpid", "1",
		"--ports", "west,east", "--datapath", s.Kind.datapath(), "--fail", "standalone")
}
