package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// describe adds to a substrate:
//
//	host NAME [SITE]                                 4 cores, 4 GiB
//	switch NAME
//	relays                                           all switches so far
//	diamonds N CAPACITY                              two ways from each of s0 to sN to the next
//	link END END CAPACITY [share=N] [latency=D]      Mbit/s
//	remove NAME...                                   hosts and links
func describe(s *vnet.Substrate, words []string) {
	switch words[0] {
	case "remove":
		s.Hosts = slices.DeleteFunc(slices.Clone(s.Hosts), func(h vnet.SubstrateNode) bool { return slices.Contains(words[1:], string(h.Name)) })
		s.Links = slices.DeleteFunc(slices.Clone(s.Links), func(l vnet.SubstrateLink) bool { return slices.Contains(words[1:], l.Name) })
	case "host":
		h := vnet.SubstrateNode{Name: vnet.HostID(words[1]), CPU: 4 * vnet.Core, Memory: 4 * vnet.GiB}
		if len(words) > 2 {
			h.Site = words[2]
		}
		s.Hosts = append(s.Hosts, h)
	case "switch":
		s.Switches = append(s.Switches, words[1])
	case "relays":
		s.Relays = make(map[string]netip.Addr)
		for i, name := range s.Switches {
			s.Relays[name] = netip.AddrFrom4([4]byte{10, 255, 0, byte(i + 1)})
		}
	case "diamonds":
		describeDiamonds(s, words[1], words[2])
	case "link":
		l := vnet.SubstrateLink{
			Name: words[1] + "-" + words[2], Ends: [2]string{words[1], words[2]},
			Capacity: mbit(words[3]), Latency: time.Millisecond,
		}
		for _, option := range words[4:] {
			name, value, _ := strings.Cut(option, "=")
			if name == "share" {
				l.Share, _ = strconv.Atoi(value)
			} else {
				l.Latency, _ = vnet.ParseDuration(value)
			}
		}
		for end := range l.Ends {
			n := byte(2*len(s.Links) + end)
			l.Ports[end] = vnet.Port{Interface: fmt.Sprintf("p%d", len(s.Links)), Address: netip.AddrFrom4([4]byte{192, 168, 0, n})}
		}
		s.Links = append(s.Links, l)
	}
}

func describeDiamonds(s *vnet.Substrate, n, capacity string) {
	most, err := strconv.Atoi(n)
	must(err)
	describe(s, []string{"switch", "s0"})
	for i := range most {
		from, to := fmt.Sprint("s", i), fmt.Sprint("s", i+1)
		describe(s, []string{"switch", to})
		for _, way := range []string{"a", "b"} {
			middle := fmt.Sprint(way, i)
			describe(s, []string{"switch", middle})
			describe(s, []string{"link", from, middle, capacity})
			describe(s, []string{"link", middle, to, capacity})
		}
	}
}

// parseRequest reads
//
//	TENANT/NETWORK [start=+D] [before=+D] [for=D] [movable] [negotiable=AXIS,...] PART... [stage=NAME:D PART...]...
//
// where a PART is a node (n, n@host, n@@site, n@host@site, n*CORES, n!exclusive@host), a link a-b=RATES[~LATENCY], or -name, which goes.
// RATES are MIN..MAX, MIN.., ..MAX, STATIC or none, in Mbit/s, both directions,
// or two of them with '/' between.
func parseRequest(now time.Time, words []string) vnet.Request {
	id := parseID(words[0])
	r := vnet.Request{Tenant: id.Tenant, Network: id.Network}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "start":
			d, err := time.ParseDuration(value)
			must(err)
			r.Start = now.Add(d)
		case "before":
			d, err := time.ParseDuration(value)
			must(err)
			r.Before = now.Add(d)
		case "movable":
			r.Movable = true
		case "negotiable":
			for _, axis := range strings.Split(value, ",") {
				r.Negotiable = append(r.Negotiable, vnet.Axis(axis))
			}
		case "for":
			d, err := vnet.ParseDuration(value)
			must(err)
			r.For = d
		case "stage":
			stage, after, _ := strings.Cut(value, ":")
			s := vnet.Stage{Name: stage, OnCommand: after == "command", Links: make(map[string][2]vnet.Bandwidth)}
			if !s.OnCommand {
				d, err := vnet.ParseDuration(after)
				must(err)
				s.After = d
			}
			r.Stages = append(r.Stages, s)
		default:
			addPart(&r, word)
		}
	}
	return r
}

