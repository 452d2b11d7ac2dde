package plan

import (
	"fmt"
	"strings"

	"sublet/vnet"
)

// VNode is the namespace of one virtual node, end host or router, with its
// limits. Its hosts file is its lease's NameTable. Built by datapath/vnode.
type VNode struct {
	Lease  vnet.LeaseID `json:"lease"`
	Node   string       `json:"node"`
	Owner  uint32       `json:"owner_uid"` // root inside the node is this user outside
	CPU    vnet.CPU     `json:"cpu_milli,omitempty"`
	Memory vnet.Bytes   `json:"memory_bytes,omitempty"` // whole pages
	// Processes is how many processes and threads it may have; 0:
	// vnet.NodeProcesses.
	Processes int `json:"pids,omitempty"`
	// Auto says that CPU is the most that it gets, and that something else says how
	// much of it: what ChainProcessing is of.
	Auto bool `json:"auto,omitempty"`
}

// Namespace names the network namespace of a virtual node on its host. Names
// hold no '.', so no two nodes share one.
func Namespace(lease vnet.LeaseID, node string) string {
	return string(lease.Tenant) + "." + string(lease.Network) + "." + node
}

// ParseNamespace takes Namespace apart; false: it is none. The name of a
// vnet.ControlNode has two parts, and ChainHome three.
func ParseNamespace(key string) (lease vnet.LeaseID, node string, ok bool) {
	parts := strings.SplitN(key, ".", 3)
	if len(parts) != 3 || strings.Contains(parts[2], ".") && !isControlNode(parts[2]) {
		return lease, "", false
	}
	return vnet.LeaseID{Tenant: vnet.TenantID(parts[0]), Network: vnet.VNetID(parts[1])}, parts[2], true
}

func isControlNode(name string) bool {
	vswitch, _, _ := strings.Cut(name, ".")
	return name == vnet.ControlNode(vswitch) || name == ChainHome
}

// Fabric names the namespace that holds the host-side ends of a lease's links:
// no addresses, no forwarding, so whatever is not redirected goes nowhere.
func Fabric(lease vnet.LeaseID) string {
	return string(lease.Tenant) + "." + string(lease.Network)
}

// ParseFabric takes Fabric apart; false: it is the name of something else, and
// the lease one that gives that name.
func ParseFabric(name string) (lease vnet.LeaseID, ok bool) {
	tenant, network, ok := strings.Cut(name, ".")
	return vnet.LeaseID{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(network)}, ok && !strings.Contains(network, ".")
}

// Kind of the section.
func (VNode) Kind() Kind { return KindVNode }

// Key is the namespace.
func (n VNode) Key() string { return Namespace(n.Lease, n.Node) }

// LeaseID is the lease that it is of.
func (n VNode) LeaseID() vnet.LeaseID { return n.Lease }

// Meet keeps the smaller limits; 0 is no limit.
func (n VNode) Meet(other Item) Item {
	o := other.(VNode)
	n.CPU, n.Memory, n.Processes = lesser(n.CPU, o.CPU), lesser(n.Memory, o.Memory), lesser(n.Processes, o.Processes)
	return n
}

func (n VNode) String() string {
	text := fmt.Sprintf("%s owner %d cpu %s memory %s", n.Key(), n.Owner, orNone(n.CPU), orNone(n.Memory))
	if n.Auto {
		text += " at most"
	}
	if n.Processes > 0 {
		text += fmt.Sprintf(" pids %d", n.Processes)
	}
	return text
}

// lesser is the smaller of two limits of which 0 means none.
func lesser[T vnet.CPU | vnet.Bytes | vnet.Rate | int](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// orNone prints a limit of which 0 means none.
func orNone[T interface {
	vnet.CPU | vnet.Bytes | vnet.Rate
	String() string
}](limit T) string {
	if limit == 0 {
		return "-"
	}
	return limit.String()
}
