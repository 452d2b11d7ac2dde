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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sublet/datapath/bpf"
	"sublet/lease"
	"sublet/lease/api"
	"sublet/lease/store"
	"sublet/server"
	"sublet/trust"
	"sublet/vnet"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	data, substrate, listen, host string
	metrics                       string
	page, verify                  string
	policy                        string
	endpoints                     []string
	etcd                          credentials // towards the endpoints
	member                        string      // where this server's member of the store answers the others
	join                          []string    // servers to become one of
	name                          string      // among several
	withAgent                     bool
	notices                       []string
	notify                        notifyOptions
	prices                        vnet.Prices
	moves                         int
	tls                           credentials
	level                         slog.Level
}

func (a *app) serve() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: API, book, store, clock",
		Long: `Run the server. It keeps the book of leases in an embedded etcd below --data and
answers on RUN/api.sock, where the kernel says who the caller is. Agents get
their plans from it; running networks run on without it.

With --member it is one of several servers whose embedded stores are one cluster: one
of them leads, the others pass on to it what they are asked, and one takes over when
it is gone (docs/guides/servers.md). The first one founds the cluster, any other one
is told by --join where servers answer. With --etcd they share an external etcd
instead. --substrate is then for a store that has none yet.`,
		Example: "  sublet serve --substrate substrate.yaml --agent\n  sublet serve --data /var/lib/sublet\n  sublet serve --name s1 --listen 192.0.2.1:7443 --member 192.0.2.1:7444 --cert s1.pem --key s1.key --ca ca.pem --substrate substrate.yaml\n  sublet serve --name s2 --listen 192.0.2.2:7443 --member 192.0.2.2:7444 --join 192.0.2.1:7443 --cert s2.pem --key s2.key --ca ca.pem\n  sublet serve --name s1 --etcd 192.0.2.1:2379,192.0.2.2:2379,192.0.2.3:2379 --listen 192.0.2.1:7443 --cert server.pem --key server.key --ca ca.pem",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.tls = a.tls
			return a.runServer(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.data, "data", "/var/lib/sublet", "directory of the store")
	f.StringVar(&o.substrate, "substrate", "", "substrate: "+substrateForms+"; without it the one in the store")
	f.StringVar(&o.policy, "policy", "", "file that says who may have how much (docs/policy.md); read again when it changes and on SIGHUP")
	f.BoolVar(&o.withAgent, "agent", false, "also run this machine's agent, as a process of its own")
	f.StringVar(&o.host, "host", "", "this machine's name in the substrate (default: its host name, or the only host)")
	f.StringVar(&o.listen, "listen", "", "also answer on this HOST:PORT, with mutual TLS (--cert, whose common name is operator, --key, --ca); with tokens too, once there are any (sublet token)")
	f.StringVar(&o.metrics, "metrics", "", "answer Prometheus on this HOST:PORT with /metrics, /healthz, /readyz: whoever reaches it sees everybody's networks")
	f.StringVar(&o.verify, "verify", "none", "handover: networks whose requests do not say are said to run once their promises were measured; none: at once")
	f.StringVar(&o.page, "page", "full", "the page at /: full, read-only, or none; it shows and does what its visitor may (sublet token)")
	logLevel(f, &o.level)
	f.IntVar(&o.moves, "moves", lease.DefaultMoves, "how many leases that allow it may be moved to let one in")
	f.Float64Var(&o.prices.Resource, "price-resource", vnet.DefaultPrices.Resource, "cost of a node or router for a second, quoted to leases from now on")
	f.Float64Var(&o.prices.Kernel, "price-kernel", vnet.DefaultPrices.Kernel, "cost of a second of a processor that kernels spend on a lease's packets")
	f.Float64Var(&o.prices.Bandwidth, "price-bandwidth", vnet.DefaultPrices.Bandwidth, "cost of 1 Mbit/s guaranteed for a second")
	f.StringSliceVar(&o.notices, "notices", []string{"1d", "1h"}, "how long before its end a lease is said to end, among its events; none: never")
	o.notify.flags(f)
	f.StringSliceVar(&o.endpoints, "etcd", nil, "endpoints of an external etcd cluster, instead of the embedded one: HOST:PORT or https://HOST:PORT")
	f.StringVar(&o.member, "member", "", "HOST:PORT where this server's store answers those of other servers, with which it is one cluster")
	f.StringSliceVar(&o.join, "join", nil, "HOST:PORT where servers answer (--listen) of which this one becomes one; without it the first start founds a control plane")
	f.StringVar(&o.name, "name", "", "this server's name among several (default: the machine's host name)")
	f.StringVar(&o.etcd.cert, "etcd-cert", "", "certificate towards the external etcd")
	f.StringVar(&o.etcd.key, "etcd-key", "", "key of that certificate")
	f.StringVar(&o.etcd.ca, "etcd-ca", "", "certificate of the authority of the external etcd")
	return c
}

