package main

import (
	"context"
	"path/filepath"

	"sublet/agent/forwarding"
	"sublet/lease/api"
	"sublet/server"
)

// forward lets the server control the OpenFlow switches of its substrate until stop is
// called. What they have stays there.
func (a *app) forward(ctx context.Context, s *server.Server, o serveOptions) (stop func()) {
	config := forwarding.Config{
		Substrate: s.Substrate, Source: api.NewClient(filepath.Join(a.run, api.SocketName)),
		Data: filepath.Join(o.data, "switches"), Log: a.log(o.level),
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); forwarding.Run(ctx, config) }()
	return func() { cancel(); <-done }
}
