package nsh

import (
	"errors"
	"fmt"
	"path/filepath"

	"sublet/datapath/bpf"
)

// Check says why a plane cannot be made, whatever the kernel has.
func Check(p Plane) error {
	for _, err := range []error{
		p.checkUnderlay(), each(p.Remotes, p.checkRemote), each(p.Functions, checkFunction), p.checkNames(),
		each(p.Classifiers, checkClassifier), each(p.Hops, p.checkHop), each(p.Metadata, checkMetadata), p.checkOnce(),
	} {
		if err != nil {
			return fmt.Errorf("service plane %s: %w", p.Fabric, err)
		}
	}
	return nil
}

func each[T any](list []T, check func(T) error) error {
	for _, item := range list {
		if err := check(item); err != nil {
			return err
		}
	}
	return nil
}

func (p Plane) checkUnderlay() error {
	switch {
	case p.Fabric == "" || filepath.Base(p.Fabric) != p.Fabric || p.Fabric[0] == '.' || filepath.Ext(p.Fabric) == unfinished:
		return errors.New("its fabric is no name of a namespace")
	case len(p.Remotes) > 0 && (p.Interface == "" || !p.Local.IsValid()):
		return errors.New("with other hosts it needs an interface and a local address")
	case len(p.Functions)+len(p.Remotes) > 255:
		return fmt.Errorf("%d functions and hosts are more than 255", len(p.Functions)+len(p.Remotes))
	}
	return nil
}

func (p Plane) checkRemote(r Remote) error {
	switch {
	case r.Name == "":
		return errors.New("a remote has no name")
	case !r.Address.IsValid() || r.Address.Is4() != p.Local.Is4() || r.Address == p.Local:
		return fmt.Errorf("remote %s: address %s does not go with the local %s", r.Name, r.Address, p.Local)
	case r.Transport != "" && r.Transport != UDP && r.Transport != GPE:
		return fmt.Errorf("remote %s: there is no transport %q: take udp or gpe", r.Name, r.Transport)
	case r.Source >= bpf.PortUser && r.Source != bpf.PortNshSource:
		return fmt.Errorf("remote %s: nobody takes packets from port %d: take one below %d, or %d", r.Name, r.Source, bpf.PortUser, bpf.PortNshSource)
	case r.VNI > MaxPath:
		return fmt.Errorf("remote %s: a VNI has 24 bits", r.Name)
	}
	return nil
}

// checkNames refuses names twice.
func (p Plane) checkNames() error {
	seen := make(map[string]bool)
	for _, f := range p.Functions {
		if key := functionKey(f.Name); seen[key] {
			return fmt.Errorf("there are two functions %s", f.Name)
		} else {
			seen[key] = true
		}
	}
	for _, r := range p.Remotes {
		if key := remoteKey(r.Name); seen[key] {
			return fmt.Errorf("there are two remotes %s", r.Name)
		} else {
			seen[key] = true
		}
	}
	return nil
}

func checkFunction(f Function) error {
	if _, ok := steps[f.Kind]; !ok || f.Name == "" {
		return fmt.Errorf("function %q: there is no kind %q", f.Name, f.Kind)
	}
	if f.Patience < 0 {
		return fmt.Errorf("function %s: there is no patience of %s", f.Name, f.Patience)
	}
	if f.Flows > MaxFlows {
		return fmt.Errorf("function %s: %d flows are more than %d", f.Name, f.Flows, MaxFlows)
	}
	if err := checkKind(f); err != nil {
		return fmt.Errorf("function %s: %w", f.Name, err)
	}
	return nil
}

func checkKind(f Function) error {
	switch f.Kind {
	case Firewall:
		if len(f.Rules) > MaxRules {
			return fmt.Errorf("%d rules are more than %d", len(f.Rules), MaxRules)
		}
		return each(f.Rules, func(r FirewallRule) error { return checkMatch(r.Match) })
	case Reclassifier:
		if len(f.Moves) > MaxRules {
			return fmt.Errorf("%d rules are more than %d", len(f.Moves), MaxRules)
		}
		return each(f.Moves, func(m Move) error {
			if m.To == (Place{}) {
				return checkMatch(m.Match)
			}
			return errors.Join(checkPath(m.To.Path, m.To.Index), checkMatch(m.Match))
		})
	case NAT:
		if !f.Prefix.IsValid() || !f.Prefix.Addr().Is4() || f.Prefix.Bits() < 8 {
			return fmt.Errorf("%s is no prefix of IPv4 of 8 bits or more", f.Prefix)
		}
		return checkPorts(f.Ports)
	case Balancer:
		return checkBalancer(f)
	case Limit, Shape:
		if f.Rate < 8 || f.Rate/8 > 1e10 {
			return fmt.Errorf("rate %d is none between 8 bit/s and 80 Gbit/s", f.Rate)
		}
	case Mirror:
		if f.To == "" {
			return errors.New("it needs a device that gets the copies")
		}
	case Node, Aware:
		if f.In == "" || f.Out == "" || f.In == f.Out {
			return errors.New("a node needs two interfaces")
		}
		return errors.Join(mustMAC(f.EthernetIn, "in"), mustMAC(f.EthernetOut, "out"))
	}
	return nil
}

