package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sublet/agent"
	"sublet/agent/host"
	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/trust"
	"sublet/vnet"
)

// agentOptions are the flags of agent.
type agentOptions struct {
	host, data, cgroup, listen string
	metrics                    string
	images                     imageOptions
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
	f.StringVar(&o.metrics, "metrics", "", "answer Prometheus on this HOST:PORT with /metrics, /healthz, /readyz: whoever reaches it sees everybody's networks on this host")
	o.images.flags(f)
	o.spread.spreadFlags(c)
	f.BoolVar(&o.uncut, "uncut", false, "the wires to all other hosts take large packets uncut: only within one kernel, as in a lab")
	logLevel(f, &o.level)
	f.DurationVar(&o.calibrate, "calibrate-after", 30*time.Second, "measure what this machine forwards once the agent has run for so long, if nobody has and no network runs on it; 0: never")
	f.IntVar(&o.workers, "workers", agent.DefaultWorkers, "steps done at once")
	return c
}

func (a *app) runAgent(ctx context.Context, o agentOptions) error {
	if o.data == "" {
		o.data = a.agentData()
	}
	if err := a.checkAgent(&o); err != nil {
		return err
	}
	log := a.log(o.level).With("host", o.host)
	config, err := a.agentConfig(o, log)
	if err != nil {
		return err
	}
	if err := startSmall(); err != nil {
		log.Warn("nodes start slower: the whole program is started in them", "error", err)
	}
	if config.Spread.Spreads() {
		defer hangups(&config.Spread)()
	}
	lock, err := lockHost(a.run, o.host)
	if err != nil {
		return err
	}
	defer lock.Close()
	metrics, err := listenMetrics(o.metrics)
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	h, err := host.Open(ctx, config)
	if err != nil {
		return err
	}
	defer h.Close()
	listener, guard, err := a.listenForServer(o.listen, config.Address)
	if err != nil {
		return err
	}
	defer h.Serve(ctx, listener, guard)()
	if metrics != nil {
		defer serveMetrics(metrics, h.Watched())()
	}
	if o.calibrate > 0 {
		go a.keepMeasured(ctx, config.Host, o.calibrate, log)
	}
	h.Run(ctx)
	return nil
}

// nodeProgram is what runs in nodes, if this program was built with it.
var nodeProgram []byte

// startSmall lets that one run in nodes.
func startSmall() error {
	if nodeProgram == nil {
		return nil
	}
	return kernel.SetInner(nodeProgram)
}

// checkAgent refuses flags and machines with which there can be no agent.
func (a *app) checkAgent(o *agentOptions) error {
	if err := vnet.CheckName(o.host); err != nil {
		return badInput{fmt.Errorf("--host: %w", err)}
	}
	return cmp.Or(checkListen(o.listen), o.images.check(), safeDir(a.run), safeDir(o.data), bpf.Supported())
}

// agentConfig is what the flags say.
func (a *app) agentConfig(o agentOptions, log *slog.Logger) (c host.Config, err error) {
	c = host.Config{
		Host: vnet.HostID(o.host), Run: a.run, Data: o.data, Cgroup: o.cgroup, Address: filepath.Join(a.run, "agent-"+o.host+".sock"),
		Source: a.client(), Workers: o.workers, Probe: probeCommand, Log: log, Images: o.images.dir, Registries: o.images.registries, ImagesQuota: o.images.bytes, WiresCarryGSO: o.uncut,
		Measured: measuredNow(measuredFile),
	}
	if o.listen != "" {
		c.Address = "https://" + o.listen
	}
	o.spread.uncut = o.uncut
	if o.spread.ospf != "" || o.spread.lists != "" {
		c.Spread, err = a.pathsOptions(o.spread, log)
	}
	c.Spread.Log = log
	return c, err
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

// lockHost makes sure that a host has one agent.
func lockHost(run, name string) (io.Closer, error) {
	lock, err := kernel.LockFile(filepath.Join(run, "agent-"+name+".lock"))
	if errors.Is(err, kernel.ErrLocked) {
		return nil, fmt.Errorf("host %s has an agent already", name)
	}
	return lock, err
}

// listenForServer opens the agent's socket, to which only root can connect, or
// a TCP port on which guard admits the server only.
func (a *app) listenForServer(port, socket string) (l net.Listener, guard func(http.Handler) http.Handler, err error) {
	if port != "" {
		l, err = trust.ListenTLS(port, a.tls.cert, a.tls.key, a.tls.ca)
		return l, trust.OnlyOperator, err
	}
	if l, err = kernel.ListenForRoot(socket); err != nil {
		err = fmt.Errorf("listen for sessions: %w", err)
	}
	return l, func(h http.Handler) http.Handler { return h }, err
}
