package vnet

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// MinMTU is what every IPv4 host must accept (RFC 791); MaxMTU fills IPv4's
// 16-bit length.
const (
	MinMTU = 576
	MaxMTU = 65535
)

// interfacePattern is what the kernel takes as a device name without
// surprises: at most 15 bytes, no '/', no white space, no '%' (a template).
var interfacePattern = lazy(`^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}$`)

// Check returns a *FieldError for the first thing in a filled substrate that
// breaks a rule: at least one host; names unique among hosts and switches and
// among links; a link's ends exist and differ; capacity in [MinRate, MaxRate],
// share 1 to 100 percent, MTU in [MinMTU, MaxMTU]; ports only at hosts, with
// IPv4 addresses no other host has.
func (s Substrate) Check() error {
	if len(s.Hosts) == 0 {
		return fieldf("hosts", "a substrate needs at least one host: state it as {name: h1, cpu: 4, memory: 4GiB}")
	}
	if n := len(s.Hosts) + len(s.Switches); n > MaxHosts {
		return fieldf("hosts", "%d hosts and switches are more than %d: split the substrate", n, MaxHosts)
	}
	if len(s.Links) > MaxWires {
		return fieldf("links", "%d links are more than %d: split the substrate", len(s.Links), MaxWires)
	}
	if err := checkRate("forwards", s.Forwards, true); err != nil {
		return err
	}
	kinds, err := s.checkNodes()
	if err != nil {
		return err
	}
	if err := s.checkLinks(kinds); err != nil {
		return err
	}
	if err := cmp.Or(s.checkNAT(), s.checkExits(), s.checkJoins(), s.checkDevices()); err != nil {
		return err
	}
	return cmp.Or(s.checkRelays(), s.checkOpenFlow(), s.checkEncapsulations())
}

// checkRelays sees to it that every path among relays can be pinned.
func (s Substrate) checkRelays() error {
	if len(s.Relays) == 0 {
		return nil
	}
	owners := make(map[netip.Addr]string)
	for _, name := range sortedKeys(s.Relays) {
		path, address := key("relays", name), s.Relays[name]
		if !slices.Contains(s.Switches, name) {
			return fieldf(path, "there is no switch %q: relays are switches", name)
		}
		if err := checkAddress(path, address); err != nil {
			return err
		}
		if other, ok := owners[address]; ok {
			return fieldf(path, "%s is the relay address of switch %q already: every switch needs its own", address, other)
		}
		owners[address] = name
	}
	if len(owners) < len(s.Switches) {
		return fieldf("relays", "%d of %d switches have an address: state all switches or none", len(owners), len(s.Switches))
	}
	return s.checkParallel()
}

// checkParallel finds two links between the same relays: which of them a packet
// takes cannot be chosen.
func (s Substrate) checkParallel() error {
	joined := make(map[[2]string]string)
	for i, l := range s.Links {
		if !s.Relays[l.Ends[0]].IsValid() || !s.Relays[l.Ends[1]].IsValid() {
			continue
		}
		pair := [2]string{min(l.Ends[0], l.Ends[1]), max(l.Ends[0], l.Ends[1])}
		if other, ok := joined[pair]; ok {
			return fieldf(at("links", i)+".ends", "%q joins these relays already: state one link with the capacity of both", other)
		}
		joined[pair] = l.Name
	}
	return nil
}

// checkNodes returns "host" or "switch" by name.
func (s Substrate) checkNodes() (map[string]string, error) {
	kinds := make(map[string]string)
	claim := func(path, name, kind string) error {
		if err := checkName(path, name); err != nil {
			return err
		}
		if other, ok := kinds[name]; ok {
			return fieldf(path, "there is a %s %q already: choose another name", other, name)
		}
		kinds[name] = kind
		return nil
	}
	for i, h := range s.Hosts {
		if err := claim(at("hosts", i)+".name", string(h.Name), "host"); err != nil {
			return nil, err
		}
		if err := cmp.Or(h.check(at("hosts", i)), checkPrice(at("hosts", i)+".price", h.Price)); err != nil {
			return nil, err
		}
	}
	for i, name := range s.Switches {
		if err := claim(at("switches", i), name, "switch"); err != nil {
			return nil, err
		}
	}
	return kinds, nil
}

