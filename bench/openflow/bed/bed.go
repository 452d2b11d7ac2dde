// Package bed is what the measurements of OpenFlow switches share: switches of
// several kinds, each in a namespace with five ports that lead to stations, and
// a connection to each by which its entries are made.
package bed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sublet/datapath/kernel"
	"sublet/measure/pktgen"
)

// Stations of a switch; the first sends.
const Stations = 5

// Bed is a place for switches.
type Bed struct {
	Exe  string        // sublet
	Ends int           // stations of a switch; 0: Stations
	Hold time.Duration // most time that frames wait which a meter of Sublet's would drop
	dir  string
	host *kernel.Host
	undo []func()
}

// New makes one. Close it.
func New(exe string) (*Bed, error) {
	dir, err := os.MkdirTemp("/run", "sl-of-bench")
	if err != nil {
		return nil, err
	}
	b := &Bed{Exe: exe, dir: dir}
	b.later(func() { os.RemoveAll(dir) })
	b.host, err = kernel.NewHost(kernel.Config{Host: "h", Run: dir})
	return b, err
}

func (b *Bed) ends() int {
	if b.Ends == 0 {
		return Stations
	}
	return b.Ends
}

func (b *Bed) later(f func()) { b.undo = append(b.undo, f) }

// Close takes everything away, the last first.
func (b *Bed) Close() {
	for i := len(b.undo) - 1; i >= 0; i-- {
		b.undo[i]()
	}
}

// space makes a namespace.
func (b *Bed) space(key string) error {
	ns, err := kernel.NewNamespace(func() error { return nil })
	if err != nil {
		return err
	}
	defer ns.Close()
	b.later(func() {
		if err := kernel.Unbind(filepath.Join(b.host.Dir("netns"), key)); err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
	})
	return kernel.Bind(ns, b.host.Path(key))
}

// in runs programs in a namespace, one command a line.
func (b *Bed) in(key string, lines ...string) error {
	for _, line := range lines {
		argv := append([]string{"--net=" + b.host.Path(key)}, strings.Fields(line)...)
		if out, err := exec.Command("nsenter", argv...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
	}
	return nil
}

// Switch is one that is up.
type Switch struct {
	Name     string
	Kind     Kind
	Key      string // of its namespace
	Stations []pktgen.Place
	*Control // nil: it is none of OpenFlow
	bed      *Bed
	shared   bool // its process is in a control group
}

// Kind of switch.
type Kind string

// Kinds.
const (
	Bridge   Kind = "Linux bridge"
	Learning Kind = "learning switch"
	Kernel   Kind = "kernel datapath"
	Process  Kind = "process datapath"
	Sockets  Kind = "process datapath, AF_XDP ports"
	OVS      Kind = "Open vSwitch, userspace"
	AFXDP    Kind = "Open vSwitch, AF_XDP ports"
)

// Ours says whether it is an OpenFlow switch of Sublet's.
func (k Kind) Ours() bool { return k == Kernel || k == Process || k == Sockets }

// Theirs says whether it is Open vSwitch.
func (k Kind) Theirs() bool { return k == OVS || k == AFXDP }

// Add makes a switch whose process, if it has one, runs on processor 0.
func (b *Bed) Add(ctx context.Context, kind Kind) (*Switch, error) {
	s := &Switch{Name: string(kind), Kind: kind, Key: fmt.Sprintf("s%d", len(b.undo)), bed: b}
	if kind == Learning {
		s.Key = learning().Key()
	}
	err := errors.Join(b.makeSpace(ctx, s), s.addStations())
	if err != nil {
		return nil, err
	}
	switch {
	case kind == Bridge:
		err = s.bridge()
	case kind == Learning:
		err = s.joinLearning(ctx)
	case kind.Ours():
		err = s.startOurs(ctx)
	default:
		err = s.startTheirs(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return s, nil
}

func (b *Bed) makeSpace(ctx context.Context, s *Switch) error {
	if s.Kind == Learning {
		return b.addLearning(ctx)
	}
	return errors.Join(b.space(s.Key), b.in(s.Key, "ip link set lo up"))
}

// addStations makes namespaces with eth0, which leads to p0, p1, ... of the
// switch. What is not summed is what Open vSwitch would send on as it is.
func (s *Switch) addStations() error {
	ports := s.ports()
	for i, port := range ports {
		key, b := fmt.Sprintf("%s.%d", s.Key, i), s.bed
		err := errors.Join(b.space(key), b.in(key,
			"sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1",
			fmt.Sprintf("ip link add eth0 type veth peer name %s netns %s", port, b.host.Path(s.Key)),
			fmt.Sprintf("ip addr add 10.0.0.%d/24 dev eth0", i+1), "ip link set eth0 up"),
			b.in(s.Key, fmt.Sprintf("ip link set %s up", port)))
		if s.Kind.Theirs() {
			err = errors.Join(err, b.in(key, "ethtool -K eth0 tx off"))
		}
		if err != nil {
			return err
		}
		place, err := pktgen.Open(b.host.Path(key), "eth0", netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}))
		if err != nil {
			return err
		}
		s.Stations = append(s.Stations, place)
	}
	return nil
}

func (s *Switch) ports() (names []string) {
	letter := "p"
	if s.Kind == Learning {
		letter = "eth"
	}
	for i := range s.bed.ends() {
		names = append(names, fmt.Sprintf("%s%d", letter, i))
	}
	return names
}

// Command is a program at a station, counted from 0.
func (s *Switch) Command(ctx context.Context, station int, argv ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + s.bed.host.Path(fmt.Sprintf("%s.%d", s.Key, station))}, argv...)...)
}
