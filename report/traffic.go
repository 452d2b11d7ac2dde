package report

import "sublet/vnet"

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
	// was not complete), stranger (came by a device that is not the end's).
	Drops map[string]uint64 `json:"drops,omitempty"`
}
