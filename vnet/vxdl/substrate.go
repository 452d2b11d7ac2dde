package vxdl

import "sublet/vnet"

// ParseSubstrate reads a document that describes physical resources, which
// VXDL does in the words of a request: a vNode is a host, a vRouter a switch, a
// vLink a wire. The capacity of a wire is the smaller of its directions'; its
// latency is the stated one. Times and owners mean nothing here. Errors are
// *vnet.InputError.
func ParseSubstrate(name string, text []byte) (vnet.Substrate, []Note, error) {
	root, err := parseTree(name, text)
	if err != nil {
		return vnet.Substrate{}, nil, err
	}
	request, all, err := Parse(name, text, false)
	if err != nil {
		return vnet.Substrate{}, nil, err
	}
	var notes []Note
	for _, n := range all {
		if n.Raw != "" {
			notes = append(notes, n) // what was not understood at all
		}
	}
	var sub vnet.Substrate
	for _, n := range request.Nodes {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(n.Name), Site: n.Site, CPU: n.CPU, Memory: n.Memory})
	}
	for _, n := range request.Routers {
		sub.Switches = append(sub.Switches, n.Name)
	}
	for _, l := range request.Links {
		capacity := min(most(l.Bandwidth[vnet.Forward]), most(l.Bandwidth[vnet.Reverse]))
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: l.Name, Ends: l.Ends, Capacity: capacity, Latency: l.Latency})
	}
	sub.Fill()
	if err := sub.Check(); err != nil {
		return vnet.Substrate{}, nil, root.fail(name, "as a substrate: %v", err)
	}
	return sub, notes, nil
}

// most is what a direction of a wire carries: its stated rate, or the minimum
// where no maximum is.
func most(b vnet.Bandwidth) vnet.Rate {
	if b.Max == vnet.Unbounded {
		return b.Min
	}
	return b.Max
}