func (a *app) runServer(ctx context.Context, o serveOptions) (err error) {
	if err := cmp.Or(safeDir(a.run), safeDir(o.data), o.checkSeveral()); err != nil {
		return err
	}
	seen := fileVersion(o.policy) // before it is read
	config, err := a.serverConfig(o)
	if err == nil && o.withAgent {
		err = bpf.Supported()
	}
	if err != nil {
		return err
	}
	metrics, err := listenMetrics(o.metrics)
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	config.Journal = filepath.Join(o.data, "journal")
	if o.several() {
		return a.runMember(ctx, o, config, seen, metrics)
	}
	if config.Tokens, err = trust.OpenTokens(filepath.Join(o.data, "tokens.json"), time.Now); err != nil {
		return err
	}
	listeners, err := o.listeners(a.run, config.Tokens, config.Log)
	if err != nil {
		return err
	}
	books, err := store.Open(ctx, store.Config{Dir: filepath.Join(o.data, "etcd"), Logger: config.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, books.Close()) }()
	config.Store = books
	server, err := server.New(ctx, config)
	if err != nil {
		return err
	}
	if o.withAgent {
		stop, err := a.startAgent(ctx, books, o)
		if err != nil {
			return err
		}
		defer stop()
	}
	config.Log.Info("serving", "socket", filepath.Join(a.run, api.SocketName))
	ctx, stop := untilStoreEnds(ctx, books)
	defer stop(nil)
	if metrics != nil {
		defer serveMetrics(metrics, server.Watched())()
	}
	if o.policy != "" {
		go a.followPolicy(ctx, o.policy, seen, config.Log, server.SetPolicy)
	}
	defer a.forward(ctx, server, o)()
	return errors.Join(server.Serve(ctx, listeners...), cause(ctx))
}

// serverConfig reads the files that the flags name.
func (a *app) serverConfig(o serveOptions) (config server.Config, err error) {
	config.Log = a.log(o.level)
	if err := o.prices.Check(); err != nil {
		return config, badInput{err}
	}
	if o.moves < 0 || o.moves > 8 {
		return config, badInput{fmt.Errorf("--moves %d is not between 0 and 8", o.moves)}
	}
	config.Prices, config.Moves = &o.prices, &o.moves
	if config.Notices, err = noticesOf(o.notices); err != nil {
		return config, err
	}
	if config.Notify, err = o.notify.notices(o.data); err != nil {
		return config, err
	}
	switch o.verify {
	case "", string(vnet.VerifyNone):
	case string(vnet.VerifyHandover):
		config.Verify = true
	default:
		return config, badInput{fmt.Errorf("--verify %q is not known: choose handover or none", o.verify)}
	}
	config.Checker = measureLease
	if config.Page, err = pageOf(o.page); err != nil {
		return config, err
	}
	if o.substrate != "" {
		sub, err := a.readSubstrate(o.substrate)
		if err != nil {
			return config, err
		}
		config.Substrate = &sub
		if links := portless(sub); len(links) > 0 {
			config.Log.Warn("hosts say by no interface and address how they reach these links, so no lease can use them: state their ports", "links", links)
		}
	}
	if o.policy != "" {
		p, err := a.readPolicy(o.policy)
		if err != nil {
			return config, err
		}
		config.Policy = &p
	}
	if o.tls.cert != "" {
		config.AgentTLS, err = trust.TLSConfig(o.tls.cert, o.tls.key, o.tls.ca)
	}
	return config, err
}

