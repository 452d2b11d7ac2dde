package overlay

import (
	"sync"

	"sublet/datapath/bpf"
)

// causes are the names of drops in reports.
var causes = bpf.EnumNames(loadOverlay, "drop", "DROP_")

// outgoing are those of packets that a tunnel did not send.
var outgoing = sync.OnceValue(outgoingCauses)

func outgoingCauses() (list []string) {
	for _, c := range []overlayDrop{overlayDropDROP_UNRESOLVED, overlayDropDROP_TOO_BIG, overlayDropDROP_NOT_CARRIED, overlayDropDROP_CONGESTED, overlayDropDROP_REFUSED} {
		list = append(list, causes()[c])
	}
	return list
}

// dropped names what was dropped, without zeros; nil: nothing was.
func dropped(c overlayCounts) map[string]uint64 {
	var by map[string]uint64
	for i, n := range c.Drops {
		if n > 0 {
			if by == nil {
				by = make(map[string]uint64)
			}
			by[causes()[i]] = n
		}
	}
	return by
}
