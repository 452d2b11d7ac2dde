package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sublet/agent/iplbd"
	"sublet/datapath/iplb"
	"sublet/plan"
)

// spreadRun is what `paths run` was asked for.
type spreadRun struct {
	pathsPlace
	device, source, lists string
	source6               string
	probe, rearrange      time.Duration
	lost                  int
	ospf, isis            string
	choice                iplbd.Choice
	mode, by              string
	uncut                 bool
}

func (a *app) pathsRun() *cobra.Command {
	var r spreadRun
	c := &cobra.Command{
		Use:   "run --host NAME --device DEVICE (--lists FILE | --ospf DIR | --isis DIR)",
		Short: "Spread this host's packets over several paths of the fabric",
		Long: `Spread what a device sends over several paths of the fabric, until it is
interrupted. A file of relay lists says which (SIGHUP reads it again), or the
link state that FRR's ospfd or isisd has, which runs on this host: then the paths
are the shortest ones to every other switch, each with the fewest relays that pin
it. For a prefix that both know the file counts. Paths that say where probes
turn are watched: flows leave a dead one at once.`,
		Example: "  sublet paths run --host h1 --device eth0 --lists lists.yaml\n  sublet paths run --host h1 --device eth0 --ospf /run/frr -k 8 --mode round-robin",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.spread(c.Context(), r) },
	}
	r.flags(c)
	r.spreadFlags(c)
	c.Flags().BoolVar(&r.uncut, "uncut", false, "the wires to all other hosts are within this kernel, as in a lab: headers cost less")
	return c
}

// spreadFlags are those that say what is spread, and how.
func (r *spreadRun) spreadFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.device, "device", "", "towards the fabric")
	f.StringVar(&r.source, "source", "", "source address of outer headers (default: a /32 of lo, else the device's IPv4 address)")
	f.StringVar(&r.source6, "source6", "", "source address of outer headers of SRv6, for lists that are by srv6")
	f.StringVar(&r.lists, "lists", "", "file of static relay lists, YAML or JSON")
	f.StringVar(&r.ospf, "ospf", "", "directory of the vty sockets of an ospfd of FRR")
	f.StringVar(&r.isis, "isis", "", "directory of the vty sockets of an isisd of FRR, instead of --ospf")
	f.IntVarP(&r.choice.Paths, "paths", "k", 8, "shortest paths to each switch, with --ospf or --isis")
	f.Float64Var(&r.choice.Stretch, "stretch", 0, "how many times the shortest one's cost a path may cost, with --ospf or --isis; 0: any")
	f.BoolVar(&r.choice.Even, "even", false, "deal flows equally to all paths, with --ospf or --isis; else short paths and those with links of their own get more")
	f.StringVar(&r.mode, "mode", string(plan.PerFlow), "hash, flow, flowlet or round-robin, with --ospf or --isis")
	f.StringVar(&r.by, "by", string(plan.ByIPIP), "ipip, gre, or udp for relays that all run Sublet, with --ospf or --isis")
	f.DurationVar(&r.probe, "probe", 20*time.Millisecond, "time between probes of a path in use; 0: no probes")
	f.IntVar(&r.lost, "lost", 7, "probes in a row without an answer after which a path is dead")
	f.DurationVar(&r.rearrange, "rearrange", time.Second, "time between looks at the flows' rates, by which flows are moved; 0: flows stay where they are")
}

