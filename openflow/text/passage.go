package text

import (
	"fmt"

	"sublet/openflow/of13"
)

// Set writes a field that a packet's is set to.
func Set(f of13.Field) string { return setField(f) }

// Port is a port's number, or its name if it is reserved.
func Port(number uint32) string { return port(number) }

// PushVLAN writes the push of a VLAN tag with what is in it.
func PushVLAN(kind, tci uint16) string {
	return fmt.Sprintf("push_vlan(tpid=0x%04x,vid=%d,pcp=%d)", kind, tci&0xfff, tci>>13)
}
