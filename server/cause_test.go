package server

import (
	"os"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// Events name who caused them and by what: the tenant's commands, the operator's,
// the reports of hosts. What one tenant does is not said to another.
func TestEventsNameTheirCause(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.events = t.TempDir()
	r.start()
	r.agents()
	ctx, c, operator := within(t), r.as(4242), r.as(os.Geteuid())
	l := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease
	id, link := l.ID(), l.Request.Links[0].Name
	must[vnet.Lease](t)(c.WaitReady(ctx, id))
	must[vnet.Lease](t)(c.SetLinkState(ctx, id, link, true))
	must[vnet.Lease](t)(c.SetLinkState(ctx, id, link, false))
	if _, err := c.SetLinkState(ctx, id, "nolink", true); err == nil {
		t.Fatal("a link that is not there is down")
	}
	must[vnet.Lease](t)(operator.Impair(ctx, id, link, [2]vnet.Impairment{{Delay: time.Millisecond}, {}}))
	now := must[vnet.Lease](t)(c.Lease(ctx, id))
	wider := now.Request
	wider.Links = append([]vnet.VirtualLink{}, wider.Links...)
	wider.Links[0].Bandwidth = [2]vnet.Bandwidth{vnet.Static(2 * vnet.Mbit), vnet.Static(2 * vnet.Mbit)}
	must[api.Updated](t)(c.Update(ctx, now, api.Update{Request: wider}))
	must[api.Aftermath](t)(operator.SetDown(ctx, "links", "wire", true))
	must[vnet.Lease](t)(c.Release(ctx, id))
	list := must[[]vnet.Happening](t)(operator.Events(ctx, vnet.LeaseID{}, time.Time{}, 0))
	for _, want := range []vnet.Happening{
		{Kind: "change", State: "link " + link + " down", By: "uid4242"},
		{Kind: "change", State: "link " + link + " up", By: "uid4242"},
		{Kind: "change", State: "link " + link + " impaired", By: "operator"},
		{Kind: "change", State: "revision", By: "uid4242", Why: "2Mbit instead of 1Mbit"},
		{Kind: "lease", State: "running", By: "host h"},
		{Kind: "link", State: "down", By: "operator", Why: "wire is said to be down"},
		{Kind: "lease", State: "ended", By: "uid4242"},
	} {
		found := false
		for _, h := range list {
			found = found || h.Kind == want.Kind && strings.HasPrefix(h.State, want.State) && strings.HasPrefix(h.By, want.By) && strings.Contains(h.Why, want.Why)
		}
		if !found {
			t.Errorf("no event is like %+v among %+v", want, list)
		}
	}
	for _, h := range list {
		if strings.Contains(h.State, "nolink") {
			t.Errorf("what was refused is told: %+v", h)
		}
	}
	h := causeOf(&call{}, "did").of(vnet.Happening{})
	if h.Why != "did" {
		t.Errorf("%+v", h)
	}
	other := &cause{by: "mallory", tenant: "mallory", did: "secret"}
	if h := other.of(vnet.Happening{Lease: id}); h.By != "another tenant" || h.Why != "" {
		t.Errorf("a tenant is told of another's: %+v", h)
	}
}
