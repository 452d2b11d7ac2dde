package iplbd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Options say what a host spreads over paths, from where it knows them, and how
// it watches them.
type Options struct {
	Device  string     // towards the fabric
	Source  netip.Addr // of outer headers; invalid: a /32 of lo, else the device's IPv4 address
	Source6 netip.Addr // of outer headers of SRv6; invalid: no list is by SRv6

	Lists  []plan.Spread                 // static
	Again  <-chan os.Signal              // when lists are to be read again; nil: never
	Reread func() ([]plan.Spread, error) // reads them; nil without lists
	OSPF   string                        // directory of the vty sockets of an ospfd of FRR; "": none
	ISIS   string                        // likewise, of an isisd
	Choice Choice                        // of paths that the link state has

	Probe     time.Duration // between probes of a path in use; 0: none
	Lost      int           // probes in a row without an answer after which a path is dead
	Rearrange time.Duration // between looks at the flows' rates; 0: never

	WiresCarryGSO bool // the wires to all other hosts are within this kernel
	Log           *slog.Logger
}

// Spreads says whether there is anything to spread beside the tunnels of leases.
func (o Options) Spreads() bool { return o.Reread != nil || o.OSPF != "" || o.ISIS != "" }

// Lock makes this process the only writer of a host's table of paths.
func Lock(run, host string) (io.Closer, error) {
	lock, err := kernel.LockFile(filepath.Join(run, "agent-paths-"+host+".lock"))
	if errors.Is(err, kernel.ErrLocked) {
		return nil, fmt.Errorf("host %s runs paths already, by sublet paths run or by its agent for leases: end that first", host)
	}
	return lock, err
}

// Socket is where the loop of a host answers.
func Socket(run, host string) string { return filepath.Join(run, "paths-"+host+".sock") }

// AgentSocket is where the agent of a host answers the same. Names of hosts
// hold no '@'.
func AgentSocket(run, host string) string { return Socket(run, host+"@agent") }

// Open makes an agent's part: tunnels of leases as the plan says, and beside
// them, if the options say so, paths over which all else is spread by load. One
// table and one process have both.
func Open(ctx context.Context, h *kernel.Host, o Options) (*Part, error) {
	if o.Spreads() {
		return openBoth(ctx, h, o)
	}
	p := NewPart(h, func() (io.Closer, error) { return Lock(h.Run, h.Host) })
	stop, err := Serve(ctx, AgentSocket(h.Run, h.Host), p, o.Log)
	if err != nil {
		return nil, err
	}
	p.stop = stop
	return p, nil
}

// openBoth runs the loop of paths beside the part.
func openBoth(ctx context.Context, h *kernel.Host, o Options) (*Part, error) {
	lock, err := Lock(h.Run, h.Host)
	if err != nil {
		return nil, err
	}
	t, err := OpenTable(h, o)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	d, stop, err := Start(ctx, h, t, AgentSocket(h.Run, h.Host), o)
	if err != nil {
		t.Close()
		return nil, errors.Join(err, lock.Close())
	}
	p := PartOf(d, h)
	p.stop = func() { stop(); t.Close(); lock.Close() }
	return p, nil
}

// OpenTable opens the table of a host. What is wrong with the device is a
// *vnet.FieldError.
func OpenTable(h *kernel.Host, o Options) (*iplb.Table, error) {
	if err := iplb.CheckDevice(h, o.Device); err != nil {
		return nil, &vnet.FieldError{Path: "--device", Problem: err.Error()}
	}
	source := o.Source
	if !source.IsValid() {
		own, err := iplb.SourceOf(h, o.Device)
		if err != nil {
			return nil, &vnet.FieldError{Problem: err.Error()}
		}
		source = own
	}
	t, err := iplb.Open(h, source)
	if err != nil {
		return nil, err
	}
	t.Source6 = o.Source6
	if err := t.SetWiresCarryGSO(o.WiresCarryGSO); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Start starts the loop over a table, which it owns until stop returns; it ends
// with the context, and what is in the kernel stays. It answers at a socket.
func Start(ctx context.Context, h *kernel.Host, t *iplb.Table, socket string, o Options) (d *Daemon, stop func(), err error) {
	d = New(h.Host, t, o.Log)
	d.Rearrange = o.Rearrange
	prober, err := iplb.NewProber(h, o.Device)
	if err != nil {
		return nil, nil, err
	}
	d.Probing = Probing{Every: o.Probe, Lost: o.Lost, Send: prober.Send}
	d.Apply(o.Lists)
	var silence func()
	if err = t.Spread(h, o.Device); err == nil {
		silence, err = Serve(ctx, socket, d, o.Log)
	}
	if err != nil {
		prober.Close()
		return nil, nil, err
	}
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	running.Go(func() { d.feed(ctx, o) })
	return d, func() { silence(); running.Wait(); prober.Close() }, nil
}

// feed tells the loop what is wanted, whenever the lists or the link state say
// something new.
func (d *Daemon) feed(ctx context.Context, o Options) {
	computed := make(chan []plan.Spread)
	told := func(s []plan.Spread) {
		select {
		case computed <- s:
		case <-ctx.Done():
		}
	}
	if o.OSPF != "" {
		go OSPF{Dir: o.OSPF, Choice: o.Choice, Log: o.Log}.Run(ctx, told)
	}
	if o.ISIS != "" {
		go ISIS{Dir: o.ISIS, Choice: o.Choice, Log: o.Log}.Run(ctx, told)
	}
	static, dynamic := o.Lists, []plan.Spread(nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.Again:
			fresh, err := o.reread()
			if err != nil {
				o.Log.Error("relay lists not read", "err", err) // a file that is wrong changes nothing
			} else {
				static = fresh
			}
		case dynamic = <-computed:
		}
		d.Want(ctx, Merge(static, dynamic))
	}
}

// reread reads the lists again, if there are any.
func (o Options) reread() ([]plan.Spread, error) {
	if o.Reread == nil {
		return nil, nil
	}
	return o.Reread()
}
