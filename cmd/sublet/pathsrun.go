package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sublet/agent/iplbd"
	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// spreadRun is what `paths run` was asked for.
type spreadRun struct {
	pathsPlace
	device, source, lists string
	probe, rearrange      time.Duration
	lost                  int
}

func (a *app) pathsRun() *cobra.Command {
	var r spreadRun
	c := &cobra.Command{
		Use:   "run --host NAME --device DEVICE --lists FILE",
		Short: "Spread this host's packets over several paths of the fabric",
		Long: `Spread what a device sends over several paths of the fabric, as a file of relay
lists says, until it is interrupted. SIGHUP reads the file again. Paths that say
where probes turn are watched: flows leave a dead one at once.`,
		Example: "  sublet paths run --host h1 --device eth0 --lists lists.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.spread(c.Context(), r) },
	}
	r.flags(c)
	f := c.Flags()
	f.StringVar(&r.device, "device", "", "towards the fabric")
	f.StringVar(&r.source, "source", "", "of outer headers (default: a /32 of lo, else the device's IPv4 address)")
	f.StringVar(&r.lists, "lists", "", "file of static relay lists, YAML or JSON")
	f.DurationVar(&r.probe, "probe", 20*time.Millisecond, "between probes of a path in use; 0: no probes")
	f.IntVar(&r.lost, "lost", 7, "probes in a row without an answer after which a path is dead")
	f.DurationVar(&r.rearrange, "rearrange", time.Second, "between looks at the flows' rates; 0: flows stay where they are")
	return c
}

func (r spreadRun) check() error {
	switch {
	case r.device == "":
		return badInput{errors.New("--device: name the device towards the fabric")}
	case r.lists == "":
		return badInput{errors.New("--lists: name a file of relay lists")}
	case r.probe != 0 && (r.probe < time.Millisecond || r.probe > time.Minute):
		return badInput{fmt.Errorf("--probe %s: choose 1ms to 1m, or 0 for none", r.probe)}
	case r.rearrange != 0 && (r.rearrange < 10*time.Millisecond || r.rearrange > time.Hour):
		return badInput{fmt.Errorf("--rearrange %s: choose 10ms to 1h, or 0 for never", r.rearrange)}
	case r.lost < 2 || r.lost > 200:
		return badInput{fmt.Errorf("--lost %d: choose 2 to 200", r.lost)}
	}
	return nil
}

func (a *app) spread(ctx context.Context, r spreadRun) error {
	if err := r.check(); err != nil {
		return err
	}
	spreads, err := a.readLists(r.lists)
	if err != nil {
		return err
	}
	h, err := a.openPlace(r.pathsPlace)
	if err != nil {
		return err
	}
	defer h.Close()
	source, err := r.sourceOf(h)
	if err != nil {
		return err
	}
	t, err := iplb.Open(h, source)
	if err != nil {
		return err
	}
	defer t.Close()
	return errors.Join(a.runPaths(ctx, r, h, t, spreads), iplb.Unpin(h))
}

func (r spreadRun) sourceOf(h *kernel.Host) (netip.Addr, error) {
	if r.source == "" {
		return iplb.SourceOf(h, r.device)
	}
	source, err := netip.ParseAddr(r.source)
	if err != nil || !source.Is4() {
		return source, badInput{fmt.Errorf("--source %q: state an IPv4 address", r.source)}
	}
	return source, nil
}

func (a *app) readLists(name string) ([]plan.Spread, error) {
	text, err := a.readFile(name)
	if err != nil {
		return nil, err
	}
	spreads, err := iplbd.ParseLists(name, text)
	return spreads, asBadInput(err)
}

// runPaths works until the context ends.
func (a *app) runPaths(ctx context.Context, r spreadRun, h *kernel.Host, t *iplb.Table, spreads []plan.Spread) error {
	log := slog.New(slog.NewTextHandler(a.err, nil)).With("host", r.host)
	d := iplbd.New(r.host, t, log)
	d.Rearrange = r.rearrange
	prober, err := iplb.NewProber(h, r.device)
	if err != nil {
		return err
	}
	defer prober.Close()
	d.Probing = iplbd.Probing{Every: r.probe, Lost: r.lost, Send: prober.Send}
	d.Apply(spreads)
	if err := t.Spread(h, r.device); err != nil {
		return err
	}
	stop, err := d.Serve(ctx, a.pathsSocket(r.host))
	if err != nil {
		return err
	}
	defer stop()
	go a.rereadLists(ctx, d, r.lists, log)
	fmt.Fprintf(a.err, "sublet: paths of %s are up\n", r.host)
	d.Run(ctx)
	return nil
}

// rereadLists reads the file again when told to. A file that cannot be read
// changes nothing.
func (a *app) rereadLists(ctx context.Context, d *iplbd.Daemon, name string, log *slog.Logger) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			spreads, err := a.readLists(name)
			if err != nil {
				log.Error("relay lists not read", "err", err)
				continue
			}
			d.Want(ctx, spreads)
		}
	}
}
