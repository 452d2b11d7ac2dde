package report

import (
	"strconv"

	"sublet/plan"
	"sublet/vnet"
)

// Traffic is what one host counted of one direction of a virtual link since
// the link was built there.
type Traffic struct {
	Link      string         `json:"link"`
	Direction vnet.Direction `json:"direction"` // 0: from the link's first end to its second
	First     bool           `json:"first"`     // frames enter the link here
	Last      bool           `json:"last"`      // frames leave the link here
	Packets   uint64         `json:"packets"`   // that came in by the near end, as on a wire
	Bytes     uint64         `json:"bytes"`     // of these, with Ethernet headers
	// Drops are by cause: queue (the rate's queue was full), closed (the link
	// was not complete), stranger (came by a device that is not the end's),
	// impaired (lost on purpose, since the direction was impaired).
	Drops map[string]uint64 `json:"drops,omitempty"`
	// Backlog is bytes that wait in the rate's queue now.
	Backlog uint64 `json:"backlog_bytes,omitempty"`
	// Why is what a tenant did to an end on this host, so that nothing passes.
	Why string `json:"why,omitempty"`
}

// Counters of links and of tunnels. What a tunnel could not send is apart from
// what it did not take in: the first is missing at the other end.
const (
	Entered  = "entered" // the link on this host, as on a wire
	Sent     = "sent"
	Received = "received"
	Dropped  = "dropped"
	Backlog  = "backlog" // gauge: bytes that wait
	NotSent  = "not_sent"
)

// Sample is the form that all parts use; kind and key are the link's.
func (t Traffic) Sample(link plan.VxLink) Sample {
	s := Sample{Kind: link.Kind(), Key: link.Key(), Lease: link.Lease, Why: t.Why, Labels: map[string]string{
		LabelLink: t.Link, LabelDirection: strconv.Itoa(int(t.Direction)),
		LabelEnters: strconv.FormatBool(t.First), LabelLeaves: strconv.FormatBool(t.Last),
	}}
	s.Counters = make([]Counter, 0, 2+len(t.Drops))
	s.Count(Entered, Packets, t.Packets)
	s.Count(Entered, Bytes, t.Bytes)
	s.CountBy(Dropped, t.Drops)
	s.Gauge(Backlog, Bytes, t.Backlog)
	return s
}

// Traffics is what samples say of links. What the tunnels of links that begin
// here could not send is theirs too.
func Traffics(samples []Sample) []Traffic {
	tunnels := make(map[linkOf]map[string]uint64)
	for _, s := range samples {
		if s.Kind == plan.KindOverlay {
			at := linkOf{s.Lease, s.Labels[LabelLink]}
			tunnels[at] = sum(tunnels[at], s.By(NotSent))
		}
	}
	list := []Traffic{}
	for _, s := range samples {
		if s.Kind != plan.KindVxLink {
			continue
		}
		t := trafficOf(s)
		if t.First && !t.Last {
			t.Drops = sum(t.Drops, tunnels[linkOf{s.Lease, t.Link}])
		}
		list = append(list, t)
	}
	return list
}

// linkOf is a virtual link of a lease.
type linkOf struct {
	lease vnet.LeaseID
	link  string
}

func trafficOf(s Sample) Traffic {
	direction := vnet.Direction(0)
	if s.Labels[LabelDirection] == "1" {
		direction = 1
	}
	return Traffic{
		Link: s.Labels[LabelLink], Direction: direction, First: s.Labels[LabelEnters] == "true", Last: s.Labels[LabelLeaves] == "true",
		Packets: s.Value(Entered, Packets), Bytes: s.Value(Entered, Bytes), Drops: s.By(Dropped), Backlog: s.Value(Backlog, Bytes), Why: s.Why,
	}
}

// sum adds counts by cause up; nil stands for none.
func sum(all, more map[string]uint64) map[string]uint64 {
	for cause, n := range more {
		if all == nil {
			all = make(map[string]uint64)
		}
		all[cause] += n
	}
	return all
}
