package vnet

import (
	"fmt"
	"slices"
)

// SwitchQueue is a queue of a port of an OpenFlow switch of the substrate. Its operator
// has set it up: OpenFlow has no message that does.
type SwitchQueue struct {
	Link  string `json:"link"` // of the port
	Queue uint32 `json:"queue"`
	Rate  Rate   `json:"rate_bps"` // of a link in it, both guaranteed and most
}

// MaxSwitchQueues is how many queues a switch may state: its answer about all of them is
// one message of at most 64 KiB.
const MaxSwitchQueues = 1000

// MaxSwitchQueue is the highest number of a queue. Queue 0 is for what is in no other.
const MaxSwitchQueue = 0xfffffffe

// QueueRate is the rate of the queues of a port that are for links of a maximum: the
// smallest that holds it; 0: the port has none.
func (o OpenFlowSwitch) QueueRate(link string, most Rate) (rate Rate) {
	for _, q := range o.Queues {
		if q.Link == link && q.Rate >= most && (rate == 0 || q.Rate < rate) {
			rate = q.Rate
		}
	}
	return rate
}

// QueueNumbers are the queues of a port with a rate.
func (o OpenFlowSwitch) QueueNumbers(port uint32, rate Rate) (numbers []uint32) {
	for _, q := range o.Queues {
		if o.Ports[q.Link] == port && q.Rate == rate {
			numbers = append(numbers, q.Queue)
		}
	}
	return numbers
}

// checkSwitchQueues wants the queues of each port to be within what its link leases out.
func (s Substrate) checkSwitchQueues(path string, o OpenFlowSwitch) error {
	if n := len(o.Queues); n > MaxSwitchQueues {
		return fieldf(path+".queues", "%d are more than %d: state fewer", n, MaxSwitchQueues)
	}
	sum := make(map[string]Rate)
	for i, q := range o.Queues {
		here := key(path+".queues", q.Link)
		l, ok := s.LinkOf(q.Link)
		same := func(p SwitchQueue) bool { return p.Link == q.Link && p.Queue == q.Queue }
		sum[q.Link] += q.Rate
		l.Forwards = 0 // what was measured makes no file wrong
		shared := l.Leasable()
		switch number := fmt.Sprintf("%s.%d", here, q.Queue); {
		case !ok || !slices.Contains(l.Ends[:], o.Name):
			return fieldf(here, "no link %q ends at switch %q", q.Link, o.Name)
		case q.Queue < 1 || q.Queue > MaxSwitchQueue:
			return fieldf(number, "%d is not between 1 and %d: queue 0 is for what is in no other", q.Queue, uint32(MaxSwitchQueue))
		case slices.ContainsFunc(o.Queues[:i], same):
			return fieldf(number, "queue %d is there already: state each once", q.Queue)
		case q.Rate < leastOfQueue || q.Rate > l.Capacity:
			return fieldf(number, "%s is not between %s and the %s of link %q: state what a link in the queue has", q.Rate, leastOfQueue, l.Capacity, q.Link)
		case sum[q.Link] > shared:
			return fieldf(here, "its queues have %s together, more than the %s that leases may have of link %q: lower one", sum[q.Link], shared, q.Link)
		}
	}
	return nil
}
