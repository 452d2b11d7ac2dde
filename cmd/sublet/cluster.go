package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/lease/store"
	"sublet/server"
	"sublet/vnet"
)

// leadAgain is how long a server that could not lead waits before it tries again.
const leadAgain = 200 * time.Millisecond

// cluster tells a server of those it shares an etcd with.
type cluster struct{ *store.Cluster }

func (c cluster) Leader() (name, address string, changed <-chan struct{}) {
	leader, changed := c.Cluster.Leader()
	return leader.Name, leader.Address, changed
}

func (c cluster) Servers(ctx context.Context) ([]api.Server, error) {
	servers, err := c.Cluster.Servers(ctx)
	list := []api.Server{}
	for _, s := range servers {
		list = append(list, api.Server(s))
	}
	return list, err
}

func (c cluster) AddServer(ctx context.Context, s api.Server, replaces string) error {
	return ofMembers(c.Cluster.AddServer(ctx, store.Server(s), replaces))
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

// checkSeveral refuses flags that several servers cannot be run with.
func (o *serveOptions) checkSeveral() error {
	if len(o.endpoints) == 0 {
		if o.name != "" || o.etcd != (credentials{}) {
			return badInput{errors.New("--name and --etcd-cert, --etcd-key, --etcd-ca are for servers with an external etcd: state --etcd too, or leave them out")}
		}
		return nil
	}
	if o.withAgent {
		return badInput{errors.New("--agent is for a server with a store of its own: beside --etcd run `sublet agent --server ADDRESSES --listen HOST:PORT` as a service of its own, since it outlives this server's leading")}
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
	if o.etcd.cert != "" && (o.etcd.key == "" || o.etcd.ca == "") {
		return badInput{errors.New("--etcd-cert needs --etcd-key and --etcd-ca")}
	}
	return checkListen(o.listen)
}

// runMember runs one of the servers that share an etcd: it leads when it is elected,
// and passes on to the leader what it is asked until then.
func (a *app) runMember(ctx context.Context, o serveOptions, config server.Config, seen string, metrics net.Listener) (err error) {
	listeners, err := o.listeners(a.run, nil, config.Log)
	if err != nil {
		return err
	}
	servers, err := store.Join(ctx, store.Config{Endpoints: o.endpoints, CA: o.etcd.ca, Cert: o.etcd.cert, Key: o.etcd.key,
		Name: o.name, Address: o.listen, Logger: config.Log})
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	front := server.NewFront(cluster{servers}, config.AgentTLS, config.Log)
	if err := front.Read(config, servers.Reader()); err != nil {
		return err
	}
	go servers.Follow(ctx)
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

// endWhenRemoved ends a server that is not one of the store's any more.
func endWhenRemoved(ctx context.Context, servers *store.Cluster, stop context.CancelCauseFunc) {
	select {
	case <-servers.Removed():
		stop(fmt.Errorf("%s was removed from the servers", servers.Name()))
	case <-ctx.Done():
	}
}

// forwarder lets a server that leads control the switches of its substrate.
type forwarder func(context.Context, *server.Server) (stop func())

// leadAndFollow leads whenever this server is elected, until ctx ends. An error is
// of what this server was started with.
func leadAndFollow(ctx context.Context, servers *store.Cluster, front *server.Front, config server.Config, forward forwarder) error {
	substrate := config.Substrate
	for ctx.Err() == nil {
		config.Log.Info("follows")
		books, err := servers.Lead(ctx)
		if err == nil {
			config.Log.Info("leads")
			config.Store, config.Substrate = books, substrate
			err = errors.Join(lead(ctx, books, front, config, forward), books.Close())
		}
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
	state, err := books.Load(ctx)
	if err != nil {
		return err
	}
	if len(state.Substrate.Hosts) > 0 {
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
