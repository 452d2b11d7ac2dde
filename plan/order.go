package plan

import (
	"time"

	"sublet/vnet"
)

// TagBytes is what a packet has more on its way by one of several paths whose order
// is kept: a tag behind the addresses of Ethernet, with its number.
const TagBytes = 8

// queueWait is how much longer than another a packet may wait in the queue of its
// path (datapath/vxlink).
const queueWait = 30 * time.Millisecond

// stall is how long an end of the link waits for packets by other paths; 0: it does not.
func (p pathPlan) stall() time.Duration {
	if !p.tagged() {
		return 0
	}
	return p.link.MaySpread() + queueWait
}

// withTags is a rate of full frames, with their tags.
func (p pathPlan) withTags(r vnet.Rate) vnet.Rate {
	if !p.tagged() || r == 0 || enforced(r) == 0 {
		return r
	}
	return (r + r/vnet.Rate(p.net.mtu+ethernetHeader)*TagBytes).WholeBytesUp()
}

// ethernetHeader is what tenants' frames have before their packet.
const ethernetHeader = 14

// tagged says whether packets are numbered on the path.
func (p pathPlan) tagged() bool { return p.share.Units < vnet.ShareUnits && p.link.KeepsOrder() }

// tag is what that adds to each packet.
func (p pathPlan) tag() int {
	if p.tagged() {
		return TagBytes
	}
	return 0
}
