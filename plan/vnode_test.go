package plan

import (
	"testing"

	"sublet/vnet"
)

// TestNamesSayWhose: a fabric's name is taken apart as it was put together; those
// of nodes and switches are none, and no name is taken for another.
func TestNamesSayWhose(t *testing.T) {
	id := vnet.LeaseID{Tenant: "alice", Network: "net"}
	if got, ok := ParseFabric(Fabric(id)); !ok || got != id {
		t.Errorf("%s is of %v", Fabric(id), got)
	}
	for _, name := range []string{"", "alice", Namespace(id, "a"), SwitchNamespace(id, "a", vnet.SwitchKernel)} {
		if got, ok := ParseFabric(name); ok || name != "" && name != "alice" && Fabric(got) != name {
			t.Errorf("%q is the fabric of %v, %v", name, got, ok)
		}
	}
}
