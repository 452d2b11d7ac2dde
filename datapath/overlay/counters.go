package overlay

// Causes of drops, in the order of enum cause in overlay.bpf.c.
const (
	causeUnknown = iota
	causeUnresolved
	causeTooBig
	causeNotCarried
	causeMalformed
	causeSender
	causePort
	causeInterface
	causeCongested
	causeRefused
)

// causes are their names in reports.
var causes = [...]string{
	causeUnknown:    "unknown",
	causeUnresolved: "unresolved",
	causeTooBig:     "too-big",
	causeNotCarried: "not-carried",
	causeMalformed:  "malformed",
	causeSender:     "sender",
	causePort:       "port",
	causeInterface:  "interface",
	causeCongested:  "congested",
	causeRefused:    "refused",
}

// outgoing are those of packets that a tunnel did not send.
var outgoing = []string{causes[causeUnresolved], causes[causeTooBig], causes[causeNotCarried], causes[causeCongested], causes[causeRefused]}

// dropped names what was dropped, without zeros.
func dropped(c overlayCounts) map[string]uint64 {
	by := make(map[string]uint64)
	for i, n := range c.Drops {
		if n > 0 {
			by[causes[i]] = n
		}
	}
	return by
}
