// Package lookup has the second lookups of virtual switches (vxswitch.Forwarder)
// and reads from frames what lookups look at.
//
//	Learning   MAC addresses learned from sources, unknown ones flooded
//	Static     MAC addresses as configured, nothing else
//	Prefixes   longest prefix of the IP destination
//	Func       anything else, for example the flow table of an OpenFlow switch
package lookup

import "sublet/vxswitch"

// Func is a lookup made of a function: the hook for flow tables.
type Func func(now vxswitch.Time, in int, h *vxswitch.Header, out *vxswitch.PortSet)

// Forward calls f.
func (f Func) Forward(now vxswitch.Time, in int, h *vxswitch.Header, out *vxswitch.PortSet) {
	f(now, in, h, out)
}
