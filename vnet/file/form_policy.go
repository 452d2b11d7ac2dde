package file

import (
	"fmt"
	"strconv"
	"strings"

	"sublet/vnet"
)

// The form of a policy.

type policy struct {
	Others  string         `yaml:"others,omitempty" jsonschema_description:"Whether tenants who are neither listed nor in a group may lease." jsonschema:"enum=allowed,enum=refused,default=allowed"`
	Default *quota         `yaml:"default,omitempty" jsonschema_description:"What holds for everybody where nothing closer says anything. Default: 64 leases, 10 asks a second, nothing else limited."`
	Tenants []tenantPolicy `yaml:"tenants,omitempty" jsonschema_description:"Entries of single tenants and of ranges of users. What they leave out is taken from the tenant's groups, in their order, then from default."`
	Groups  []groupPolicy  `yaml:"groups,omitempty" jsonschema_description:"Entries of groups."`
	Nodes   *nodeDefaults  `yaml:"node_defaults,omitempty" jsonschema_description:"Ceilings of nodes and routers that state none. They book nothing."`
}

type quota struct {
	Leases        *countLimit `yaml:"leases,omitempty" jsonschema_description:"Live leases, those booked for later too."`
	Nodes         *countLimit `yaml:"nodes,omitempty" jsonschema_description:"Nodes, routers and switches at any instant."`
	CPU           *cpuLimit   `yaml:"cpu,omitempty" jsonschema_description:"Cores at any instant."`
	Memory        *sizeLimit  `yaml:"memory,omitempty" jsonschema_description:"Memory at any instant, such as 64GiB."`
	Bandwidth     *rateLimit  `yaml:"bandwidth,omitempty" jsonschema_description:"Guaranteed minima at any instant, both directions of every link added up, such as 10Gbit."`
	BandwidthTime *bitLimit   `yaml:"bandwidth_time,omitempty" jsonschema_description:"The same times the time for which it is still booked, such as 100Gbit*h."`
	WaysOut       *countLimit `yaml:"ways_out,omitempty" jsonschema_description:"Routers with a way out at any instant: each has an address outside."`
	Publish       *countLimit `yaml:"publish,omitempty" jsonschema_description:"Published ports at any instant."`
	Exits         *countLimit `yaml:"exits,omitempty" jsonschema_description:"Switches with access to an exit at any instant: each has a VLAN."`
	Joins         *countLimit `yaml:"joins,omitempty" jsonschema_description:"Nodes that machines become at any instant: each has a port."`
	Devices       *countLimit `yaml:"devices,omitempty" jsonschema_description:"Nodes with a device at any instant."`
	Horizon       *spanLimit  `yaml:"horizon,omitempty" jsonschema_description:"How far ahead a lease may begin, such as 30d."`
	Length        *spanLimit  `yaml:"length,omitempty" jsonschema_description:"Longest length of a lease, such as 7d."`
	DefaultLength *spanLimit  `yaml:"default_length,omitempty" jsonschema_description:"Length of a lease that states none. Default: until released, if length is not limited."`
	Asks          *countLimit `yaml:"asks_per_second,omitempty" jsonschema_description:"Requests for leases and offers, a second."`
}

type tenantPolicy struct {
	Name  name     `yaml:"name,omitempty" jsonschema_description:"A tenant: a user's name."`
	UID   *userIDs `yaml:"uid,omitempty" jsonschema_description:"A user's number, instead of the name."`
	UIDs  *userIDs `yaml:"uids,omitempty" jsonschema_description:"A range of users such as 2000-2999, instead of the name; each may have what is stated."`
	quota `yaml:",inline"`
}

type groupPolicy struct {
	Name     string `yaml:"name" jsonschema_description:"Of the group, unique." jsonschema:"minLength=1"`
	Members  []name `yaml:"members,omitempty" jsonschema_description:"Its tenants. Default: the members of this machine's group of that name."`
	Each     *quota `yaml:"each,omitempty" jsonschema_description:"What each member may have, where their own entry says nothing."`
	Together *quota `yaml:"together,omitempty" jsonschema_description:"What all members may have together."`
}

type nodeDefaults struct {
	CPU       *cpuLimit  `yaml:"cpu,omitempty" jsonschema_description:"Cores. Default: unlimited; such nodes get the processor time that nodes with a limit leave over."`
	Memory    *sizeLimit `yaml:"memory,omitempty" jsonschema_description:"Such as 2GiB. Default: a quarter of the memory that the host leases out; 1GiB on hosts that do not say how much that is."`
	Processes *int       `yaml:"pids,omitempty" jsonschema_description:"Processes and threads. Default: 4096." jsonschema:"minimum=1"`
}

// Limits as they are written. Each of them can be unlimited.
type (
	countLimit int64
	cpuLimit   int64
	sizeLimit  int64
	rateLimit  int64
	bitLimit   int64
	spanLimit  int64
)

// limit reads an amount, or that there is no limit.
func limit[L, T ~int64](to *L, text []byte, parse func(string) (T, error)) error {
	if string(text) == "unlimited" {
		*to = L(vnet.Unlimited)
		return nil
	}
	v, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("%w, nor unlimited", err)
	}
	*to = L(v)
	return nil
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a whole number such as 20", s)
	}
	return n, nil
}

func (l *countLimit) UnmarshalText(text []byte) error { return limit(l, text, parseCount) }
func (l *cpuLimit) UnmarshalText(text []byte) error   { return limit(l, text, vnet.ParseCPU) }
func (l *sizeLimit) UnmarshalText(text []byte) error  { return limit(l, text, vnet.ParseBytes) }
func (l *rateLimit) UnmarshalText(text []byte) error  { return limit(l, text, vnet.ParseRate) }
func (l *bitLimit) UnmarshalText(text []byte) error   { return limit(l, text, vnet.ParseBandwidthTime) }
func (l *spanLimit) UnmarshalText(text []byte) error  { return limit(l, text, vnet.ParseDuration) }

// userIDs is a user's number or a range of them.
type userIDs [2]uint32

func (u *userIDs) UnmarshalText(text []byte) error {
	first, last, ranged := strings.Cut(string(text), "-")
	if !ranged {
		last = first
	}
	for i, s := range []string{first, last} {
		n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32)
		if err != nil {
			return fmt.Errorf("%q is neither a user's number nor a range such as 2000-2999", text)
		}
		u[i] = uint32(n)
	}
	if u[0] > u[1] {
		return fmt.Errorf("%q ends before it begins: write the smaller number first", text)
	}
	return nil
}
