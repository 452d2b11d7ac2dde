package vnet

// Aim is what the operator has leases placed anew for.
type Aim string

// Aims.
const (
	FewestHosts Aim = "fewest-hosts" // as many hosts as can be have nothing
	LeastLoaded Aim = "least-loaded" // the most loaded hosts have less
)

// Aims lists all, the default first.
var Aims = []Aim{FewestHosts, LeastLoaded}
