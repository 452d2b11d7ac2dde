package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/datapath/ofswitch"
	"sublet/openflow/channel"
	"sublet/openflow/pipeline"
	"sublet/openflow/secure"
	"sublet/openflow/slice"
)

// openflow is the command of OpenFlow switches without a lease.
func (a *app) openflow() *cobra.Command {
	c := &cobra.Command{
		Use:     "openflow",
		Short:   "Run an OpenFlow switch, or share one",
		Long:    "Run a switch of OpenFlow 1.3 and 1.0 on devices of this machine, without a lease. datapath/ofswitch/README.md explains it.",
		Example: "  sublet openflow run --controller tcp:192.0.2.1:6653 --dpid 1 --ports eth1,eth2",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.openflowRun(), a.openflowSlice())
	return c
}

// openflowFlags is what is typed of a switch.
type openflowFlags struct {
	controllers, ports []string
	dpid, datapath     string
	fail, miss, local  string
	portsIn, socket    string
	packetIns          int
	meterHold          time.Duration
	heap               int64
	quiet, confine     bool
	keep               bool
	tls                tlsFlags
	inBand             bool
	gateways           []string
	bandPorts          []string
	tables, entries    int
	groups, meters     int
	auxiliary          uint8
	auxiliaryUDP       bool
	processors         []int
	slices             string
}

func (a *app) openflowRun() *cobra.Command {
	var f openflowFlags
	c := &cobra.Command{
		Use: "run", Short: "Connect devices by an OpenFlow switch until it is stopped", Args: cobra.NoArgs,
		Long: "Connect devices by an OpenFlow switch until it is stopped. It runs in the foreground, in one thread. " +
			"The devices' port numbers are 1, 2, ... in the order of --ports. A port is DEVICE, xdp:DEVICE (AF_XDP sockets: a small frame costs less, a stream more) or tap:DEVICE (a TAP device, which is made). A controller is tcp:HOST:PORT or tls:HOST:PORT, to which the switch connects, or ptcp:[HOST]:PORT or ptls:[HOST]:PORT, where it listens; ssl, pssl and ptcp:PORT[:HOST], as Open vSwitch has them, are read, too.",
		Example: "  sublet openflow run --controller tcp:192.0.2.1:6653 --dpid 00000000000000a1 --ports eth1,eth2\n" +
			"  sublet openflow run --controller ptcp:127.0.0.1:6654 --dpid 1 --ports veth0,veth1 --fail standalone",
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config()
			if err != nil {
				return badInput{err}
			}
			told, err := f.tells()
			if err != nil {
				return err
			}
			defer told.Close()
			config.Log = func(err error) {
				if !f.quiet {
					fmt.Fprintf(a.err, "sublet: %v\n", err)
				}
				if errors.Is(err, channel.ErrUnread) || errors.Is(err, ofswitch.ErrLost) {
					told.tell(err)
				}
			}
			if len(f.processors) > 0 {
				if err := ofswitch.Pin(f.processors); err != nil {
					return badInput{fmt.Errorf("--cpu: %w", err)}
				}
			}
			debug.SetGCPercent(switchGarbage)
			if f.heap > 0 {
				debug.SetMemoryLimit(f.heap)
				config.Unread = max(f.heap/unreadShare, leastUnread)
			}
			run := func() error { return a.serveOpenFlow(c.Context(), config, f.confine) }
			if f.portsIn == "" {
				return run()
			}
			ns, err := kernel.OpenNamespace(f.portsIn)
			if err != nil {
				return fmt.Errorf("--ports-in: %w", err)
			}
			defer ns.Close()
			return kernel.In(ns, run) // connections have threads of their own, which stay
		},
	}
	f.define(c)
	return c
}

// switchGarbage is how much a switch's heap grows before it is collected, in
// percent: tables are long-lived and large, messages neither.
const switchGarbage = 400

// toldFile is a file of the working directory of a switch with --keep, with what its
// user is to know: who started the switch reads and empties it.
const toldFile = "told"

// mostTold bounds it, in bytes, while nobody reads.
const mostTold = 4096

// told is that file, opened before the switch is confined; nil: there is none.
type told struct{ *os.File }

