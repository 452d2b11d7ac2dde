package vnet

import "slices"

// Queue is one of a port of a switch of kind openflow: what frames get of the rate
// of the port's link to which its controller's entries did set_queue. Queue 0 is for
// all others.
type Queue struct {
	Link   string `json:"link"` // of the port
	Number int    `json:"queue"`
	Min    Rate   `json:"min_bps,omitempty"`
	Max    Rate   `json:"max_bps,omitempty"` // 0: the link's
}

// Bounds of queues.
const (
	MaxQueue     = 63 // number
	MaxQueues    = 16 // of a port, with queue 0
	leastOfQueue = 8 * Kbit
)

// checkQueues checks queues by themselves; their links are checked when all are known.
func (s VirtualSwitch) checkQueues(path string) error {
	count := make(map[string]int)
	for i, q := range s.Queues {
		where := at(path+".queues", i)
		same := func(o Queue) bool { return o.Link == q.Link && o.Number == q.Number }
		switch {
		case q.Number < 0 || q.Number > MaxQueue:
			return fieldf(where+".queue", "%d is not between 0 and %d", q.Number, MaxQueue)
		case slices.ContainsFunc(s.Queues[:i], same):
			return fieldf(where+".queue", "queue %d of link %q is there already: state each once", q.Number, q.Link)
		case q.Max != 0 && q.Max < leastOfQueue:
			return fieldf(where+".max", "%s is less than %s, the least that a queue can have", q.Max, leastOfQueue)
		case q.Max != 0 && q.Min > q.Max:
			return fieldf(where+".min", "%s is more than its max %s: lower it", q.Min, q.Max)
		}
		if q.Number > 0 {
			count[q.Link]++
		}
		if count[q.Link] >= MaxQueues {
			return fieldf(where, "link %q has %d queues beside queue 0, more than %d: keep fewer", q.Link, count[q.Link], MaxQueues-1)
		}
	}
	return nil
}

// queues checks that the queues of a switch are of links that end there, and that
// what they promise is within what these have in every stage.
func (c *checker) queues(path string, s VirtualSwitch, stages []Topology) error {
	for i, q := range s.Queues {
		where := at(path+".queues", i)
		if err := c.port(where+".link", q.Link, s.Name); err != nil {
			return err
		}
		if c.links[q.Link].Control {
			return fieldf(where+".link", "link %q is to the controller, and no port: name another one", q.Link)
		}
	}
	for _, top := range stages {
		for _, l := range top.Links {
			if err := s.queuesOf(path, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// queuesOf checks the queues of one link.
func (s VirtualSwitch) queuesOf(path string, l VirtualLink) error {
	has, promised := l.Bandwidth[l.from(s.Name)], Rate(0)
	for i, q := range s.Queues {
		if q.Link != l.Name {
			continue
		}
		where := at(path+".queues", i)
		promised += q.Min
		switch {
		case has.BestEffort():
			return fieldf(where+".link", "link %q has no rate from the switch on, which its queues would share: state one", l.Name)
		case q.Max != 0 && q.Max > has.Max:
			return fieldf(where+".max", "%s is more than the %s that link %q has at most: lower it, or leave it out", q.Max, has.Max, l.Name)
		case promised > has.Min:
			return fieldf(where+".min", "with it the queues of link %q promise %s, more than the %s that it is guaranteed: lower one", l.Name, promised, has.Min)
		}
	}
	return nil
}

// from is the direction in which frames leave a node by the link.
func (l VirtualLink) from(node string) Direction {
	if l.Ends[0] == node {
		return Forward
	}
	return Reverse
}
