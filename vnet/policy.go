package vnet

import (
	"fmt"
	"slices"
	"strconv"
)

// Policy is what the operator says of who may have how much.
type Policy struct {
	// Others is what becomes of tenants who are neither listed nor in a group.
	Others  Others
	Default Quota
	Tenants []TenantPolicy
	Groups  []GroupPolicy
	// Nodes are ceilings of nodes that state none.
	Nodes NodeDefaults
}

// Others says whether tenants whom the policy does not name may lease.
type Others string

// What becomes of others.
const (
	OthersAllowed Others = "allowed"
	OthersRefused Others = "refused"
)

// TenantPolicy is the entry of one tenant, or of each user of a range.
type TenantPolicy struct {
	Name  TenantID
	UIDs  *[2]uint32 // first and last
	Quota Quota
}

// GroupPolicy is the entry of a group: of the machine, or of listed tenants.
type GroupPolicy struct {
	Name     string
	Members  []TenantID // none: the machine's group of that name
	Each     Quota
	Together Quota // of what all members have
}

// NodeDefaults are ceilings of nodes and routers that state no limit. They
// book nothing.
type NodeDefaults struct {
	CPU       CPU   `json:"cpu_milli,omitempty"`    // 0: none
	Memory    Bytes `json:"memory_bytes,omitempty"` // 0: none
	Processes int   `json:"pids,omitempty"`         // 0: NodeProcesses
	// Share lets Memory be what the host leases out divided by it, if the host
	// says how much that is. 0: it is Memory everywhere.
	Share int `json:"memory_share,omitempty"`
}

// BuiltinNodeDefaults keep one node from taking a host's memory. Processor
// time needs no ceiling: nodes that state none get what is left over.
var BuiltinNodeDefaults = NodeDefaults{Memory: GiB, Share: 4}

// NodeProcesses is how many processes and threads a node may have where
// nothing else is said. It keeps one node from filling a host's process table.
const NodeProcesses = 4096

// MemoryOn is the ceiling of a node's memory on a host, in bytes; 0: none.
func (d NodeDefaults) MemoryOn(h SubstrateNode) Bytes {
	if d.Share > 0 && h.Memory > 0 {
		return h.Memory / Bytes(d.Share)
	}
	return d.Memory
}

// BuiltinQuota is what holds where no policy says anything else.
var BuiltinQuota = Quota{QuotaLeases: 64, QuotaAsks: 10}

// DefaultPolicy holds without a policy file.
var DefaultPolicy = Policy{Others: OthersAllowed, Nodes: BuiltinNodeDefaults}

// Member is what a policy tells tenants apart by.
type Member struct {
	Name   TenantID // whose account it is
	UID    uint32
	Groups []string // of the machine
}

// QuotaOf is what a tenant may have; false: nothing, they are refused.
func (p Policy) QuotaOf(m Member) (Quota, bool) {
	quota, named := Quota{}, p.Others != OthersRefused
	for _, entry := range p.entriesOf(m) {
		quota, named = quota.Over(entry), true
	}
	return quota.Over(p.Default).Over(BuiltinQuota).Limited(), named
}

// entriesOf are the quotas written for a tenant, the closest first: by name,
// by user, by group in the order of the file.
func (p Policy) entriesOf(m Member) (entries []Quota) {
	for _, t := range p.Tenants {
		if t.Name != "" && t.Name == m.Name {
			entries = append(entries, t.Quota)
		}
	}
	for _, t := range p.Tenants {
		if t.UIDs != nil && t.UIDs[0] <= m.UID && m.UID <= t.UIDs[1] {
			entries = append(entries, t.Quota)
		}
	}
	for _, g := range p.GroupsOf(m) {
		entries = append(entries, g.Each)
	}
	return entries
}

// GroupsOf are the groups that a tenant is in.
func (p Policy) GroupsOf(m Member) (groups []GroupPolicy) {
	for _, g := range p.Groups {
		if g.Has(m) {
			groups = append(groups, g)
		}
	}
	return groups
}

// AsksForGroups says whether who is in which group of the machine matters.
func (p Policy) AsksForGroups() bool {
	return slices.ContainsFunc(p.Groups, func(g GroupPolicy) bool { return g.Members == nil })
}

// Has says whether a tenant is in the group.
func (g GroupPolicy) Has(m Member) bool {
	if g.Members != nil {
		return slices.Contains(g.Members, m.Name)
	}
	return slices.Contains(m.Groups, g.Name)
}

// Check refuses a policy that contradicts itself, with a *FieldError.
func (p Policy) Check() error {
	if p.Others != OthersAllowed && p.Others != OthersRefused {
		return &FieldError{Path: "others", Problem: fmt.Sprintf("%q is neither allowed nor refused: write one of them", string(p.Others))}
	}
	if err := p.Default.check("default"); err != nil {
		return err
	}
	if err := p.checkTenants(); err != nil {
		return err
	}
	return p.checkGroups()
}

func (p Policy) checkTenants() error {
	for i, t := range p.Tenants {
		path := "tenants[" + strconv.Itoa(i) + "]"
		switch {
		case t.Name == "" && t.UIDs == nil, t.Name != "" && t.UIDs != nil:
			return &FieldError{Path: path, Problem: "names nobody, or twice: state one of name, uid and uids"}
		case t.Name != "":
			if err := CheckName(string(t.Name)); err != nil {
				return &FieldError{Path: path + ".name", Problem: err.Error()}
			}
		}
		for j, other := range p.Tenants[:i] {
			if t.overlaps(other) {
				return &FieldError{Path: path, Problem: fmt.Sprintf("is said of the same as tenants[%d]: keep one of them", j)}
			}
		}
		if err := t.Quota.check(path); err != nil {
			return err
		}
	}
	return nil
}

// overlaps says whether two entries of the same kind are of the same tenant.
func (t TenantPolicy) overlaps(other TenantPolicy) bool {
	if t.UIDs != nil && other.UIDs != nil {
		return t.UIDs[0] <= other.UIDs[1] && other.UIDs[0] <= t.UIDs[1]
	}
	return t.Name != "" && t.Name == other.Name
}

func (p Policy) checkGroups() error {
	for i, g := range p.Groups {
		path := "groups[" + strconv.Itoa(i) + "]"
		for j, other := range p.Groups[:i] {
			if g.Name == other.Name {
				return &FieldError{Path: path + ".name", Problem: fmt.Sprintf("is that of groups[%d] too: keep one of them", j)}
			}
		}
		for j, m := range g.Members {
			if err := CheckName(string(m)); err != nil {
				return &FieldError{Path: path + ".members[" + strconv.Itoa(j) + "]", Problem: err.Error()}
			}
		}
		for _, name := range []QuotaName{QuotaHorizon, QuotaLength, QuotaDefaultLength, QuotaAsks} {
			if _, ok := g.Together[name]; ok {
				return &FieldError{Path: path + ".together." + name.Word(), Problem: "is no sum: state it in each"}
			}
		}
		if err := g.Each.check(path + ".each"); err != nil {
			return err
		}
	}
	return nil
}

// check refuses a default length that the longest one forbids.
func (q Quota) check(path string) error {
	longest, bounded := q[QuotaLength]
	if length, ok := q[QuotaDefaultLength]; ok && bounded && length > longest {
		return &FieldError{Path: path + ".default_length", Problem: fmt.Sprintf(
			"%s is more than the longest length, %s: state less", QuotaDefaultLength.Format(length), QuotaLength.Format(longest))}
	}
	return nil
}