func (f *openflowFlags) tells() (t told, err error) {
	if f.keep {
		t.File, err = os.OpenFile(toldFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	return t, err
}

func (t told) tell(err error) {
	if t.File == nil {
		return
	}
	if at, wrong := t.Stat(); wrong == nil && at.Size() < mostTold {
		fmt.Fprintf(t, "%.500v\n", err)
	}
}

// unreadShare is the part of a switch's heap that replies may take which controllers do
// not read, leastUnread what they may at least: they are copied on their way.
const (
	unreadShare = 4
	leastUnread = 8 << 20
)

func (a *app) serveOpenFlow(ctx context.Context, config ofswitch.Config, confine bool) error {
	if config.Kernel {
		if err := bpf.Supported(); err != nil {
			return err
		}
	}
	s, err := ofswitch.New(config)
	if err != nil {
		return err
	}
	defer s.Close()
	if confine {
		if err := s.Confine(); err != nil {
			return fmt.Errorf("--confine: %w", err)
		}
	}
	fmt.Fprintf(a.err, "sublet: OpenFlow switch %016x of %d ports\n", config.Pipeline.DatapathID, len(config.Ports))
	err = s.Run(ctx)
	if c, ok := s.Counters(); ok {
		fmt.Fprintf(a.err, "sublet: frames to the process, by why: %v; flows without room: %d\n", c.Upcalls, c.Full)
	}
	return err
}

func (f *openflowFlags) define(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.controllers, "controller", nil, "controllers, by commas: tcp:HOST:PORT, tls:HOST:PORT, ptcp:[HOST]:PORT, ptls:[HOST]:PORT")
	flags.StringVar(&f.slices, "slices", "", "instead of --controller, a file with slices of the switch, each with controllers of its own; it is read again when the management connection says so")
	flags.StringSliceVar(&f.ports, "ports", nil, "devices, by commas, that are ports 1, 2, ...: DEVICE by a packet socket, xdp:DEVICE by AF_XDP sockets, tap:DEVICE a TAP device that is made; eth* alone: eth0, eth1, ... whenever they come and go")
	flags.IntSliceVar(&f.processors, "cpu", nil, "numbers, by commas, of the processors on which the process runs; none: on any")
	flags.StringVar(&f.portsIn, "ports-in", "", "file of the network namespace that has the devices; connections are those of the caller's")
	flags.StringVar(&f.socket, "socket", "", "Unix socket where management connections are answered")
	f.tls.define(flags)
	flags.BoolVar(&f.confine, "confine", false, "give up, once it runs, all rights and system calls that a switch does not need, and all files but those of the working directory; controllers are addresses")
	flags.BoolVar(&f.keep, "keep", false, "keep tables, counters and flows in the kernel in the working directory, for the switch that is started there after this one, however this one ends")
	flags.BoolVar(&f.quiet, "quiet", false, "do not tell why connections end")
	flags.Int64Var(&f.heap, "heap", 0, "bytes of memory beyond which more time is spent on freeing some; 0: as needed")
	flags.StringVar(&f.miss, "miss", "drop", "what meets no entry at the start: drop, or controller")
	flags.IntVar(&f.packetIns, "packet-ins", 0, "most packets to controllers in a second; 0: no bound")
	flags.DurationVar(&f.meterHold, "meter-hold", 0, "most time that frames wait which a meter would drop, up to 1s; 0: it drops them, as OpenFlow says")
	flags.Uint8Var(&f.auxiliary, "auxiliary", 0, "auxiliary connections to each controller to which the switch connects, up to 8")
	flags.BoolVar(&f.auxiliaryUDP, "auxiliary-udp", false, "have those connections be datagrams over UDP, which may be lost and are not encrypted")
	flags.StringVar(&f.local, "local", "", "device that is port LOCAL, for instance one end of a veth pair whose other end has the switch's address")
	flags.BoolVar(&f.inBand, "in-band", false, "control shares ports and links with data: the address that reaches controllers is at the other end of --local; controllers are tcp:ADDRESS:PORT or tls:ADDRESS:PORT")
	flags.StringSliceVar(&f.gateways, "gateway", nil, "with --in-band, addresses, by commas, of gateways by which controllers are reached, if they are in another subnet")
	flags.StringSliceVar(&f.bandPorts, "in-band-ports", []string{"all"}, "with --in-band, numbers, by commas, of ports by which control may pass; or all, or none")
	flags.StringVar(&f.dpid, "dpid", "", "datapath identifier: up to 16 hexadecimal digits")
	flags.StringVar(&f.datapath, "datapath", "process", "what forwards: process, or kernel (a cache of flows in front of the process; Linux 6.6)")
	flags.StringVar(&f.fail, "fail", "secure", "without a controller: secure (entries stay, others are not forwarded) or standalone (a learning switch)")
	flags.IntVar(&f.tables, "tables", 254, "flow tables, 1 to 254")
	flags.IntVar(&f.entries, "entries", 1_000_000, "most entries in all tables together")
	flags.IntVar(&f.groups, "groups", 65536, "most groups")
	flags.IntVar(&f.meters, "meters", 65536, "most meters")
}

// config checks what was typed.
func (f *openflowFlags) config() (c ofswitch.Config, err error) {
	c = ofswitch.Config{Ports: f.ports, Local: f.local, Auxiliary: f.auxiliary, AuxiliaryUDP: f.auxiliaryUDP, Standalone: f.fail == "standalone", MissEntry: f.miss == "controller", PacketIns: f.packetIns, Management: f.socket, Kernel: f.datapath == "kernel", Keep: f.keep}
	if slices.Equal(f.ports, []string{"eth*"}) {
		c.Ports, c.Follow = nil, true
	}
	c.Pipeline = pipeline.Config{Tables: f.tables, Entries: f.entries, Groups: f.groups, Meters: f.meters, Hold: int64(f.meterHold)}
	if c.Pipeline.DatapathID, err = strconv.ParseUint(strings.TrimPrefix(f.dpid, "0x"), 16, 64); err != nil {
		return c, fmt.Errorf("--dpid %q: write up to 16 hexadecimal digits", f.dpid)
	}
	switch {
	case f.slices != "" && (len(f.controllers) > 0 || c.Standalone || f.auxiliary > 0):
		return c, errors.New("--slices: each slice has controllers of its own: leave out --controller, --auxiliary and --fail standalone")
	case len(f.controllers) == 0 && f.slices == "":
		return c, errors.New("--controller is missing: write tcp:HOST:PORT, or ptcp:[HOST]:PORT to listen")
	case len(f.ports) == 0:
		return c, errors.New("--ports is missing: write devices by commas, such as eth1,eth2")
	case !c.Follow && strings.Contains(strings.Join(f.ports, ","), "*"):
		return c, fmt.Errorf("--ports %s: only eth*, alone, stands for devices that come and go: name others in full", strings.Join(f.ports, ","))
	case slices.ContainsFunc(f.processors, func(n int) bool { return n < 0 || n > 1023 }):
		return c, fmt.Errorf("--cpu %v: write numbers of processors from 0 on, by commas", f.processors)
	case f.datapath != "process" && f.datapath != "kernel":
		return c, fmt.Errorf("--datapath %q: write process or kernel", f.datapath)
	case f.fail != "secure" && f.fail != "standalone":
		return c, fmt.Errorf("--fail %q: write secure or standalone", f.fail)
	case f.miss != "drop" && f.miss != "controller":
		return c, fmt.Errorf("--miss %q: write drop or controller", f.miss)
	case f.meterHold < 0 || f.meterHold > time.Second:
		return c, fmt.Errorf("--meter-hold %v: write a time up to 1s, or 0 to drop", f.meterHold)
	case f.packetIns < 0:
		return c, fmt.Errorf("--packet-ins %d: write how many in a second, or 0 for no bound", f.packetIns)
	case f.auxiliaryUDP && (f.auxiliary == 0 || slices.ContainsFunc(f.controllers, func(c string) bool { return !strings.HasPrefix(c, "tcp:") })):
		return c, errors.New("--auxiliary-udp: state --auxiliary 1 to 8, and controllers as tcp:HOST:PORT")
	case f.auxiliary > 8:
		return c, fmt.Errorf("--auxiliary %d: write 0 to 8", f.auxiliary)
	case f.tables < 1 || f.tables > 254:
		return c, fmt.Errorf("--tables %d: write 1 to 254", f.tables)
	case f.entries < 1 || f.groups < 0 || f.meters < 0:
		return c, errors.New("--entries, --groups and --meters are not negative, and there is at least one entry")
	}
	set := f.targets
	if f.slices != "" {
		set = f.sliced
	}
	if err := set(&c); err != nil {
		return c, err
	}
	if err := c.Suits(); err != nil {
		return c, fmt.Errorf("--ports: %w", err)
	}
	return c, nil
}

// sliced is a switch with slices. Of its tables one more tells them apart.
func (f *openflowFlags) sliced(c *ofswitch.Config) error {
	c.Pipeline.Tables++
	c.Pipeline.Entries += ofswitch.MostLeading
	c.Slices = func() ([]slice.Slice, error) {
		list, err := readOwnSlices(f.slices)
		if err != nil {
			return nil, err
		}
		if anySecure(controllersOf(list)) && c.TLS == nil {
			return nil, errors.New("slices: a controller is to be reached over TLS, for which the switch has no certificate")
		}
		return list, ofswitch.CheckSlices(list, c.Pipeline.Tables)
	}
	list, err := readOwnSlices(f.slices)
	if err != nil {
		return fmt.Errorf("--slices: %w", err)
	}
	targets := controllersOf(list)
	if err := cmp.Or(f.named(c), f.shown(c, targets), f.band(c, targets)); err != nil {
		return err
	}
	if _, err = c.Slices(); err != nil {
		return fmt.Errorf("--slices: %w", err)
	}
	return nil
}

func controllersOf(list []slice.Slice) (targets []channel.Target) {
	for i := range list {
		targets = append(targets, list[i].Controllers...)
	}
	return targets
}

func (f *openflowFlags) targets(c *ofswitch.Config) error {
	if err := f.named(c); err != nil {
		return err
	}
	for _, text := range f.controllers {
		t, err := channel.ParseTarget(text)
		if err != nil {
			return err
		}
		c.Controllers = append(c.Controllers, t)
	}
	if err := f.shown(c, c.Controllers); err != nil {
		return err
	}
	return f.band(c, c.Controllers)
}

// named says whether a device is there twice.
func (f *openflowFlags) named(c *ofswitch.Config) error {
	seen := make(map[string]bool)
	var names []string
	for _, text := range c.Ports {
		p, err := ofswitch.ParsePort(text)
		if err != nil {
			return fmt.Errorf("--ports %w", err)
		}
		names = append(names, p.Device)
	}
	if c.Local != "" {
		names = append(names, c.Local)
	}
	for _, name := range names {
		if seen[name] {
			return fmt.Errorf("--ports and --local: %q is there twice", name)
		}
		seen[name] = true
	}
	return nil
}

// shown reads what controllers over TLS are shown, if there are any. Slices that come
// later may have some.
func (f *openflowFlags) shown(c *ofswitch.Config, targets []channel.Target) (err error) {
	if slices.ContainsFunc(targets, func(t channel.Target) bool { return t.Secure }) || f.slices != "" && f.tls.cert != "" {
		c.TLS, err = f.tls.config()
	}
	return err
}

// bandPorts are those by which control may pass; nil: all.
func bandPorts(list []string) (ports []uint32, err error) {
	if slices.Equal(list, []string{"all"}) {
		return nil, nil
	}
	ports = []uint32{}
	if slices.Equal(list, []string{"none"}) {
		return ports, nil
	}
	for _, text := range list {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("--in-band-ports %q: write numbers of ports from 1 on, or all, or none", text)
		}
		ports = append(ports, uint32(n))
	}
	return ports, nil
}

