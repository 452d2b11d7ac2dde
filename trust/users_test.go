package trust

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
		"uid0":                     Nobody, // root has a name
		"uid1":                     Nobody, // so has daemon
		"uid012345":                Nobody,
		"uid4294967296":            Nobody,
		"uid-1":                    Nobody,
		"12345":                    Nobody,
		"no-such-user-of-this-one": Nobody,
	} {
		if got := operator.Owner(tenant); got != want {
			t.Errorf("%s is owned by %d, not %d", tenant, got, want)
		}
	}
	if got := (Caller{Tenant: "uid12345", UID: 12345}).Owner("uid12345"); got != 12345 {
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
