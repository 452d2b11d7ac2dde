package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hardware is an Ethernet address.
type Hardware [6]byte

func (h Hardware) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", h[0], h[1], h[2], h[3], h[4], h[5])
}

// MarshalText writes it as six pairs of digits.
func (h Hardware) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Hardware) UnmarshalText(text []byte) error {
	if len(text) != len("00:00:00:00:00:00") {
		return fmt.Errorf("%q is not an Ethernet address", text)
	}
	for i := range h {
		if _, err := hex.Decode(h[i:i+1], text[3*i:3*i+2]); err != nil || i < 5 && text[3*i+2] != ':' {
			return fmt.Errorf("%q is not an Ethernet address", text)
		}
	}
	return nil
}

// Hardware is the address of a port's interface: the same whenever it is made
// again, or its neighbours would send to the old one for many seconds.
func (p Port) Hardware() Hardware {
	sum := sha256.Sum256([]byte(p.Namespace + "/" + p.Interface))
	h := Hardware(sum[:6])
	h[0] = h[0]&^1 | 2 // one station's, assigned locally (IEEE 802)
	return h
}
