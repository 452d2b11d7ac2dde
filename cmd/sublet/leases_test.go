package main

import (
	"net/netip"
	"testing"

	"sublet/vnet"
)

// A network that has ended has no addresses, and none is made up.
func TestNoAddressIsNoWord(t *testing.T) {
	l := vnet.Lease{Stage: -1, Addresses: map[string]netip.Addr{"a": netip.MustParseAddr("10.0.0.1")}}
	if got := addressWords(l, "a") + addressWords(l, "b"); got != "10.0.0.1" {
		t.Errorf("addresses are %q", got)
	}
}
