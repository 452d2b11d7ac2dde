package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/lease/store"
	"sublet/server"
	"sublet/vnet"
)

// leadAgain is how long a server that could not lead waits before it tries again.
const leadAgain = 200 * time.Millisecond

// cluster tells a server of those it shares a store with.
type cluster struct{ *store.Cluster }

func (c cluster) Leader() (name, address string, changed <-chan struct{}) {
	leader, changed := c.Cluster.Leader()
	return leader.Name, leader.Address, changed
}

func (c cluster) Servers(ctx context.Context) ([]api.Server, error) {
	servers, err := c.Cluster.Servers(ctx)
	list := []api.Server{}
	for _, s := range servers {
		list = append(list, api.Server{Name: s.Name, Address: s.Address, Member: s.Member, Leads: s.Leads, Since: s.Since})
	}
	return list, err
}

func (c cluster) AddServer(ctx context.Context, s api.Server, replaces string) error {
	switch {
	case c.Own() && s.Member == "":
		return &vnet.FieldError{Path: "member", Problem: "each of these servers has a member of the store: state HOST:PORT where the new one's answers the others (--member)"}
	case !c.Own() && s.Member != "":
		return &vnet.FieldError{Path: "member", Problem: "these servers share an external etcd, of which the new one has no member: leave it out"}
	}
	return ofMembers(c.Cluster.AddServer(ctx, stored(s), replaces))
}

func stored(s api.Server) store.Server {
	return store.Server{Name: s.Name, Address: s.Address, Member: s.Member, Leads: s.Leads, Since: s.Since}
}

func (c cluster) RemoveServer(ctx context.Context, name string) error {
	return ofMembers(c.Cluster.RemoveServer(ctx, name))
}

// ofMembers gives the store's errors the names that the API has for them.
func ofMembers(err error) error {
	switch {
	case errors.Is(err, store.ErrNoMember):
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	case errors.Is(err, store.ErrMember):
		return fmt.Errorf("%w: %w", api.ErrConflict, err)
	}
	return err
}

// several says that this is one of several servers, or may become one.
func (o *serveOptions) several() bool { return len(o.endpoints) > 0 || o.member != "" }

// checkSeveral refuses flags that several servers cannot be run with.
func (o *serveOptions) checkSeveral() error {
	if err := o.checkStore(); err != nil || !o.several() {
		return err
	}
	if o.withAgent {
		return badInput{errors.New("--agent is for a server that is alone: beside --member or --etcd run `sublet agent --server ADDRESSES --listen HOST:PORT` as a service of its own, since it outlives this server's leading")}
	}
	if o.name == "" {
		name, err := os.Hostname()
		if err != nil {
			return badInput{fmt.Errorf("--name: %w", err)}
		}
		o.name = name
	}
	if err := vnet.CheckName(o.name); err != nil {
		return badInput{fmt.Errorf("--name %s: %w", o.name, err)}
	}
	return checkListen(o.listen)
}

// checkStore refuses flags of which store the servers share.
func (o *serveOptions) checkStore() error {
	switch {
	case len(o.endpoints) == 0 && o.etcd != (credentials{}):
		return badInput{errors.New("--etcd-cert, --etcd-key and --etcd-ca are for an external etcd: state --etcd too, or leave them out")}
	case !o.several() && o.name != "":
		return badInput{errors.New("--name is for one of several servers: state --member or --etcd too, or leave it out")}
	case o.etcd.cert != "" && (o.etcd.key == "" || o.etcd.ca == ""):
		return badInput{errors.New("--etcd-cert needs --etcd-key and --etcd-ca")}
	case o.etcd.key != "" && o.etcd.cert == "":
		return badInput{errors.New("--etcd-key is for --etcd-cert: state both, or leave it out")}
	case o.etcd.ca != "" && slices.ContainsFunc(o.endpoints, withoutTLS):
		return badInput{errors.New("--etcd http://... is without TLS, and --etcd-ca is for TLS: write https://HOST:PORT, or leave --etcd-ca out")}
	case o.member == "" && len(o.join) > 0:
		return badInput{errors.New("--join is for a server with a member of the store: state --member too, or leave it out")}
	case o.member == "":
		return nil
	case len(o.endpoints) > 0:
		return badInput{errors.New("state --member for a store of the servers themselves, or --etcd for an external one")}
	case o.listen == "" || o.tls.cert == "" || o.tls.key == "" || o.tls.ca == "":
		return badInput{errors.New("--member needs --listen, --cert, --key and --ca: the other servers are called and answered by them")}
	}
	if host, port, err := net.SplitHostPort(o.member); err != nil || host == "" || port == "" || port == "0" {
		return badInput{fmt.Errorf("--member %s is not HOST:PORT by which the other servers reach this one, such as 192.0.2.1:7444", o.member)}
	}
	if o.member == o.listen {
		return badInput{fmt.Errorf("--member %s is --listen, too: state another port", o.member)}
	}
	for _, address := range o.join {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return badInput{fmt.Errorf("--join %s is not HOST:PORT of a server's --listen", address)}
		}
	}
	return nil
}

// withoutTLS says that an endpoint is spoken with without TLS, whatever certificates there are.
func withoutTLS(endpoint string) bool {
	return strings.HasPrefix(endpoint, "http://") || strings.HasPrefix(endpoint, "unix://")
}

