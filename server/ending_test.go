package server

import (
	"os"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// A lease that ends soon is told so once for each notice and end, also by a server
// that starts again; the last notice that is due stands for those before it.
func TestEndsAreTold(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.events = t.TempDir()
	r.start()
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	for name, d := range map[string]time.Duration{"long": 48 * time.Hour, "short": 30 * time.Minute, "unending": 0} {
		request := pair(name, vnet.Mbit)
		request.For = d
		must[api.Admission](t)(c.Admit(ctx, request, false))
	}
	s, begun := r.server, time.Now()
	at := func(told map[notice]bool, after time.Duration) map[notice]bool {
		return s.tellEnds(begun.Add(after), told)
	}
	events := func() (states []string) {
		list, err := s.journal.happened("", time.Time{}, func(h vnet.Happening) bool { return h.Kind == string(kindEnd) })
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range list {
			if h.Lease.Network != "long" {
				t.Errorf("%+v", h)
			}
			states = append(states, h.State)
		}
		return states
	}
	told := at(nil, time.Hour)
	told = at(told, 25*time.Hour)
	at(told, 26*time.Hour)
	if got := events(); len(got) != 1 || got[0] != "within 1d" {
		t.Fatalf("told %q", got)
	}
	if again := s.toldBefore(); len(again) != 1 || len(at(again, 27*time.Hour)) != 1 || len(events()) != 1 {
		t.Errorf("a server that starts again knows %v, and tells %q", again, events())
	}
	at(told, 47*time.Hour+30*time.Minute)
	if got := events(); len(got) != 2 || got[1] != "within 1h" {
		t.Errorf("told %q", got)
	}
}
