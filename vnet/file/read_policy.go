package file

import "sublet/vnet"

// ParsePolicy reads an operator's policy and checks it.
func ParsePolicy(name string, text []byte) (vnet.Policy, error) {
	doc, err := open(name, text, requestLimits)
	if err != nil {
		return vnet.Policy{}, err
	}
	var form policy
	if err := doc.decode(&form); err != nil {
		return vnet.Policy{}, err
	}
	p, err := form.policy()
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return vnet.Policy{}, doc.explain(err)
	}
	return p, nil
}

// policy turns the form into vnet's words.
func (f policy) policy() (vnet.Policy, error) {
	p := vnet.Policy{Others: vnet.Others(f.Others), Default: f.Default.quota()}
	if p.Others == "" {
		p.Others = vnet.OthersAllowed
	}
	for _, t := range f.Tenants {
		p.Tenants = append(p.Tenants, t.tenant())
	}
	for _, g := range f.Groups {
		group := vnet.GroupPolicy{Name: g.Name, Each: g.Each.quota(), Together: g.Together.quota()}
		if g.Members != nil { // an empty list is not the machine's group
			group.Members = make([]vnet.TenantID, 0, len(g.Members))
		}
		for _, m := range g.Members {
			group.Members = append(group.Members, vnet.TenantID(m))
		}
		p.Groups = append(p.Groups, group)
	}
	var err error
	p.Nodes, err = f.Nodes.defaults()
	return p, err
}

// tenant keeps a contradiction between name, uid and uids for Check to find.
func (f tenantPolicy) tenant() vnet.TenantPolicy {
	t := vnet.TenantPolicy{Name: vnet.TenantID(f.Name), UIDs: (*[2]uint32)(f.UIDs), Quota: f.quota.quota()}
	if f.UID != nil {
		if t.UIDs != nil {
			t.Name, t.UIDs = "", nil
			return t
		}
		t.UIDs = (*[2]uint32)(f.UID)
	}
	return t
}

// quota lists what is stated.
func (f *quota) quota() vnet.Quota {
	q := make(vnet.Quota)
	if f == nil {
		return q
	}
	state(q, vnet.QuotaLeases, f.Leases)
	state(q, vnet.QuotaNodes, f.Nodes)
	state(q, vnet.QuotaCPU, f.CPU)
	state(q, vnet.QuotaMemory, f.Memory)
	state(q, vnet.QuotaBandwidth, f.Bandwidth)
	state(q, vnet.QuotaBandwidthTime, f.BandwidthTime)
	state(q, vnet.QuotaWaysOut, f.WaysOut)
	state(q, vnet.QuotaPublish, f.Publish)
	state(q, vnet.QuotaExits, f.Exits)
	state(q, vnet.QuotaJoins, f.Joins)
	state(q, vnet.QuotaDevices, f.Devices)
	state(q, vnet.QuotaHorizon, f.Horizon)
	state(q, vnet.QuotaLength, f.Length)
	state(q, vnet.QuotaDefaultLength, f.DefaultLength)
	state(q, vnet.QuotaAsks, f.Asks)
	return q
}

func state[L ~int64](q vnet.Quota, name vnet.QuotaName, limit *L) {
	if limit != nil {
		q[name] = int64(*limit)
	}
}

// defaults fills in the built-in ceilings. Zeros are refused, because vnet's
// word for no ceiling is 0.
func (f *nodeDefaults) defaults() (vnet.NodeDefaults, error) {
	d := vnet.BuiltinNodeDefaults
	if f == nil {
		return d, nil
	}
	zero := func(field string) error {
		return &vnet.FieldError{Path: "node_defaults." + field, Problem: "0 lets no node run: state more, or leave it out"}
	}
	if f.CPU != nil {
		if *f.CPU == 0 {
			return d, zero("cpu")
		}
		d.CPU = vnet.CPU(ceiling(*f.CPU))
	}
	if f.Memory != nil {
		if *f.Memory == 0 {
			return d, zero("memory")
		}
		d.Memory, d.Share = vnet.Bytes(ceiling(*f.Memory)), 0
	}
	if f.Processes != nil {
		if *f.Processes < 1 {
			return d, zero("pids")
		}
		d.Processes = *f.Processes
	}
	return d, nil
}

func ceiling[L ~int64](limit L) int64 {
	if int64(limit) == vnet.Unlimited {
		return 0
	}
	return int64(limit)
}