// noticesOf reads how long before its end a lease is said to end.
func noticesOf(words []string) ([]time.Duration, error) {
	list := []time.Duration{}
	for _, word := range words {
		if word == "none" && len(words) == 1 {
			return list, nil
		}
		d, err := vnet.ParseDuration(word)
		if err != nil || d < time.Minute || len(words) > mostNotices {
			return nil, badInput{fmt.Errorf("--notices %s: state up to %d durations of a minute and more, such as 1d,1h, or none", strings.Join(words, ","), mostNotices)}
		}
		list = append(list, d)
	}
	return list, nil
}

// mostNotices bounds those of one lease.
const mostNotices = 8

// listenMetrics opens an address for Prometheus; "": none.
func listenMetrics(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, badInput{fmt.Errorf("--metrics %s: %w: write HOST:PORT of this machine, such as 127.0.0.1:9464", address, err)}
	}
	return listener, nil
}

// serveMetrics answers Prometheus until shut is called.
func serveMetrics(listener net.Listener, handler http.Handler) (shut func()) {
	const patience = 10 * time.Second // of Prometheus, by default
	server := &http.Server{Handler: handler, ReadHeaderTimeout: patience, IdleTimeout: time.Minute}
	go server.Serve(listener)
	return func() { server.Close() }
}

// portless lists the links of which a host's end has no interface or address.
func portless(sub vnet.Substrate) (names []string) {
	for _, l := range sub.Links {
		for end, port := range l.Ports {
			_, isHost := sub.HostOf(l.Ends[end])
			if isHost && (port.Interface == "" || !port.Address.IsValid()) {
				names = append(names, l.Name)
				break
			}
		}
	}
	return names
}

// listeners opens the socket and, if wanted, the TCP port.
func (o serveOptions) listeners(run string, tokens *trust.Tokens, log *slog.Logger) ([]net.Listener, error) {
	socket, err := server.Listen(run, log)
	if err != nil || o.listen == "" {
		return []net.Listener{socket}, err
	}
	port, err := trust.ListenTLSFor(tokens.Any, o.listen, o.tls.cert, o.tls.key, o.tls.ca)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return []net.Listener{socket, port}, nil
}

// untilStoreEnds gives a context that ends with the store's leadership or with
// the embedded store itself.
func untilStoreEnds(ctx context.Context, books *store.Store) (context.Context, context.CancelCauseFunc) {
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-books.Deposed():
			stop(store.ErrDeposed)
		case err := <-books.Failed():
			stop(fmt.Errorf("the store ended: %w", err))
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// cause is why the store ended; nil if the server was asked to stop.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// startAgent runs the local agent in a process of its own, so that neither
// takes the other along. It is left running when the server is killed, and
// stopped when the server stops.
func (a *app) startAgent(ctx context.Context, books *store.Store, o serveOptions) (stop func(), err error) {
	state, err := books.Load(ctx)
	if err != nil {
		return nil, err
	}
	host, err := localHost(state.Substrate, o.host)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, "agent", "--run", a.run, "--data", o.data, "--host", host)
	cmd.Stderr = fileOf(a.err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	}, nil
}

func fileOf(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return nil
}

// localHost finds this machine in the substrate.
func localHost(sub vnet.Substrate, stated string) (string, error) {
	if stated != "" {
		return stated, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	if len(sub.Hosts) == 1 {
		return string(sub.Hosts[0].Name), nil
	}
	if _, ok := sub.HostOf(name); ok {
		return name, nil
	}
	return "", badInput{errors.New("which host of the substrate is this machine? State it with --host")}
}
