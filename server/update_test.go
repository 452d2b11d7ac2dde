package server

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// at is a request with its only link's rate replaced.
func at(r vnet.Request, rate vnet.Rate) vnet.Request {
	links := append([]vnet.VirtualLink(nil), r.Links...)
	links[0].Bandwidth = [2]vnet.Bandwidth{vnet.Static(rate), vnet.Static(rate)}
	r.Links = links
	return r
}

func TestUpdate(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	l := must[api.Admission](t)(c.Admit(ctx, pair("net", 100*vnet.Mbit), false)).Lease
	must[vnet.Lease](t)(c.WaitReady(ctx, l.ID()))
	same := must[api.Updated](t)(c.Update(ctx, l, api.Update{Request: pair("net", 100*vnet.Mbit)}))
	dry := must[api.Updated](t)(c.Update(ctx, l, api.Update{Request: pair("net", 300*vnet.Mbit), DryRun: true}))
	if len(same.Changes) != 0 || same.Lease.Revision != 0 || len(dry.Changes) != 1 || dry.Lease.Revision != 0 {
		t.Errorf("the same: %+v, a dry run: %+v", same.Changes, dry.Changes)
	}
	now := must[api.Updated](t)(c.Update(ctx, l, api.Update{Request: pair("net", 300*vnet.Mbit)}))
	if now.Lease.Revision != 1 || now.Changes[0] != dry.Changes[0] {
		t.Errorf("revision %d, changes %v, dry run %v", now.Lease.Revision, now.Changes, dry.Changes)
	}
	ready := must[vnet.Lease](t)(c.WaitReady(ctx, l.ID()))
	if ready.State != vnet.Running || ready.Rates["ab"][vnet.Forward] != 300*vnet.Mbit {
		t.Errorf("%s, rates %v", ready.State, ready.Rates)
	}
	_, err := c.Update(ctx, l, api.Update{Request: pair("net", 500*vnet.Mbit)})
	wantError(t, "who has read the former one", err, api.ErrConflict)
	if !strings.Contains(err.Error(), "has been changed since") {
		t.Errorf("said %v", err)
	}
	wantNotMade(t, c, ready)
}

// wantNotMade: what is refused, wrong or another's changes nothing.
func wantNotMade(t *testing.T, c *api.Client, l vnet.Lease) {
	t.Helper()
	ctx := within(t)
	must[api.Admission](t)(c.Admit(ctx, pair("other", 500*vnet.Mbit), false))
	_, err := c.Update(ctx, l, api.Update{Request: at(l.Request, 800*vnet.Mbit)})
	var refused *vnet.Rejection
	if !errors.As(err, &refused) || refused.Offer == nil || refused.Offer.Links[0].Bandwidth[0].Min != 500*vnet.Mbit {
		t.Fatalf("got %v, %+v", err, refused)
	}
	cpu := pair("net", 300*vnet.Mbit)
	cpu.Nodes[0].Exclusive = true
	_, err = c.Update(ctx, l, api.Update{Request: cpu})
	var field *vnet.FieldError
	if !errors.As(err, &field) || field.Path != "nodes[0].exclusive" {
		t.Errorf("got %v", err)
	}
	if is := must[vnet.Lease](t)(c.Lease(ctx, l.ID())); is.Revision != l.Revision || is.Request.Links[0].Bandwidth[0].Min != 300*vnet.Mbit {
		t.Errorf("it is %+v now", is.Request)
	}
	if _, err := c.Update(ctx, must[vnet.Lease](t)(c.Lease(ctx, l.ID())), api.Update{Request: *refused.Offer}); err != nil {
		t.Errorf("the offer: %v", err)
	}
}

func TestUpdateIsTheOwners(t *testing.T) {
	r := newRig(t)
	ctx := within(t)
	l := must[api.Admission](t)(r.as(1).Admit(ctx, pair("net", 100*vnet.Mbit), false)).Lease
	_, err := r.as(2).Update(ctx, l, api.Update{Request: pair("net", vnet.Mbit)})
	wantError(t, "another tenant", err, api.ErrNotFound)
	must[api.Updated](t)(r.as(0).Update(ctx, l, api.Update{Request: pair("net", 200*vnet.Mbit)}))
	is := must[vnet.Lease](t)(r.as(1).Lease(ctx, l.ID()))
	if is.Request.Tenant != "daemon" || is.Owner != 1 || is.Request.Links[0].Bandwidth[0].Min != 200*vnet.Mbit {
		t.Errorf("after the operator changed it: %+v, owner %d", is.Request, is.Owner)
	}
}