func checkBalancer(f Function) error {
	switch {
	case !f.Service.IsValid() || !f.Service.Addr().Is4():
		return errors.New("it needs a service of IPv4")
	case f.Target != 0 && f.Service.Port() == 0:
		return errors.New("with a port of backends it needs one of the service")
	case len(f.Backends) == 0 || len(f.Backends) > MaxBackends:
		return fmt.Errorf("%d backends are not 1 to %d", len(f.Backends), MaxBackends)
	}
	return each(f.Backends, func(b Backend) error {
		if !b.Address.Is4() || b.Path > MaxPath {
			return fmt.Errorf("backend %s is no address of IPv4, or its path has more than 24 bits", b.Address)
		}
		return mustMAC(b.Ethernet, "backend "+b.Address.String())
	})
}

func checkPorts(p Ports) error {
	if p.From > p.To {
		return fmt.Errorf("ports %d to %d are none", p.From, p.To)
	}
	return nil
}

func checkMatch(m Match) error {
	if m.Src.IsValid() && m.Dst.IsValid() && m.Src.Addr().Is4() != m.Dst.Addr().Is4() {
		return fmt.Errorf("%s and %s are not of one family", m.Src, m.Dst)
	}
	if m.VLAN != nil && *m.VLAN > 4094 || m.DSCP != nil && *m.DSCP > 63 {
		return errors.New("a VLAN is 0 to 4094, a DSCP 0 to 63")
	}
	return errors.Join(checkPorts(m.SrcPorts), checkPorts(m.DstPorts))
}

func checkClassifier(c Classifier) error {
	if c.Port == "" || len(c.Rules) == 0 || len(c.Rules) > MaxRules {
		return fmt.Errorf("classifier %q has %d rules: 1 to %d are possible", c.Port, len(c.Rules), MaxRules)
	}
	for _, r := range c.Rules {
		if err := checkPath(r.Path, r.Index); err != nil {
			return err
		}
		if err := checkMatch(r.Match); err != nil {
			return fmt.Errorf("path %d: %w", r.Path, err)
		}
	}
	return nil
}

func checkMetadata(m Metadata) error {
	n := len(m.Bytes)
	switch {
	case m.Type == 1 && n == typeOne:
	case m.Type == 2 && n > 0 && n <= MaxMetadata && n%4 == 0:
	default:
		return fmt.Errorf("path %d: metadata of type %d has %d bytes: type 1 has %d, type 2 a multiple of 4 up to %d", m.Path, m.Type, n, typeOne, MaxMetadata)
	}
	return checkPath(m.Path, 1)
}

func checkPath(path uint32, index uint8) error {
	if path == 0 || path > MaxPath || index == 0 {
		return fmt.Errorf("path %d, index %d: a path is 1 to %d, an index 1 to 255", path, index, MaxPath)
	}
	return nil
}

func (p Plane) checkHop(h Hop) error {
	if err := checkPath(h.Path, h.Index); err != nil {
		return err
	}
	count := 0
	for _, is := range []bool{h.Function != "", h.Remote != "", h.Egress != nil, h.Jump != nil} {
		if is {
			count++
		}
	}
	where := fmt.Sprintf("path %d, index %d", h.Path, h.Index)
	if count != 1 {
		return fmt.Errorf("%s: a hop is one of function, remote, egress and jump", where)
	}
	if _, ok := p.function(h.Function); h.Function != "" && !ok {
		return fmt.Errorf("%s: there is no function %s", where, h.Function)
	}
	if err := p.checkFailure(h); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if h.Remote != "" && !p.hasRemote(h.Remote) {
		return fmt.Errorf("%s: there is no remote %s", where, h.Remote)
	}
	if h.Egress != nil {
		if h.Egress.Port == "" {
			return fmt.Errorf("%s: the egress has no port", where)
		}
		return mustMAC(h.Egress.Ethernet, where)
	}
	return nil
}

// checkFailure checks where packets of a row go other than on.
func (p Plane) checkFailure(h Hop) error {
	f, _ := p.function(h.Function)
	switch h.Fails {
	case "":
	case Drop, Bypass, Reroute:
		if !f.inNode() {
			return errors.New("only nodes are watched")
		}
	default:
		return fmt.Errorf("there is no failure %q: take drop, bypass or reroute", h.Fails)
	}
	if (h.Fails == Reroute) != (h.Instead != nil) {
		return errors.New("to reroute is to go on at another place")
	}
	for _, to := range []*Place{h.Jump, h.Instead} {
		if to == nil {
			continue
		}
		if err := checkPath(to.Path, to.Index); err != nil {
			return err
		}
		if *to == (Place{h.Path, h.Index}) {
			return errors.New("it leads to itself")
		}
	}
	return nil
}

func (p Plane) hasRemote(name string) bool {
	for _, r := range p.Remotes {
		if r.Name == name {
			return true
		}
	}
	return false
}

// checkOnce refuses rows and ports twice.
func (p Plane) checkOnce() error {
	rows, ports := make(map[uint32]bool), make(map[string]string)
	for _, h := range p.Hops {
		key := rowKey(h.Path, h.Index)
		if rows[key] {
			return fmt.Errorf("path %d, index %d: there are two rows", h.Path, h.Index)
		}
		rows[key] = true
	}
	use := func(port, who string) error {
		if port == "" {
			return nil
		}
		if other, ok := ports[port]; ok {
			return fmt.Errorf("%s: port %s is %s's", who, port, other)
		}
		ports[port] = who
		return nil
	}
	for _, c := range p.Classifiers {
		if err := use(c.Port, "classifier "+c.Port); err != nil {
			return err
		}
	}
	for _, f := range p.Functions {
		if err := errors.Join(use(f.In, "function "+f.Name), use(f.Out, "function "+f.Name)); err != nil {
			return err
		}
	}
	return nil
}
