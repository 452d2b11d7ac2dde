package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sublet/agent"
	agentapi "sublet/agent/api"
	"sublet/datapath/bpf"
	"sublet/datapath/bridge"
	"sublet/datapath/kernel"
	"sublet/datapath/overlay"
	"sublet/datapath/reach"
	"sublet/datapath/vnode"
	"sublet/datapath/vxlink"
	"sublet/datapath/vxrouter"
	"sublet/datapath/vxswitch"
	"sublet/plan"
	"sublet/report"
	"sublet/trust"
	"sublet/vnet"
)

// agentOptions are the flags of agent.
type agentOptions struct {
	host, data, cgroup, listen string
	workers                    int
	level                      slog.Level
	calibrate                  time.Duration
	uncut                      bool
	spread                     spreadRun
}

func (a *app) agent() *cobra.Command {
	var o agentOptions
	c := &cobra.Command{
		Use:   "agent --host NAME",
		Short: "Run one host's agent",
		Long: `Run the agent of one host: it makes the host match its plan, again after any
accident, and goes on from a copy of the plan when the server is away. It works
in the network namespace it is started in. With --device and --ospf or --lists
it also spreads what leases do not carry over several paths of the fabric, as
sublet paths run does (docs/multipath.md).`,
		Example: "  sublet agent --host h1\n  sublet agent --host h2 --server 192.0.2.1:7443 --listen 192.0.2.2:7444 --cert h2.pem --key h2.key --ca ca.pem",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.runAgent(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.host, "host", "", "this host's name in the substrate")
	f.StringVar(&o.data, "data", "", "directory of the copy of the plan, from which a host goes on after a boot (default: "+agentData+"; with a --run of one's own RUN/agent)")
	f.StringVar(&o.cgroup, "cgroup", "sublet", "control group below which this host gets one")
	f.StringVar(&o.listen, "listen", "", "HOST:PORT for the server's sessions, with mutual TLS (default: a socket for a server on this machine)")
	o.spread.spreadFlags(c)
	f.BoolVar(&o.uncut, "uncut", false, "the wires to all other hosts take large packets uncut: only within one kernel, as in a lab")
	logLevel(f, &o.level)
	f.DurationVar(&o.calibrate, "calibrate-after", 30*time.Second, "measure what this machine forwards once the agent has run for so long, if nobody has and no network runs on it; 0: never")
	f.IntVar(&o.workers, "workers", agent.DefaultWorkers, "steps done at once")
	return c
}

func (a *app) runAgent(ctx context.Context, o agentOptions) error {
	if err := vnet.CheckName(o.host); err != nil {
		return badInput{fmt.Errorf("--host: %w", err)}
	}
	if o.data == "" {
		o.data = a.agentData()
	}
	if err := checkListen(o.listen); err != nil {
		return err
	}
	if err := cmp.Or(trusted(a.run), trusted(o.data)); err != nil {
		return err
	}
	if err := bpf.Supported(); err != nil {
		return err
	}
	log := a.log(o.level).With("host", o.host)
	lock, err := lockHost(a.run, o.host)
	if err != nil {
		return err
	}
	defer lock.Close()
	host, err := kernel.NewHost(kernel.Config{Host: o.host, Run: a.run, Cgroup: filepath.Join(o.cgroup, o.host)})
	if err != nil {
		return err
	}
	defer host.Close()
	nodes := vnode.New(host)
	defer nodes.Close()
	switches := bridge.New(host)
	defer switches.Close()
	routers := vxrouter.New(host)
	defer routers.Close()
	events := make(chan struct{}, 1)
	go func() {
		if err := kernel.Watch(ctx, host, events); err != nil {
			log.Warn("no events from the kernel, audits only", "err", err)
		}
	}()
	news := make(chan struct{}, 1)
	tell := func() {
		select {
		case news <- struct{}{}:
		default: // nobody has looked since the last time
		}
	}
	tunnels, reached := overlay.New(host), reach.New(host)
	tunnels.Changed, reached.Changed = tell, tell
	defer reached.Close()
	go func() {
		if err := host.WatchMounts(ctx, events); err != nil {
			log.Warn("no events of mounts, audits only", "err", err)
		}
	}()
	tunnels.WiresCarryGSO, o.spread.uncut = o.uncut, o.uncut
	defer tunnels.Close()
	links := vxlink.New(host)
	go links.Trim(ctx)
	o.spread.host = o.host
	paths, closePaths, err := a.agentPaths(ctx, o.spread, host, log)
	if err != nil {
		return err
	}
	defer closePaths()
	hosting := vxswitch.New(host)
	go hosting.Watch(ctx, events)
	go routers.Watch(ctx, events)
	keeper := &agent.Agent{
		Host: vnet.HostID(o.host), Address: filepath.Join(a.run, "agent-"+o.host+".sock"),
		Source: a.client(), Copy: filepath.Join(o.data, "plan-"+o.host+".json"),
		Parts:  []agent.Part{agent.Patient(links), agent.Patient(tunnels), agent.Patient(nodes), agent.Patient(routers), agent.Patient(switches), agent.Patient(hosting), agent.Patient(paths), reached},
		Events: events, Log: log, Workers: o.workers,
		NoCarrier: func() ([]string, error) { return host.NoCarrier(plan.IsTrunk) }, Interfaces: links.Interfaces,
		Cuts: func() report.Errors { return append(tunnels.Problems(), reached.Problems()...) },
		News: news, Touched: reached.Touched,
	}
	listener, err := a.listenForSessions(o.listen, keeper)
	if err != nil {
		return err
	}
	answers := agentapi.Host{
		Command: nodes.Command, Prober: []string{vnode.SelfInside(host.Run), probeCommand}, Namespace: host.Path,
		Plan: func(ctx context.Context) (plan.Host, error) {
			return keeper.Source.Plan(ctx, keeper.Host, plan.Origin{})
		},
		Diff: keeper.DryRun, Samples: keeper.Samples, Rounds: keeper.Rounds, Reach: reached.Ask,
	}
	handler := answers.Handler()
	if o.listen != "" {
		handler = trust.OnlyOperator(handler)
	}
	defer agentapi.Serve(ctx, listener, handler)()
	if o.calibrate > 0 {
		go a.keepMeasured(ctx, keeper.Host, o.calibrate, log)
	}
	keeper.Run(ctx)
	return nil
}

// agentData is where the copy of the plan outlives a boot.
const agentData = "/var/lib/sublet/agent"

// agentData is the default of --data: agents with run directories of their own,
// such as several on one machine, do not share one.
func (a *app) agentData() string {
	if filepath.Clean(a.run) == defaultRun {
		return agentData
	}
	return filepath.Join(a.run, "agent")
}

// checkListen refuses a port without an address: the server reaches the agent
// by what it listens on.
func checkListen(address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return badInput{fmt.Errorf("--listen %s: %w: write HOST:PORT, such as 192.0.2.2:7444", address, err)}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return badInput{fmt.Errorf("--listen %s: the server reaches the agent by this address: write one of this host's, such as 192.0.2.2:%s", address, port)}
	}
	return nil
}

// lockHost makes sure that a host has one agent. The lock is the process's
// (fcntl(2)): flock(2)'s would be held by a child that was made just before
// this process was killed, and keep the next agent out.
func lockHost(run, host string) (io.Closer, error) {
	if err := os.MkdirAll(run, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(run, "agent-"+host+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		f.Close()
		return nil, fmt.Errorf("host %s has an agent already", host)
	}
	return f, nil
}

// listenForSessions opens the agent's socket, or a TCP port that becomes its
// address.
func (a *app) listenForSessions(port string, keeper *agent.Agent) (net.Listener, error) {
	if port != "" {
		keeper.Address = "https://" + port
		return trust.ListenTLS(port, a.tls.cert, a.tls.key, a.tls.ca)
	}
	l, err := kernel.ListenForRoot(keeper.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for sessions: %w", err)
	}
	return l, nil
}
