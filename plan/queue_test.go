package plan

import (
	"testing"

	"sublet/vnet"
)

// Queues keep within what their link was given, and queue 0 has what is left.
func TestQueuesShareALink(t *testing.T) {
	link := vnet.VirtualLink{Name: "l", Ends: [2]string{"a", "s"}}
	n := &network{
		lease:    vnet.Lease{Rates: map[string][2]vnet.Rate{"l": {5 * vnet.Mbit, 10 * vnet.Mbit}}},
		switches: map[string]vnet.VirtualSwitch{"s": {Name: "s"}},
	}
	if q := n.queues(link, 1); q != nil {
		t.Errorf("queues of nothing: %v", q)
	}
	s := n.switches["s"]
	s.Kind = vnet.SwitchOpenFlow
	n.switches["s"] = s
	if q := n.queues(link, 1); q == nil || q.Rate != 10*vnet.Mbit || len(q.List) > 0 {
		t.Errorf("a port without queues: %v", q)
	}
	s.Queues = []vnet.Queue{{Link: "l", Number: 2, Min: 3 * vnet.Mbit, Max: 20 * vnet.Mbit}, {Link: "l", Number: 1, Min: vnet.Mbit, Max: 2 * vnet.Mbit}, {Link: "other", Number: 1}}
	n.switches["s"] = s
	want := &Queues{Rate: 10 * vnet.Mbit, List: []Queue{{0, 6 * vnet.Mbit, 10 * vnet.Mbit}, {1, vnet.Mbit, 2 * vnet.Mbit}, {2, 3 * vnet.Mbit, 10 * vnet.Mbit}}}
	if q := n.queues(link, 1); q.String() != want.String() || q.Rate != want.Rate {
		t.Errorf("%v of %s, not %v", q, q.Rate, want)
	}
	s.Queues = append(s.Queues, vnet.Queue{Link: "l", Max: vnet.Mbit})
	n.switches["s"] = s
	if q := n.queues(link, 1); q.List[0] != (Queue{0, leastRate, vnet.Mbit}) {
		t.Errorf("queue 0 as stated: %v", q)
	}
}
