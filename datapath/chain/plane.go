package chain

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/nsh"
	"sublet/plan"
	"sublet/vnet"
)

// planeOf is an item in the words of datapath/nsh.
func (p *Part) planeOf(c plan.Chains) (nsh.Plane, error) {
	plane := nsh.Plane{Fabric: c.Key(), Interface: c.Interface, Local: c.Local}
	for _, e := range c.Entries {
		made := nsh.Classifier{Port: e.Device}
		for _, r := range e.Rules {
			made.Rules = append(made.Rules, nsh.Rule{Match: matchOf(r.Match), Path: r.Path, Index: r.Index})
		}
		plane.Classifiers = append(plane.Classifiers, made)
	}
	waits := make(map[string]bool) // limiters that are rates of chains: whether packets go on to other hosts
	for _, h := range c.Hops {
		if h.HoldsRate() {
			waits[h.Function] = waits[h.Function] || slices.ContainsFunc(c.Hops, func(o plan.ChainHop) bool { return o.Path == h.Path && o.Remote != "" })
		}
	}
	most := 0
	for _, m := range c.Metadata {
		plane.Metadata = append(plane.Metadata, nsh.Metadata(m))
		most = max(most, len(m.Bytes))
	}
	for _, f := range c.Functions {
		made, err := functionOf(f)
		if err != nil {
			return plane, err
		}
		if remote, ok := waits[f.Name]; ok {
			made.Kind = nsh.Shape
			if remote {
				made.Outer, made.Overhead = uint64(plan.Outer(f.Rate)), plan.OuterHeaders+uint16(most)
			}
		}
		for _, b := range f.Backends {
			down := !p.health.up(c.Key(), b.Path)
			made.Backends = append(made.Backends, nsh.Backend{Address: b.Address, Path: b.Path, Index: plan.AskIndex, Down: down})
		}
		plane.Functions = append(plane.Functions, made)
	}
	for _, r := range c.Remotes {
		made := nsh.Remote{Name: r.Name, Address: r.Address, VNI: uint32(r.VNI), Source: r.Source}
		if r.Transport == vnet.TransportGPE {
			made.Transport = nsh.GPE
		}
		if r.Shaped {
			class, err := p.Class(c.Lease, r.Link, r.End)
			if err != nil {
				return plane, fmt.Errorf("%s: %w", r.Name, err)
			}
			made.Class = class
		}
		plane.Remotes = append(plane.Remotes, made)
	}
	sided := func(name string) bool { // it does another thing with packets from its far side
		f, _ := c.Function(name)
		return f.Type == vnet.FunctionNAT || f.Type == vnet.FunctionProgram || f.Type == vnet.FunctionBalancer || f.Type == vnet.FunctionClassifier
	}
	for _, h := range c.Hops {
		made := nsh.Hop{Path: h.Path, Index: h.Index, Function: h.Function, Reverse: h.Back && sided(h.Function), Remote: h.Remote, Below: h.Below}
		made.Fails, made.Instead, made.Jump = failures[h.OnFailure], placeOf(h.Instead), placeOf(h.Jump)
		if h.Egress != "" {
			made.Egress = &nsh.Egress{Port: h.Egress, Ethernet: h.Hardware}
		}
		plane.Hops = append(plane.Hops, made)
	}
	return plane, nil
}

var failures = map[vnet.OnFailure]nsh.Failure{
	vnet.FailureDrop: nsh.Drop, vnet.FailureBypass: nsh.Bypass, vnet.FailureReroute: nsh.Reroute,
}

func placeOf(p *plan.ChainPlace) *nsh.Place {
	if p == nil {
		return nil
	}
	return &nsh.Place{Path: p.Path, Index: p.Index}
}

func functionOf(f plan.ChainFunction) (nsh.Function, error) {
	made := nsh.Function{Name: f.Name, In: f.In, Out: f.Out}
	switch f.Type {
	case vnet.FunctionFirewall:
		made.Kind = nsh.Firewall
	case vnet.FunctionLimiter:
		made.Kind, made.Rate = nsh.Limit, uint64(f.Rate)
	case vnet.FunctionProgram:
		made.Kind, made.Patience = nsh.Node, time.Duration(f.Patience)
		if f.Aware {
			made.Kind = nsh.Aware
		}
	case vnet.FunctionNAT:
		made.Kind, made.Prefix, made.Ports = nsh.NAT, f.Prefix, nsh.Ports{From: f.Ports[0], To: f.Ports[1]}
	case vnet.FunctionBalancer:
		made.Kind, made.Service, made.Target = nsh.Balancer, netip.AddrPortFrom(f.Service, f.Publish), f.Target
	case vnet.FunctionClassifier:
		made.Kind = nsh.Reclassifier
		for _, r := range f.Rules {
			move := nsh.Move{Match: matchOf(r.Match)}
			if r.To != nil {
				move.To = *placeOf(r.To)
			}
			made.Moves = append(made.Moves, move)
		}
		return made, nil
	case vnet.FunctionMirror:
		made.Kind, made.To, made.Enters = nsh.Mirror, f.To, true
	default:
		return made, fmt.Errorf("function %s: hosts have no kind %q", f.Name, f.Type)
	}
	for _, r := range f.Rules {
		made.Rules = append(made.Rules, nsh.FirewallRule{Match: matchOf(r.Match), Deny: !r.Allow})
	}
	return made, nil
}

var protocols = map[vnet.IPProtocol]uint8{
	vnet.ProtocolTCP: unix.IPPROTO_TCP, vnet.ProtocolUDP: unix.IPPROTO_UDP, vnet.ProtocolICMP: unix.IPPROTO_ICMP,
}

// protocolOf is the number of a match's protocol, which ICMP has one of in each family.
func protocolOf(m plan.ChainMatch) uint8 {
	if m.Protocol == vnet.ProtocolICMP && (m.Src.Addr().Is6() || m.Dst.Addr().Is6()) {
		return unix.IPPROTO_ICMPV6
	}
	return protocols[m.Protocol]
}

func matchOf(m plan.ChainMatch) nsh.Match {
	return nsh.Match{
		Proto: protocolOf(m), Src: m.Src, Dst: m.Dst, DSCP: m.DSCP, VLAN: m.VLAN,
		SrcPorts: nsh.Ports{From: m.SrcPorts[0], To: m.SrcPorts[1]}, DstPorts: nsh.Ports{From: m.DstPorts[0], To: m.DstPorts[1]},
	}
}
