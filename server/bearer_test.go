package server

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sublet/agent/session"
	"sublet/lease/api"
	"sublet/vnet"
)

// TestClientByToken calls by a token alone, over TLS: what is asked, and sessions.
func TestClientByToken(t *testing.T) {
	r, ours := newRig(t), newAuthority(t)
	at := serveTLS(t, r, ours)
	operator := ours.client(at, "operator", ours)
	req := pair("net", vnet.Mbit)
	req.Tenant = "somebody"
	id := must[api.Admission](t)(operator.Admit(within(t), req, false)).Lease.ID()
	made := must[api.NewToken](t)(operator.CreateToken(within(t), api.TokenAsk{Tenant: "somebody", Scope: "write", For: time.Hour}))
	for _, c := range []struct {
		token string
		known bool
	}{{made.Text, true}, {made.Text + "x", false}} {
		client := must[*api.Client](t)(api.NewBearerClient(at, c.token, ours.file("ca", "crt")))
		t.Cleanup(client.Close)
		if leases, err := client.Leases(within(t)); (err == nil) != c.known || len(leases) == 1 != c.known || !c.known && !errors.Is(err, api.ErrForbidden) {
			t.Errorf("%d leases, %v", len(leases), err)
		}
		conn, err := client.Dial(within(t))
		if err != nil {
			t.Fatal(err)
		}
		_, err = session.Run(within(t), conn, api.LeasePath(id)+"/nodes/a/exec", session.Spec{Argv: []string{"true"}}, session.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		var refused *session.Failure
		if !errors.As(err, &refused) || (refused.Status != 401) != c.known {
			t.Errorf("a session: %v", err)
		}
	}
}