// band is control in band.
func (f *openflowFlags) band(c *ofswitch.Config, targets []channel.Target) (err error) {
	if !f.inBand {
		if len(f.gateways) > 0 || !slices.Equal(f.bandPorts, []string{"all"}) {
			return errors.New("--gateway and --in-band-ports are for switches in band: add --in-band, or leave them out")
		}
		return nil
	}
	if c.Local == "" {
		return errors.New("--in-band needs --local: name a device whose other end has the address that reaches controllers")
	}
	b := &ofswitch.InBand{}
	if b.Controllers, err = ofswitch.InBandOf(targets); err != nil {
		return fmt.Errorf("--controller: %w", err)
	}
	for _, text := range f.gateways {
		at, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("--gateway %q: write an address such as 10.0.0.1", text)
		}
		b.Gateways = append(b.Gateways, at)
	}
	if len(b.Gateways) > ofswitch.MaxGateways {
		return fmt.Errorf("--gateway: %d are more than %d", len(b.Gateways), ofswitch.MaxGateways)
	}
	if b.Ports, err = bandPorts(f.bandPorts); err != nil {
		return err
	}
	c.InBand = b
	return nil
}

// tlsFlags is what is shown and believed over TLS.
type tlsFlags struct {
	cert, key, ca string
	anyName       bool
}

func (f *tlsFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "cert", "", "certificate for TLS, a PEM file")
	flags.StringVar(&f.key, "key", "", "key of --cert, a PEM file")
	flags.StringVar(&f.ca, "ca", "", "certificates of those who may sign the other end's, a PEM file")
	flags.BoolVar(&f.anyName, "any-name", false, "believe any other end whose certificate --ca has signed, whatever its name")
}

// config is that of both ends: the other one must have a certificate too.
func (f *tlsFlags) config() (*tls.Config, error) {
	if f.cert == "" || f.key == "" || f.ca == "" {
		return nil, errors.New("connections over TLS need --cert, --key and --ca")
	}
	files := secure.Files{Certificate: f.cert, Key: f.key, CA: f.ca}
	if f.anyName {
		return files.AnyNameConfig()
	}
	return files.Config()
}
