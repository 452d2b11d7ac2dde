package lease

import (
	"fmt"
	"testing"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// remadeLater is a book from a store that makes its plans later, with other defaults for
// nodes than the one before it.
func remadeLater(t *testing.T, s State) *Book {
	t.Helper()
	b, err := Restore(noon, s)
	if err != nil {
		t.Fatal(err)
	}
	b.Begin("not used", "t2")
	b.RemakeLater(noon)
	if err := b.SetNodeDefaults(noon, vnet.NodeDefaults{Processes: 77}); err != nil {
		t.Fatal(err)
	}
	return b
}

// remade lists the hosts whose plans have the other defaults.
func remade(b *Book, hosts ...vnet.HostID) (list []vnet.HostID) {
	for _, name := range hosts {
		p, _ := b.Plan(name)
		for _, n := range plan.Of[plan.VNode](p) {
			if n.Processes == 77 {
				list = append(list, name)
				break
			}
		}
	}
	return list
}

// twoNetworks are on h1 and h2, and on h3 and h4, and run.
func twoNetworks(t *testing.T) State {
	var sub vnet.Substrate
	for _, words := range [][]string{{"host", "h1"}, {"host", "h2"}, {"host", "h3"}, {"host", "h4"}, {"link", "h1", "h2", "1000"}, {"link", "h3", "h4", "1000"}} {
		describe(&sub, words)
	}
	b := New(sub)
	b.Begin("one", "t1")
	admit(t, b, "alice/net", "a@h1", "b@h2", "a-b=1")
	admit(t, b, "bob/net", "c@h3", "d@h4", "c-d=1")
	for range 3 {
		reportAll(t, b)
	}
	running(t, b, "alice/net")
	running(t, b, "bob/net")
	return stored(b)
}

// TestPlansThatAreTakenOverAreRemadeLater: a change is done on its hosts at once, and
// what else differs from the store after all is made again, on all hosts together.
func TestPlansThatAreTakenOverAreRemadeLater(t *testing.T) {
	all := []vnet.HostID{"h1", "h2", "h3", "h4"}
	b := remadeLater(t, twoNetworks(t))
	if c := b.Changes(); len(c.Plans)+len(c.Leases) > 0 {
		t.Fatalf("taking over wrote %+v", c)
	}
	admit(t, b, "carol/net", "e@h1")
	reportAll(t, b)
	reportAll(t, b)
	running(t, b, "carol/net")
	if got := fmt.Sprint(remade(b, all...)); got != "[h1]" {
		t.Errorf("%s were made again for a network on h1", got)
	}
	turns, more := 0, true
	for ; more; turns++ {
		if got := fmt.Sprint(remade(b, all...)); got != "[h1]" {
			t.Errorf("%s have something else before all are made again", got)
		}
		var err error
		if more, err = b.Remake(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Tick(noon); err != nil {
		t.Fatal(err)
	}
	reportAll(t, b)
	if got := fmt.Sprint(remade(b, all...)); turns < 4 || got != "[h1 h2 h3 h4]" {
		t.Errorf("%s were made again in %d turns", got, turns)
	}
	for _, name := range []string{"alice/net", "bob/net"} {
		reportAll(t, b)
		running(t, b, name)
	}
}

// TestWhatDoesNotRunIsMadeAtOnce: hosts of a lease that is being built may have to get
// more than the store's plans say.
func TestWhatDoesNotRunIsMadeAtOnce(t *testing.T) {
	s := twoNetworks(t)
	s.Leases[0].State = vnet.Deploying
	b := remadeLater(t, s)
	reportAll(t, b)
	if got := fmt.Sprint(remade(b, "h1", "h2", "h3", "h4")); got != "[h1 h2]" {
		t.Errorf("%s were made again", got)
	}
}

// TestAfterAnUnfinishedWriteAllIsMadeAtOnce: plans may be older than leases then, and a
// host that keeps the rate of an older one would be one too many on its link.
func TestAfterAnUnfinishedWriteAllIsMadeAtOnce(t *testing.T) {
	s := twoNetworks(t)
	s.Counters.Unfinished = true
	b := remadeLater(t, s)
	if b.Unmade() > 0 {
		t.Errorf("%d hosts are left", b.Unmade())
	}
	reportAll(t, b)
	if got := fmt.Sprint(remade(b, "h1", "h2", "h3", "h4")); got != "[h1 h2 h3 h4]" {
		t.Errorf("%s were made again", got)
	}
}

// TestHostsWithoutAPlanGetOneAtOnce, as those do that came while no server led.
func TestHostsWithoutAPlanGetOneAtOnce(t *testing.T) {
	s := twoNetworks(t)
	delete(s.Plans, "h4")
	b := remadeLater(t, s)
	if p, ok := b.Plan("h4"); !ok || p.Revision == 0 {
		t.Fatalf("h4 has %v, %v", p, ok)
	}
	for range 3 {
		reportAll(t, b)
	}
	if got := fmt.Sprint(remade(b, "h1", "h2", "h3", "h4")); got != "[h4]" {
		t.Errorf("%s were made again", got)
	}
	if err := b.Tick(noon.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
}
