package api

import (
	"testing"

	"sublet/vnet"
)

// Whose process root of a node is, when somebody else asks for the network.
func TestOwner(t *testing.T) {
	operator := Caller{Tenant: "root", Operator: true}
	for tenant, want := range map[vnet.TenantID]uint32{
		"root":                     0,
		"daemon":                   1,
		"uid12345":                 12345,
		"uid0":                     nobody, // root has a name
		"uid1":                     nobody, // so has daemon
		"uid012345":                nobody,
		"uid4294967296":            nobody,
		"uid-1":                    nobody,
		"12345":                    nobody,
		"no-such-user-of-this-one": nobody,
	} {
		if got := operator.owner(tenant); got != want {
			t.Errorf("%s is owned by %d, not %d", tenant, got, want)
		}
	}
	if got := (Caller{Tenant: "uid12345", UID: 12345}).owner("uid12345"); got != 12345 {
		t.Errorf("the caller's own belongs to %d", got)
	}
}

func TestIsNumbered(t *testing.T) {
	for name, want := range map[string]bool{"uid1": true, "uid": false, "uid1x": false, "xuid1": false, "uidx": false, "1": false} {
		if isNumbered(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
