package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"sublet/agent/iplbd"
	"sublet/datapath/kernel"
)

// agentPaths is the agent's part for paths: tunnels of leases as the plan says,
// and beside them, if the flags say from where, paths over which all else is
// spread by load. One table and one process have both.
func (a *app) agentPaths(ctx context.Context, r spreadRun, h *kernel.Host, log *slog.Logger) (*iplbd.Part, func(), error) {
	if r.ospf == "" && r.lists == "" {
		p := iplbd.NewPart(h, func() (io.Closer, error) { return a.lockPaths(r.host) })
		stop, err := iplbd.Serve(ctx, a.agentPathsSocket(r.host), p.Ask, log)
		if err != nil {
			return nil, nil, err
		}
		return p, func() { stop(); p.Close() }, nil
	}
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	return a.agentDaemon(ctx, r, h, log)
}

// agentDaemon runs the loop of paths in the agent.
func (a *app) agentDaemon(ctx context.Context, r spreadRun, h *kernel.Host, log *slog.Logger) (*iplbd.Part, func(), error) {
	spreads, err := a.readLists(r.lists, r.source6)
	if err != nil {
		return nil, nil, err
	}
	lock, err := a.lockPaths(r.host)
	if err != nil {
		return nil, nil, err
	}
	t, err := r.open(h)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	d, stop, err := a.startPaths(ctx, r, h, t, spreads, a.agentPathsSocket(r.host), log)
	if err != nil {
		t.Close()
		return nil, nil, errors.Join(err, lock.Close())
	}
	return iplbd.PartOf(d, h), func() { stop(); t.Close(); lock.Close() }, nil
}
