package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sublet/agent"
	"sublet/agent/capture"
	"sublet/agent/session"
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
	d := &agentDoor{host: host, nodes: nodes, routers: routers, switches: switches, log: log}
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
	tunnels.Uncut, o.spread.uncut = o.uncut, o.uncut
	defer tunnels.Close()
	d.tunnels, d.reached = tunnels, reached
	links := vxlink.New(host)
	d.links = links
	go links.Trim(ctx)
	o.spread.host = o.host
	paths, closePaths, err := a.agentPaths(ctx, o.spread, host, log)
	if err != nil {
		return err
	}
	defer closePaths()
	hosting := vxswitch.New(host)
	d.hosting = hosting
	go hosting.Watch(ctx, events)
	go routers.Watch(ctx, events)
	keeper := &agent.Agent{
		Host: vnet.HostID(o.host), Address: filepath.Join(a.run, "agent-"+o.host+".sock"),
		Source: a.client(), Copy: filepath.Join(o.data, "plan-"+o.host+".json"),
		Parts:  []agent.Part{agent.Patient(links), agent.Patient(tunnels), agent.Patient(nodes), agent.Patient(routers), agent.Patient(switches), agent.Patient(hosting), agent.Patient(paths), reached},
		Events: events, Log: log, Workers: o.workers,
		Dark: func() ([]string, error) { return host.Dark(plan.IsTrunk) }, Interfaces: links.Interfaces,
		Cuts: func() report.Errors { return append(tunnels.Problems(), reached.Problems()...) },
		News: news, Touched: reached.Touched,
	}
	d.agent = keeper
	listener, err := a.listenForSessions(o.listen, keeper)
	if err != nil {
		return err
	}
	defer d.serve(ctx, listener, o.listen != "")()
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

// agentDoor serves sessions. Only root can connect to the socket, only the
// server to the port: it decided who may do what.
type agentDoor struct {
	host     *kernel.Host
	nodes    *vnode.Part
	routers  *vxrouter.Part
	switches *bridge.Part
	links    *vxlink.Part
	tunnels  *overlay.Part
	reached  *reach.Part
	hosting  *vxswitch.Part
	agent    *agent.Agent
	log      *slog.Logger
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

// serve answers until ctx ends or stop is called.
func (d *agentDoor) serve(ctx context.Context, l net.Listener, remote bool) (stop func()) {
	handler := d.routes()
	if remote {
		handler = trust.OnlyOperator(handler)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = server.Serve(l) }()
	return func() { _ = server.Close() }
}

func (d *agentDoor) routes() http.Handler {
	sessions := http.NewServeMux()
	sessions.HandleFunc("/v1/nodes/{namespace}/exec", d.exec)
	sessions.HandleFunc("/v1/nodes/{namespace}/probe", d.probe)
	sessions.HandleFunc("/v1/links/{fabric}/{index}/capture", d.capture)
	mux := http.NewServeMux()
	mux.Handle("/v1/", session.Bound(session.MostSessions, sessions))
	mux.HandleFunc("GET /v1/diff", d.diff)
	mux.HandleFunc("GET /v1/paths", d.paths)
	mux.HandleFunc("GET /v1/overlay", d.overlay)
	mux.HandleFunc("GET /v1/links/{fabric}/traffic", d.traffic)
	mux.HandleFunc("GET /v1/links/{fabric}/reach", d.reach)
	return mux
}

func (d *agentDoor) exec(w http.ResponseWriter, r *http.Request) {
	session.Serve(w, r, func(s session.Spec) (*exec.Cmd, error) {
		cmd, err := d.nodes.Command(r.PathValue("namespace"), s.Argv, s.TTY)
		if err == nil && s.TTY {
			cmd.Env = append(cmd.Env, "TERM="+s.Term)
		}
		return cmd, err
	})
}

// probe runs this program as a prober in the node.
func (d *agentDoor) probe(w http.ResponseWriter, r *http.Request) {
	session.Serve(w, r, func(session.Spec) (*exec.Cmd, error) {
		self := vnode.SelfInside(d.host.Run)
		return d.nodes.Command(r.PathValue("namespace"), []string{self, probeCommand}, false)
	})
}

// capture streams one of this host's port ends of a link: ?end= when both are here.
func (d *agentDoor) capture(w http.ResponseWriter, r *http.Request) {
	fabric, end := r.PathValue("fabric"), r.URL.Query().Get("end")
	index, err := strconv.Atoi(r.PathValue("index"))
	if err != nil || strings.Contains(fabric, "/") {
		http.Error(w, "no such link", http.StatusNotFound)
		return
	}
	side := 0
	if end == "1" {
		side = 1
	}
	port, err := d.port(r.Context(), fabric, index, side)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	session.ServeStream(w, r, func(ctx context.Context, out io.Writer) error {
		return capture.Stream(ctx, d.host.Path(port.Namespace), port.Interface, port.Namespace+"/"+port.Interface, capture.Options{}, out)
	})
}

// port is the end of a link in its node: the one place by which all its frames
// pass, since those out of a tunnel reach the node without the fabric's device.
func (d *agentDoor) port(ctx context.Context, fabric string, index, side int) (*plan.Port, error) {
	want, err := d.agent.Source.Plan(ctx, d.agent.Host, plan.Origin{})
	if err != nil {
		return nil, err
	}
	for _, l := range want.Links {
		if plan.Fabric(l.Lease) == fabric && l.Index == index && l.Ends[side].Port != nil {
			return l.Ends[side].Port, nil
		}
	}
	return nil, errors.New("no such link end here")
}

// overlay says what the tunnels' entries are and did.
func (d *agentDoor) overlay(w http.ResponseWriter, _ *http.Request) {
	states, err := d.tunnels.States()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(states)
}

// paths says what routers and switches forward.
func (d *agentDoor) paths(w http.ResponseWriter, r *http.Request) {
	routers, err := d.routers.Paths()
	if err == nil {
		var ports []report.Forwarding
		ports, err = d.switches.Paths()
		routers = append(routers, ports...)
	}
	if err == nil {
		var ports []report.Forwarding
		ports, err = d.hosting.Paths(r.Context())
		routers = append(routers, ports...)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(routers)
}

// diff says what the agent would do.
func (d *agentDoor) diff(w http.ResponseWriter, r *http.Request) {
	steps, err := d.agent.DryRun(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	lines := make([]string, len(steps))
	for i, s := range steps {
		lines[i] = s.String()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(lines)
}