func addPart(r *vnet.Request, word string) {
	top := &r.Topology
	var stage *vnet.Stage
	if n := len(r.Stages); n > 0 {
		stage = &r.Stages[n-1]
		top = &stage.Add
	}
	if gone, ok := strings.CutPrefix(word, "-"); ok {
		stage.Remove = append(stage.Remove, gone)
		return
	}
	name, rates, isLink := strings.Cut(word, "=")
	if !isLink {
		top.Nodes = append(top.Nodes, parseNode(word))
		return
	}
	l := parseLink(name, rates)
	if _, exists := r.Union().Link(name); exists {
		stage.Links[name] = l.Bandwidth
		return
	}
	top.Links = append(top.Links, l)
}

func parseNode(word string) vnet.VirtualNode {
	name, place, _ := strings.Cut(word, "@")
	n := vnet.VirtualNode{CPU: 100}
	if short, cores, ok := strings.Cut(name, "*"); ok {
		name = short
		n.CPU, _ = vnet.ParseCPU(cores)
	}
	n.Name, n.Exclusive = strings.TrimSuffix(name, "!exclusive"), strings.HasSuffix(name, "!exclusive")
	host, site, _ := strings.Cut(place, "@")
	n.Host, n.Site = vnet.HostID(host), site
	return n
}

func parseLink(name, text string) vnet.VirtualLink {
	a, b, _ := strings.Cut(name, "-")
	b, _, _ = strings.Cut(b, "-")
	l := vnet.VirtualLink{Name: name, Ends: [2]string{a, b}}
	rates, latency, bounded := strings.Cut(text, "~")
	if bounded {
		l.Latency, _ = vnet.ParseDuration(latency)
	}
	forward, reverse, asymmetric := strings.Cut(rates, "/")
	if !asymmetric {
		reverse = forward
	}
	l.Bandwidth = [2]vnet.Bandwidth{parseBandwidth(forward), parseBandwidth(reverse)}
	return l
}

func parseBandwidth(text string) vnet.Bandwidth {
	low, high, interval := strings.Cut(text, "..")
	switch {
	case text == "":
		return vnet.Bandwidth{}
	case !interval:
		return vnet.Static(mbit(low))
	case high == "":
		return vnet.Bandwidth{Min: mbit(low), Max: vnet.Unbounded}
	case low == "":
		return vnet.Bandwidth{Max: mbit(high)}
	}
	return vnet.Bandwidth{Min: mbit(low), Max: mbit(high)}
}

func mbit(text string) vnet.Rate {
	n, err := strconv.ParseFloat(text, 64)
	must(err)
	return vnet.Rate(n * float64(vnet.Mbit))
}

func parseID(text string) vnet.LeaseID {
	tenant, network, _ := strings.Cut(text, "/")
	return vnet.LeaseID{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(network)}
}

// memoryStore keeps a state as text, as a store does.
type memoryStore struct {
	substrate, counters []byte
	leases              map[vnet.LeaseID][]byte
	plans               map[vnet.HostID][]byte
	records             map[uint64]vnet.Record
}

func (m *memoryStore) save(c Changes) error {
	if m.leases == nil {
		m.leases, m.plans = make(map[vnet.LeaseID][]byte), make(map[vnet.HostID][]byte)
		m.records = make(map[uint64]vnet.Record)
	}
	var failed error
	text := func(x any) []byte {
		b, err := json.Marshal(x)
		failed = errors.Join(failed, err)
		return b
	}
	m.counters = text(c.Counters)
	if c.Substrate != nil {
		m.substrate = text(c.Substrate)
	}
	for _, r := range c.Records {
		m.records[r.Serial] = r
	}
	for _, l := range c.Leases {
		m.leases[l.ID()] = text(l)
	}
	for _, p := range c.Plans {
		m.plans[p.Host] = text(p)
	}
	for _, id := range c.NoLeases {
		delete(m.leases, id)
	}
	for _, host := range c.NoPlans {
		delete(m.plans, host)
	}
	return failed
}

func (m *memoryStore) load() (State, error) {
	s := State{Plans: make(map[vnet.HostID]plan.Host)}
	failed := errors.Join(json.Unmarshal(m.substrate, &s.Substrate), json.Unmarshal(m.counters, &s.Counters))
	for _, text := range m.leases {
		var l vnet.Lease
		failed = errors.Join(failed, json.Unmarshal(text, &l))
		s.Leases = append(s.Leases, l)
	}
	for host, text := range m.plans {
		var p plan.Host
		failed = errors.Join(failed, json.Unmarshal(text, &p))
		s.Plans[host] = p
	}
	return s, failed
}
