package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// TestThePageIsItsVisitors: what the page calls, it calls as who asks for it, also
// where root's connection carries a token.
func TestThePageIsItsVisitors(t *testing.T) {
	r := newRig(t)
	tokens := must[*trust.Tokens](t)(trust.OpenTokens(filepath.Join(r.dir, "tokens.json"), time.Now))
	page := func(c *api.Client, readOnly bool, _ func(int) func()) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				_, err := c.Leases(r.Context())
				answer(w, 200, []any{err != nil}) // nobody's page calls as nobody
				return
			}
			leases, err := c.Leases(r.Context())
			names := []string{}
			for _, l := range leases {
				names = append(names, l.ID().String())
			}
			_, drained := c.SetDrained(r.Context(), "h1", true)
			_, released := c.Release(r.Context(), vnet.LeaseID{Tenant: "daemon", Network: "other"})
			answer(w, 200, []any{readOnly, err == nil, names, drained == nil, released == nil})
		})
	}
	server := must[*Server](t)(New(t.Context(), Config{Store: r.store, Tokens: tokens, Page: page}))
	ctx, stop := context.WithCancel(t.Context())
	l := must[net.Listener](t)(Listen(t.TempDir(), nil))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-done })
	root := api.NewClient(l.Addr().String())
	t.Cleanup(root.Close)
	for _, name := range []string{"net", "other"} {
		req := pair(name, vnet.Mbit)
		req.Tenant = "daemon"
		must[api.Admission](t)(root.Admit(within(t), req, false))
	}
	token := func(scope string, networks ...vnet.VNetID) string {
		return must[api.NewToken](t)(root.CreateToken(within(t), api.TokenAsk{Tenant: "daemon", Scope: scope, Networks: networks, For: time.Hour})).Text
	}
	for _, c := range []struct{ path, token, want string }{
		{"/", "", "[true]"},
		{"/page/x", "unknown", "unauthorized"},
		{"/page/x", token("read"), `[true,true,["daemon/net","daemon/other"],false,false]`},
		{"/page/x", token("write", "net"), `[false,true,["daemon/net"],false,false]`},
		{"/page/x", token("write"), `[false,true,["daemon/net","daemon/other"],false,true]`},
		{"/page/x", "", `[false,true,["daemon/net","daemon/other"],true,`},
		{"/v1/x", "", "not-found"},
	} {
		if _, text := asked(t, over(root), "http://sublet", "GET", c.path, c.token, ""); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, wanted %s", c.path, text, c.want)
		}
	}
}

// deadlines notes what a handler bounds.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error { d.read = t; return nil }

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// TestBodiesOfThePage: they come in as few at a time and within the same time as
// those of the API, and large ones are parsed on the processors of decisions.
func TestBodiesOfThePage(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	server := must[*Server](t)(New(t.Context(), Config{Store: newRig(t).store}))
	server.page = func(_ *api.Client, _ bool, turn func(int) func()) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-release
			turn(largeBody + 1)()
		})
	}
	post := func(tenant vnet.TenantID) (*deadlines, error) {
		ctx := trust.WithCaller(t.Context(), trust.As(nil, trust.Caller{Tenant: tenant, Account: tenant, UID: 1}))
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		return w, server.getPage(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/page/request", strings.NewReader("x")))
	}
	ended := make(chan error)
	begin := func(tenant vnet.TenantID) {
		go func() {
			w, err := post(tenant)
			if now := time.Now(); err == nil && (w.read.IsZero() || w.read.After(now.Add(bodyTimeout)) || w.write.IsZero()) {
				err = fmt.Errorf("bounded until %v and %v", w.read, w.write)
			}
			ended <- err
		}()
		<-entered
	}
	for range bodiesPerTenant {
		begin("a")
	}
	var problem *api.Problem
	if _, err := post("a"); !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests {
		t.Errorf("one body more: %v", err)
	}
	begin("b")
	close(release)
	for range bodiesPerTenant + 1 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	free := len(server.deciders.processors)
	done := server.turn(largeBody + 1)
	if len(server.deciders.processors) != free-1 {
		t.Error("a large body is parsed on no processor")
	}
	if done(); len(server.deciders.processors) != free {
		t.Error("a processor is lost")
	}
}
