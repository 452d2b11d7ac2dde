package overlay

import (
	"net/netip"
	"testing"
)

// Each writer that the program has is the one of some protocol, over IPv4 or IPv6.
func TestEveryShapeIsUsed(t *testing.T) {
	used := make(map[uint8]bool)
	for i := range protocols {
		for _, ends := range [][2]string{{"192.0.2.1", "192.0.2.2"}, {"2001:db8::1", "2001:db8::2"}} {
			a := addressing{local: netip.MustParseAddr(ends[0]), remote: netip.MustParseAddr(ends[1])}
			used[entryOf(&protocols[i], 7, a, 1).Shape] = true
		}
	}
	for i, name := range shapes() {
		if !used[uint8(i)] {
			t.Errorf("shape %s is of no protocol", name)
		}
	}
}
