package plan

import (
	"fmt"
	"strings"
	"testing"

	"sublet/vnet"
)

// Lists of what a plan has, which operators see, have nothing of a tenant's key.
func TestKeysAreNotPrinted(t *testing.T) {
	s := Switch{Switch: "s", Type: vnet.SwitchOpenFlow, OpenFlow: &OpenFlow{Controllers: []string{"tls:10.0.0.1:6653"}, TLS: &vnet.SwitchTLS{Key: "SECRET"}}}
	for _, text := range []string{s.String(), fmt.Sprint(s), fmt.Sprintf("%+v", *s.OpenFlow)} {
		if strings.Contains(text, "SECRET") {
			t.Errorf("%s", text)
		}
	}
}