func (h SubstrateNode) check(path string) error {
	switch {
	case h.Name == OperatorName:
		return fieldf(path+".name", "%q is the name in the operator's certificate, which may do everything: choose another name", h.Name)
	case h.CPU < 0, h.CPU > MaxCPU:
		return fieldf(path+".cpu", "%s cores is not between 0 and %s: state what may be leased", h.CPU, MaxCPU)
	case h.Memory < 0, h.Memory > MaxMemory:
		return fieldf(path+".memory", "%s is not between 0 and %s: state what may be leased", h.Memory, MaxMemory)
	}
	if err := checkOptionalName(path+".site", h.Site); err != nil {
		return err
	}
	if err := h.InsideCost.check(path + ".inside_cost"); err != nil {
		return err
	}
	if err := h.TunnelCost.check(path + ".tunnel_cost"); err != nil {
		return err
	}
	if err := checkRate(path+".measured", h.Measured, true); err != nil {
		return err
	}
	if len(h.Machine) > MaxMachine {
		return fieldf(path+".machine", "it is longer than %d bytes", MaxMachine)
	}
	if h.Delay < 0 || h.Delay > MaxDelay {
		return fieldf(path+".delay", "%s is not between 0 and %s", h.Delay, MaxDelay)
	}
	return checkRate(path+".capacity", h.Capacity, true)
}

// MaxMachine bounds the name of what a host was measured on, in bytes.
const MaxMachine = 200

// MaxDelay bounds what a host can have been found to add to a latency.
const MaxDelay = time.Second

func (s Substrate) checkLinks(kinds map[string]string) error {
	names := make(map[string]bool)
	owners := make(map[netip.Addr]string)
	for i, l := range s.Links {
		path := at("links", i)
		if err := l.check(path, kinds); err != nil {
			return err
		}
		if names[l.Name] {
			return fieldf(path+".name", "there is a link %q already: choose another name", l.Name)
		}
		names[l.Name] = true
		for end, port := range l.Ports {
			if err := port.check(key(path+".ports", l.Ends[end]), l.Ends[end], kinds, owners); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l SubstrateLink) check(path string, kinds map[string]string) error {
	for i, end := range l.Ends {
		if kinds[end] == "" {
			return fieldf(at(path+".ends", i), "no host or switch %q: %s", end, suggestEnd(end, kinds))
		}
	}
	if l.Ends[0] == l.Ends[1] {
		return fieldf(at(path+".ends", 1), "both ends are %q: join two different hosts or switches", l.Ends[0])
	}
	if err := checkName(path+".name", l.Name); err != nil {
		return err
	}
	if l.Capacity == 0 {
		return fieldf(path+".capacity", "is missing: state the rate per direction, such as 1Gbit")
	}
	if err := checkRate(path+".capacity", l.Capacity, false); err != nil {
		return err
	}
	if l.Share < 0 || l.Share > 100 {
		return fieldf(path+".share", "%d%% is not between 1%% and 100%%: leave it out for all of the capacity", l.Share)
	}
	if l.MTU != 0 && (l.MTU < MinMTU || l.MTU > MaxMTU) {
		return fieldf(path+".mtu", "%d is not between %d and %d: leave it out for %d", l.MTU, MinMTU, MaxMTU, DefaultMTU)
	}
	return cmp.Or(checkPrice(path+".price", l.Price), checkLatency(path+".latency", l.Latency))
}

func suggestEnd(end string, kinds map[string]string) string {
	if near := Nearest(end, sortedKeys(kinds)); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "state it under hosts or switches"
}

// check checks the port of one end of a link.
func (p Port) check(path, end string, kinds map[string]string, owners map[netip.Addr]string) error {
	if p == (Port{}) {
		return nil
	}
	if kinds[end] != "host" {
		return fieldf(path, "%q is a switch, which needs no port: leave it out", end)
	}
	if p.Interface != "" && !interfacePattern().MatchString(p.Interface) {
		return fieldf(path+".interface", "%q is not a device name: use at most 15 letters, digits, '.', '_' and '-'", p.Interface)
	}
	if !p.Address.IsValid() {
		return nil
	}
	if err := checkAddress(path+".address", p.Address); err != nil {
		return err
	}
	if other, ok := owners[p.Address]; ok && other != end {
		return fieldf(path+".address", "%s is an address of host %q already: every host needs its own", p.Address, other)
	}
	owners[p.Address] = end
	return nil
}
