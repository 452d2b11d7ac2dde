package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"sublet/lease/api"
	"sublet/server"
	"sublet/web"
)

func (a *app) page() *cobra.Command {
	listen, readOnly := "127.0.0.1:0", false
	c := &cobra.Command{
		Use:   "page",
		Short: "Serve a page about networks, hosts and bookings to a browser on this machine",
		Long: `Serve a page to a browser on this machine until interrupted, and print its address:
the substrate and the networks on it, what links carry now, how promises were kept,
what is booked when, consoles of nodes, and a form for requests with the offers that
come of them. It shows and does what the caller may see and do.

The address has a secret behind #: whoever has it may do what the caller may.
With --read-only nothing can be done by it, and no packets be seen.
Do not hand it to a browser as an argument: other users see those. The page uses nothing of the Internet.
From another machine, reach it by ssh -L PORT:127.0.0.1:PORT.`,
		Example: "  sublet page\n  sublet page --listen 127.0.0.1:8117 --read-only",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.runPage(c.Context(), listen, readOnly)
		},
	}
	c.Flags().StringVar(&listen, "listen", listen, "loopback address and port to serve at; port 0: any that is free")
	c.Flags().BoolVar(&readOnly, "read-only", readOnly, "only show: refuse all that changes something, consoles and captures")
	return c
}

// pageOf is the page that a server serves.
func pageOf(kind string) (server.Page, error) {
	switch kind {
	case "none":
		return nil, nil
	case "full", "read-only":
		return func(c *api.Client, readOnly bool, turn func(int) func()) http.Handler {
			return web.Handler{Server: c, Known: true, ReadOnly: readOnly || kind == "read-only", Turn: turn}.Routes()
		}, nil
	}
	return nil, badInput{fmt.Errorf("--page %q: write full, read-only or none", kind)}
}

// pageConns bounds connections: other users of the machine can open them, too.
const pageConns = 256

func (a *app) runPage(ctx context.Context, listen string, readOnly bool) error {
	listener, err := listenLoopback(ctx, listen)
	if err != nil {
		return err
	}
	secret := make([]byte, 16)
	rand.Read(secret) // never fails: crypto/rand
	page := web.Handler{Server: a.client(), Secret: base64.RawURLEncoding.EncodeToString(secret), ReadOnly: readOnly}
	serving := &http.Server{
		Handler: page.Routes(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams and consoles end with the program
	}
	context.AfterFunc(ctx, func() { serving.Close() })
	fmt.Fprintf(a.out, "http://%s/#%s\n", listener.Addr(), page.Secret)
	if err := serving.Serve(netutil.LimitListener(listener, pageConns)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// listenLoopback refuses addresses that others than users of this machine reach:
// the page is not encrypted.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, badInput{fmt.Errorf("--listen %q: state a loopback address and a port, such as 127.0.0.1:8117; from elsewhere use ssh -L", address)}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve the page at %s: %w", address, err)
	}
	return listener, nil
}
