package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sublet/vnet"
)

// Queues are what a port of an OpenFlow switch has of its link's rate, by queue; without
// any in List the rate is only told to controllers. Rates are in whole bytes per second.
type Queues struct {
	Rate vnet.Rate `json:"rate_bps"`       // of all together
	List []Queue   `json:"list,omitempty"` // by number
	// Control is what control in band has of it before them; 0: none passes the port.
	// Its class is no queue: controllers neither see it nor send by it.
	Control vnet.Rate `json:"control_bps,omitempty"`
}

// ControlPart is what control in band has of a link's rate before data, as a divisor.
const ControlPart = 20

// Queue is one of them.
type Queue struct {
	Number int       `json:"queue"`
	Min    vnet.Rate `json:"min_bps"`
	Max    vnet.Rate `json:"max_bps"`
}

// queues are those of a switch's port; nil: it has no OpenFlow, or the link no rate.
// Queue 0 has what the others leave, unless the request says more of it.
func (n *network) queues(link vnet.VirtualLink, end int) *Queues {
	s := n.switches[link.Ends[end]]
	all := &Queues{Rate: n.rates(link)[end]}
	stated := slices.DeleteFunc(slices.Clone(s.Queues), func(q vnet.Queue) bool { return q.Link != link.Name })
	if len(stated) == 0 {
		if s.Kind != vnet.SwitchOpenFlow || all.Rate == 0 {
			return nil
		}
		return all
	}
	if n.controlOf(link) != nil {
		all.Control = LeastOfControl(all.Rate)
	}
	left, zero := all.Rate-min(all.Rate, all.Control), false
	for _, q := range stated {
		item := Queue{Number: q.Number, Min: max(q.Min.WholeBytesDown(), leastRate), Max: all.Rate}
		if q.Max != 0 {
			item.Max = max(min(q.Max.WholeBytesDown(), all.Rate), item.Min)
		}
		left, zero = left-min(left, item.Min), zero || q.Number == 0
		all.List = append(all.List, item)
	}
	if !zero {
		all.List = append(all.List, Queue{Min: max(left, leastRate), Max: all.Rate})
	}
	slices.SortFunc(all.List, func(a, b Queue) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// LeastOfControl is that part, in whole bytes per second.
func LeastOfControl(rate vnet.Rate) vnet.Rate { return max(rate/ControlPart, leastRate).WholeBytesUp() }

func (q *Queues) String() string {
	if q == nil {
		return ""
	}
	var b strings.Builder
	if len(q.List) == 0 {
		fmt.Fprintf(&b, " speed %s", q.Rate)
	}
	for _, one := range q.List {
		fmt.Fprintf(&b, " queue %d %s to %s", one.Number, one.Min, one.Max)
	}
	if q.Control > 0 {
		fmt.Fprintf(&b, " control %s", q.Control)
	}
	return b.String()
}
