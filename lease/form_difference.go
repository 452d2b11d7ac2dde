package lease

import (
	"fmt"
	"time"

	"sublet/vnet"
)

// formed is what a lease's request becomes with another form. What is there in
// both is the same thing, so what it is stays: see level. The error names the
// first field for which that does not hold.
func (b *Book) formed(now time.Time, e *entry, asked vnet.Request) (vnet.Request, error) {
	is := b.view(now).takeWay(settled(e.Request, asked))
	if err := is.Check(); err != nil {
		return is, err
	}
	if e.Move != nil && e.onHosts() {
		return is, fmt.Errorf("%w: %s still gives back what it had: try again in a moment", ErrConflict, e.ID())
	}
	if err := sameHead(e.Request, is); err != nil {
		return is, err
	}
	if !e.onHosts() {
		return is, nil
	}
	if err := e.sameStages(is); err != nil {
		return is, err
	}
	if err := e.sameElements(is); err != nil {
		return is, err
	}
	return is, e.clash(is)
}

// fixed is a difference that cannot be.
func fixed(path, how string) error {
	return &vnet.FieldError{Path: path, Problem: how + ": what is there stays what it is: choose another name for something else, or release the network and ask anew"}
}

// sameHead compares what says whose network it is, when it begins, and how it is
// embedded.
func sameHead(was, is vnet.Request) error {
	bare := func(r vnet.Request) vnet.Request {
		r.Topology, r.Chains, r.Classes, r.Stages, r.For, r.Movable, r.Negotiable, r.Labels, r.Verify = vnet.Topology{}, nil, nil, nil, 0, false, nil, nil, ""
		return r
	}
	before, after, err := trees(bare(was), bare(is))
	if err != nil {
		return err
	}
	if path, how := difference(before, after); how != "" {
		return fixed(path[1:], how)
	}
	return nil
}

// sameStages wants the stages that have begun where they were.
func (e *entry) sameStages(is vnet.Request) error {
	for i, s := range e.Request.Stages[:e.Stage+1] {
		switch {
		case i >= len(is.Stages):
			return fixed("stages", "stage "+s.Name+", which has begun, is missing")
		case is.Stages[i].Name != s.Name || is.Stages[i].After != s.After || is.Stages[i].OnCommand != s.OnCommand:
			return fixed(fmt.Sprintf("stages[%d]", i), "is not "+s.Name+", which has begun")
		}
	}
	return nil
}

// part is something that a request states, and where.
type part struct {
	kind, path string
	value      any
}

// elementsOf lists what a request states, by name, as first written.
func elementsOf(r vnet.Request) map[string]part {
	all := make(map[string]part)
	note := func(name string, e part) {
		if _, again := all[name]; !again {
			all[name] = e
		}
	}
	for i, t := range topologies(&r) {
		where := ""
		if i > 0 {
			where = fmt.Sprintf("stages[%d].add.", i-1)
		}
		for j, n := range t.Nodes {
			note(n.Name, part{"node", fmt.Sprintf("%snodes[%d]", where, j), levelNode(n)})
		}
		for j, n := range t.Routers {
			note(n.Name, part{"router", fmt.Sprintf("%srouters[%d]", where, j), levelNode(n)})
		}
		for j, s := range t.Switches {
			note(s.Name, part{"switch", fmt.Sprintf("%sswitches[%d]", where, j), levelSwitch(s)})
		}
		for j, l := range t.Links {
			note(l.Name, part{"link", fmt.Sprintf("%slinks[%d]", where, j), levelLink(l)})
		}
	}
	return all
}

// levelNode, levelSwitch and levelLink leave what cannot be changed while it runs.
func levelNode(n vnet.VirtualNode) vnet.VirtualNode {
	n.CPU, n.Memory, n.Labels, n.Site, n.Host, n.Movable = 0, 0, nil, "", "", ""
	n.Files, n.Run, n.Env, n.Workdir, n.Sysctls = nil, nil, nil, "", nil
	n.Protocol, n.AS, n.Neighbors, n.FRR = "", 0, nil, ""
	if n.Function != nil {
		f := *n.Function
		f.Rules, f.Rate, f.Standby, f.Patience, f.Nodes, f.Port, f.Publish, f.Ports, f.Probe = nil, 0, "", 0, nil, 0, 0, vnet.PortRange{}, vnet.Packets{}
		f.Absent = false
		if f.Auto != nil {
			f.Auto = new(vnet.Processing)
		}
		n.Function = &f
	}
	return n
}

func levelSwitch(s vnet.VirtualSwitch) vnet.VirtualSwitch {
	s.CPU, s.Labels, s.Site, s.Host, s.Ageing, s.Ports = 0, nil, "", "", 0, nil
	s.SwitchEngineOptions = vnet.SwitchEngineOptions{}
	if len(s.FlowSlices) > 0 { // one that has slices goes on with some
		s.FlowSlices = []vnet.FlowSlice{{}}
	}
	return s
}

func levelLink(l vnet.VirtualLink) vnet.VirtualLink {
	l.Bandwidth, l.Impair, l.Down, l.Labels = [2]vnet.Bandwidth{}, [2]vnet.Impairment{}, false, nil
	l.Latency, l.Paths, l.Order, l.Spread, l.Area, l.Cost, l.Class = 0, 0, "", 0, 0, 0, ""
	return l
}

// sameElements wants what is there in both requests to be the same things, on
// the hosts where they are.
func (e *entry) sameElements(is vnet.Request) error {
	before := elementsOf(e.Request)
	for name, now := range elementsOf(is) {
		was, there := before[name]
		if !there {
			continue
		}
		if was.kind != now.kind {
			return fixed(now.path, fmt.Sprintf("%s is a %s, and was a %s", name, now.kind, was.kind))
		}
		a, err := tree(was.value)
		if err != nil {
			return err
		}
		b, err := tree(now.value)
		if err != nil {
			return err
		}
		if path, how := difference(a, b); how != "" {
			return fixed(now.path+path, how)
		}
	}
	if err := e.samePrograms(is); err != nil {
		return err
	}
	return e.samePlaces(is)
}

// samePlaces wants no other place for what runs.
func (e *entry) samePlaces(is vnet.Request) (err error) {
	type place struct {
		site string
		host vnet.HostID
	}
	stated := make(map[string]place)
	was := rewrite(e.Request)
	eachPlace(&was, func(name string, site *string, host *vnet.HostID) { stated[name] = place{*site, *host} })
	is = rewrite(is)
	paths := elementsOf(is)
	eachPlace(&is, func(name string, site *string, host *vnet.HostID) {
		before, there := stated[name]
		on := e.Mapping.Nodes[name]
		switch {
		case !there || err != nil:
		case *host != "" && *host != on:
			err = fixed(paths[name].path+".host", fmt.Sprintf("%s runs on %s", name, on))
		case *site != "" && *site != before.site:
			err = fixed(paths[name].path+".site", fmt.Sprintf("%s runs on %s", name, on))
		}
	})
	return err
}
