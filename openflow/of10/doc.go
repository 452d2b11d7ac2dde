// Package of10 is OpenFlow 1.0 on the wire, in the words of package of13: what it
// reads are messages of OpenFlow 1.3 that ask or tell the same, and it writes such
// messages as far as OpenFlow 1.0 has words for them. So switch and controller
// know one protocol only.
//
// What 1.0 has and 1.3 has not: a flow-mod that modifies nothing adds an entry
// (FlowMod.Adds); actions pass over packets that lack a header (Action.Loose); a
// reply about features lists ports (FeaturesReply); a table says how large it is.
//
// What 1.0 cannot say of an entry is left out: fields of a match and actions that it
// has not, and entries' later tables. Emergency entries and vendors' messages are
// refused.
package of10

import "sublet/openflow/of13"

// Version is that of OpenFlow 1.0 in headers.
const Version = 1

// Types of messages. Those up to typePacketOut are the same in 1.3.
const (
	typePacketOut uint8 = 13 + iota
	typeFlowMod
	typePortMod
	typeStatsRequest
	typeStatsReply
	typeBarrierRequest
	typeBarrierReply
	typeQueueConfigRequest
	typeQueueConfigReply
	numTypes
)

// kinds are the types of 1.3 that stand for those from typePortMod on.
var kinds = [...]uint8{
	of13.TypePortMod, of13.TypeMultipartRequest, of13.TypeMultipartReply, of13.TypeBarrierRequest, of13.TypeBarrierReply,
	of13.TypeQueueGetConfigRequest, of13.TypeQueueGetConfigReply,
}

// Kind is the type of 1.3 that stands for a type of message.
func Kind(kind uint8) uint8 {
	switch {
	case kind < typePortMod:
		return kind
	case kind < numTypes:
		return kinds[kind-typePortMod]
	}
	return 0xff
}

// wireKind is the type that stands for one of 1.3.
func wireKind(kind uint8) (uint8, bool) {
	if kind < typePortMod {
		return kind, true
	}
	for i, k := range kinds {
		if k == kind {
			return typePortMod + uint8(i), true
		}
	}
	return 0, false
}

// FeaturesReply is what a switch is, with its ports.
type FeaturesReply struct {
	of13.FeaturesReply
	Ports []of13.Port
}