// TestUpdateNamesWhatItChanges: no tag, another network.
func TestUpdateNamesWhatItChanges(t *testing.T) {
	r := newRig(t)
	ctx, c := within(t), r.as(os.Geteuid())
	l := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease
	var field *vnet.FieldError
	if _, err := c.Update(ctx, l, api.Update{Request: pair("other", vnet.Mbit)}); !errors.As(err, &field) || field.Path != "request.network" {
		t.Errorf("another network: %v", err)
	}
	request := must[*http.Request](t)(http.NewRequestWithContext(ctx, http.MethodPut, "http://sublet"+api.LeasePath(l.ID()), strings.NewReader(`{"request":{"network":"net"}}`)))
	request.Header.Set("Content-Type", "application/json")
	response := must[*http.Response](t)(over(c).Do(request))
	response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("without If-Match: %s", response.Status)
	}
}

// TestUpdateKeepsTheQuota: what the lease has itself does not count twice, and
// the longest window offered is what the quota allows.
func TestUpdateKeepsTheQuota(t *testing.T) {
	r := newRigWith(t, vnet.Policy{Others: vnet.OthersAllowed, Default: vnet.Quota{
		vnet.QuotaLeases: 1, vnet.QuotaNodes: 2, vnet.QuotaLength: int64(time.Hour), vnet.QuotaBandwidth: int64(400 * vnet.Mbit)}})
	ctx, c := within(t), r.as(1)
	short := pair("net", 100*vnet.Mbit)
	short.For = 10 * time.Minute
	l := must[api.Admission](t)(c.Admit(ctx, short, false)).Lease
	long := short
	long.For = 2 * time.Hour
	_, err := c.Update(ctx, l, api.Update{Request: long})
	refused := wantRefused(t, err, "quota length of daemon is 1h: 2h asked", true)
	if refused.Offer.For != time.Hour {
		t.Errorf("offered %s", refused.Offer.For)
	}
	_, err = c.Update(ctx, l, api.Update{Request: at(short, 300*vnet.Mbit)})
	refused = wantRefused(t, err, "quota bandwidth of daemon is 400Mbit: 0bit used, 600Mbit asked", true)
	if got := refused.Offer.Links[0].Bandwidth[0].Min; got != 200*vnet.Mbit {
		t.Errorf("offered %s", got)
	}
	u := must[api.Updated](t)(c.Update(ctx, l, api.Update{Request: *refused.Offer}))
	if got := u.Lease.Window.End.Sub(u.Lease.Window.Start); got != 10*time.Minute {
		t.Errorf("the window is %s", got)
	}
}

// TestKilledWhileUpdating kills servers -9 while they change two links at once:
// both are as before or both as after, and what was answered holds.
func TestKilledWhileUpdating(t *testing.T) {
	r := newRig(t)
	ctx, c := within(t), r.as(os.Geteuid())
	l := must[api.Admission](t)(c.Admit(ctx, twoLinks(10*vnet.Mbit), false)).Lease
	r.stop()
	answered, asked := 10*vnet.Mbit, 10*vnet.Mbit
	for range 3 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "SUBLET_TEST_SERVER="+r.dir)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		for _, err := c.Hosts(ctx); err != nil; _, err = c.Hosts(ctx) {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		l = must[vnet.Lease](t)(c.Lease(ctx, l.ID()))
		answered = whole(t, l, answered, asked)
		time.AfterFunc(time.Duration(50+rand.IntN(200))*time.Millisecond, func() { child.Process.Kill() })
		for err := error(nil); err == nil; {
			asked = answered + vnet.Mbit
			var u api.Updated
			if u, err = c.Update(ctx, l, api.Update{Request: twoLinks(asked)}); err == nil {
				l, answered = u.Lease, asked
			}
		}
		child.Wait()
	}
	r.start()
	r.agents()
	l = must[vnet.Lease](t)(c.WaitReady(ctx, l.ID()))
	if want := whole(t, l, answered, asked); l.State != vnet.Running || l.Rates["ab"][0] != want || l.Rates["too"][1] != want {
		t.Errorf("%s: rates %v, want %s", l.State, l.Rates, want)
	}
}

func twoLinks(rate vnet.Rate) vnet.Request {
	r := pair("net", rate)
	second := r.Links[0]
	second.Name = "too"
	r.Links = append(r.Links, second)
	return r
}

// whole is the rate of both links, which is what was answered last or what was
// asked after that.
func whole(t *testing.T, l vnet.Lease, answered, asked vnet.Rate) vnet.Rate {
	t.Helper()
	rate := l.Request.Links[0].Bandwidth[0].Min
	for _, link := range l.Request.Links {
		if got := link.Bandwidth; got != [2]vnet.Bandwidth{vnet.Static(rate), vnet.Static(rate)} || rate != answered && rate != asked {
			t.Errorf("%s has %v after %s was answered and %s asked", link.Name, got, answered, asked)
		}
	}
	return rate
}
