package plan

import (
	"time"

	"sublet/vnet"
)

// Whom an impairment keeps from answering is not asked: what was asked for is no
// fault of the network's. An echo request is waited for half a second
// (datapath/reach), and asked again when it was lost.
const (
	latestAnswer = 400 * time.Millisecond // there and back
	mostLost     = vnet.WholeShare / 2    // or damaged, in one direction
	deviations   = 4                      // of a delay, above its mean
)

// answersLate says whether all impairments of the network together may keep a
// node from answering another. Then only nodes beside each other are asked, each
// pair by what its own links do.
func (n *network) answersLate() bool {
	sum := time.Duration(0)
	for _, l := range n.top.Links {
		if !answers(l) {
			return true
		}
		sum += roundTrip(l)
	}
	return sum > latestAnswer
}

// answeredBetween says whether every link between two nodes lets answers through.
func (n *network) answeredBetween(ends [2]string) bool {
	for _, l := range n.top.Links {
		same := l.Ends == ends || l.Ends == [2]string{ends[1], ends[0]}
		if same && (!answers(l) || roundTrip(l) > latestAnswer) {
			return false
		}
	}
	return true
}

// answers says whether a link loses and damages few enough frames.
func answers(l vnet.VirtualLink) bool {
	for _, i := range l.Impair {
		if i.Loss >= mostLost || i.Corrupt >= mostLost {
			return false
		}
	}
	return true
}

// roundTrip is the longest usual delay of both directions together.
func roundTrip(l vnet.VirtualLink) (sum time.Duration) {
	for _, i := range l.Impair {
		sum += i.Delay + deviations*i.Jitter
	}
	return sum
}