func (r spreadRun) check() error {
	switch {
	case r.device == "":
		return badInput{errors.New("--device: name the device towards the fabric")}
	case r.lists == "" && r.ospf == "" && r.isis == "":
		return badInput{errors.New("state where paths come from: --lists FILE, --ospf DIR or --isis DIR")}
	case r.ospf != "" && r.isis != "":
		return badInput{errors.New("--ospf and --isis: link state comes from one of them, choose one")}
	case !slices.Contains(plan.SpreadModes, plan.SpreadMode(r.mode)):
		return badInput{fmt.Errorf("--mode %q: choose hash, flow, flowlet or round-robin", r.mode)}
	case !slices.Contains(plan.Relayings, plan.Relaying(r.by)) || plan.Relaying(r.by) == plan.BySRv6:
		return badInput{fmt.Errorf("--by %q: choose ipip, gre or udp", r.by)}
	case r.choice.Paths < 1 || r.choice.Paths > iplb.MaxPaths:
		return badInput{fmt.Errorf("-k %d: choose 1 to %d", r.choice.Paths, iplb.MaxPaths)}
	case r.choice.Stretch != 0 && !(r.choice.Stretch >= 1 && r.choice.Stretch < 1e6):
		return badInput{fmt.Errorf("--stretch %g: choose 1 or more, or 0 for any", r.choice.Stretch)}
	case r.probe != 0 && (r.probe < time.Millisecond || r.probe > time.Minute):
		return badInput{fmt.Errorf("--probe %s: choose 1ms to 1m, or 0 for none", r.probe)}
	case r.source6 != "" && !isIPv6(r.source6):
		return badInput{fmt.Errorf("--source6 %q: state an IPv6 address", r.source6)}
	case r.rearrange != 0 && (r.rearrange < 10*time.Millisecond || r.rearrange > time.Hour):
		return badInput{fmt.Errorf("--rearrange %s: choose 10ms to 1h, or 0 for never", r.rearrange)}
	case r.lost < 2 || r.lost > 200:
		return badInput{fmt.Errorf("--lost %d: choose 2 to 200", r.lost)}
	}
	return nil
}

func isIPv6(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Is6() && !address.Is4In6() && address.Zone() == ""
}

// options are what the loop is to do, with its lists read.
func (a *app) pathsOptions(r spreadRun, log *slog.Logger) (o iplbd.Options, err error) {
	if err := r.check(); err != nil {
		return o, err
	}
	o = iplbd.Options{
		Device: r.device, OSPF: r.ospf, ISIS: r.isis, Choice: r.choice, Probe: r.probe, Lost: r.lost, Rearrange: r.rearrange,
		WiresCarryGSO: r.uncut, Log: log,
	}
	o.Choice.Mode, o.Choice.By = plan.SpreadMode(r.mode), plan.Relaying(r.by)
	if r.source != "" {
		if o.Source, err = parseIP4("--source", r.source); err != nil {
			return o, err
		}
	}
	if r.source6 != "" {
		o.Source6 = netip.MustParseAddr(r.source6) // checked
	}
	if r.lists != "" {
		o.Reread = func() ([]plan.Spread, error) { return a.readLists(r.lists, r.source6) }
		o.Lists, err = o.Reread()
	}
	return o, err
}

func (a *app) spread(ctx context.Context, r spreadRun) error {
	o, err := a.pathsOptions(r, a.log(slog.LevelInfo).With("host", r.host))
	if err != nil {
		return err
	}
	h, err := a.openPlace(r.pathsPlace)
	if err != nil {
		return err
	}
	defer h.Close()
	lock, err := iplbd.Lock(a.run, r.host)
	if err != nil {
		return badInput{err}
	}
	defer lock.Close()
	t, err := iplbd.OpenTable(h, o)
	if err != nil {
		return err
	}
	defer t.Close()
	defer hangups(&o)()
	_, stop, err := iplbd.Start(ctx, h, t, iplbd.Socket(a.run, r.host), o)
	if err == nil {
		fmt.Fprintf(a.err, "sublet: paths of %s are up\n", r.host)
		<-ctx.Done()
		stop()
	}
	return errors.Join(err, iplb.UnpinSender(h))
}

// hangups makes SIGHUP have the lists read again, until stop is called.
func hangups(o *iplbd.Options) (stop func()) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	o.Again = again
	return func() { signal.Stop(again) }
}

// readLists reads a file of relay lists; source6 is of outer headers of SRv6, if
// there is one.
func (a *app) readLists(name, source6 string) ([]plan.Spread, error) {
	text, err := a.readFile(name)
	if err != nil {
		return nil, err
	}
	spreads, err := iplbd.ParseLists(name, text)
	if i := slices.IndexFunc(spreads, func(s plan.Spread) bool { return s.By == plan.BySRv6 }); err == nil && i >= 0 && source6 == "" {
		err = fmt.Errorf("%s: spreads[%d]: %s: segments take an IPv6 source: state --source6", name, i, spreads[i].Prefix)
	}
	return spreads, asBadInput(err)
}