// shared is the store that this server shares with others.
func (o *serveOptions) shared(log *slog.Logger) store.Config {
	config := store.Config{Endpoints: o.endpoints, CA: o.etcd.ca, Cert: o.etcd.cert, Key: o.etcd.key,
		Name: o.name, Address: o.listen, Logger: log}
	if o.member == "" {
		return config
	}
	config.Dir, config.Member = filepath.Join(o.data, "etcd"), o.member
	config.CA, config.Cert, config.Key = o.tls.ca, o.tls.cert, o.tls.key
	if len(o.join) > 0 {
		config.Members = o.membersAt
	}
	return config
}

// membersAt asks the servers of --join who the servers are.
func (o *serveOptions) membersAt(ctx context.Context) ([]store.Server, error) {
	client, err := api.NewTLSClient(strings.Join(o.join, ","), o.tls.cert, o.tls.key, o.tls.ca)
	if err != nil {
		return nil, badInput{err}
	}
	defer client.Close()
	servers, err := client.Servers(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the servers at %s who they are: %w", strings.Join(o.join, ","), err)
	}
	var list []store.Server
	for _, s := range servers {
		if s.Member == "" {
			return nil, fmt.Errorf("server %s shares an external etcd: start this one with --etcd, not with --member", s.Name)
		}
		list = append(list, stored(s))
	}
	return list, nil
}

// runMember runs one of the servers that share a store: it leads when it is elected,
// and passes on to the leader what it is asked until then.
func (a *app) runMember(ctx context.Context, o serveOptions, config server.Config, seen string, metrics net.Listener) (err error) {
	listeners, err := o.listeners(a.run, nil, config.Log)
	if err != nil {
		return err
	}
	servers, err := store.Join(ctx, o.shared(config.Log))
	if errors.Is(err, store.ErrUntrusted) {
		err = badInput{err}
	}
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	front := server.NewFront(cluster{servers}, config.AgentTLS, machineClock(), config.Log)
	config.Now = front.Now
	if err := front.Read(config, servers.Reader()); err != nil {
		return err
	}
	go servers.Follow(ctx)
	go front.CompareClocks(ctx)
	go endWhenRemoved(ctx, servers, stop)
	if metrics != nil {
		defer serveMetrics(metrics, front.Watched())()
	}
	if o.policy != "" {
		go a.followPolicy(ctx, o.policy, seen, config.Log, front.SetPolicy)
	}
	led := make(chan error, 1)
	go func() {
		err := leadAndFollow(ctx, servers, front, config, func(ctx context.Context, s *server.Server) func() { return a.forward(ctx, s, o) })
		stop(err)
		led <- err
	}()
	err = front.Serve(ctx, listeners...)
	stop(err)
	return errors.Join(err, <-led, cause(ctx))
}

func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// endWhenRemoved ends a server that is not one of the store's any more, or cannot be.
func endWhenRemoved(ctx context.Context, servers *store.Cluster, stop context.CancelCauseFunc) {
	select {
	case <-servers.Removed():
		stop(fmt.Errorf("%s was removed from the servers", servers.Name()))
	case err := <-servers.Failed():
		stop(err)
	case <-ctx.Done():
	}
}

// clockOfTests names, in the environment, a file with a duration by which this machine's
// clock is taken to be ahead: no kernel has the clock of the day in a namespace.
const clockOfTests = "SUBLET_TEST_CLOCK"

// machineClock is what says what time it is.
func machineClock() func() time.Time {
	path := os.Getenv(clockOfTests)
	if path == "" {
		return time.Now
	}
	return func() time.Time {
		text, _ := os.ReadFile(path)
		ahead, _ := time.ParseDuration(strings.TrimSpace(string(text)))
		return time.Now().Add(ahead)
	}
}

// forwarder lets a server that leads control the switches of its substrate.
type forwarder func(context.Context, *server.Server) (stop func())

// leadAndFollow leads whenever this server is elected and its clock is not wrong, until
// ctx ends. An error is of what this server was started with.
func leadAndFollow(ctx context.Context, servers *store.Cluster, front *server.Front, config server.Config, forward forwarder) error {
	substrate := config.Substrate
	for ctx.Err() == nil {
		config.Log.Info("follows")
		right, end := front.Right(ctx)
		books, err := servers.Lead(right)
		if err == nil {
			config.Log.Info("leads")
			config.Store, config.Substrate = books, substrate
			err = errors.Join(lead(right, books, front, config, forward), books.Close())
		} else if right.Err() != nil {
			err = context.Cause(right)
		}
		end()
		var field *vnet.FieldError
		if errors.As(err, &field) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			config.Log.Warn("does not lead", slog.Any("because", err))
			wait(ctx, leadAgain)
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// lead answers by the store's book as long as this server leads. The substrate of
// the flags is for a store that has none: the one in the store may be newer.
func lead(ctx context.Context, books *store.Store, front *server.Front, config server.Config, forward forwarder) error {
	ctx, stop := untilStoreEnds(ctx, books)
	defer stop(nil)
	has, err := books.HasSubstrate(ctx)
	if err != nil {
		return err
	}
	if has {
		config.Substrate = nil
	}
	s, err := server.New(ctx, config)
	if err != nil {
		return err
	}
	defer forward(ctx, s)()
	if err := front.Lead(ctx, s); err != nil && !errors.Is(err, lease.ErrNotLeader) {
		return err
	}
	return cause(ctx)
}
