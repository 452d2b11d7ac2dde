package mininet

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
	"sublet/vnet/topology"
)

// plainNodes and plainSwitches are classes that do no more than their kind.
var (
	plainNodes    = []string{"", "Node", "Host"}
	plainSwitches = []string{"", "Switch", "OVSSwitch", "OVSKernelSwitch", "OVSBridge", "LinuxBridge", "UserSwitch"}
	justForwards  = "LinuxRouter" // of Mininet's own example, which routers here do too
	plainLinks    = []string{"", "Link", "TCLink", "TCULink", "OVSLink"}
)

func (r *reader) node(n *yaml.Node) error {
	id, class := word(n, "name"), word(n, "cls")
	if _, twice := r.named[id]; twice || id == "" {
		return r.fail(n, "a node needs a name of its own, and %s is none", short(id))
	}
	name := r.names.Take(topology.FirstLegible(id, "n"))
	r.named[id] = name
	where := "node " + name
	if name != id {
		r.note(n, false, "node "+short(id), "is named %s", name)
	}
	if word(n, "switch") == "true" {
		r.class(n, where, class, plainSwitches)
		r.leaveOut(n, where, "name", "switch", "cls")
		r.at[fmt.Sprintf("switches[%d]", len(r.request.Switches))] = n
		r.request.Switches = append(r.request.Switches, vnet.VirtualSwitch{Name: name})
		return nil
	}
	made := vnet.VirtualNode{Name: name, Address: r.address(n, where)}
	r.leaveOut(n, where, "name", "switch", "cls", "ip", "defaultRoute")
	if via := value(n, "defaultRoute"); via != nil && via.ShortTag() != "!!null" {
		r.routes = append(r.routes, route{via, where})
	}
	if strings.Contains(strings.ToLower(class), "router") {
		r.note(n, class != justForwards, where, "what class %s does is left out: it is a router with static routes", short(class))
		r.at[fmt.Sprintf("routers[%d]", len(r.request.Routers))] = n
		r.request.Routers = append(r.request.Routers, made)
		return nil
	}
	r.class(n, where, class, plainNodes)
	r.at[fmt.Sprintf("nodes[%d]", len(r.request.Nodes))] = n
	r.request.Nodes = append(r.request.Nodes, made)
	return nil
}

// class notes one that does what a request cannot say.
func (r *reader) class(n *yaml.Node, where, class string, plain []string) {
	if !slices.Contains(plain, class) {
		r.note(n, true, where, "what class %s does is left out", short(class))
	}
}

// address reads ip, with or without the length of its prefix.
func (r *reader) address(n *yaml.Node, where string) netip.Addr {
	text := word(n, "ip")
	if text == "" {
		return netip.Addr{}
	}
	bare, _, _ := strings.Cut(text, "/")
	if p, err := netip.ParsePrefix(text); err == nil {
		r.prefix[strings.TrimPrefix(where, "node ")] = p
	}
	a, err := netip.ParseAddr(bare)
	if err != nil || !a.Is4() {
		r.note(value(n, "ip"), true, where, "ip %s is left out: it is no address of IPv4", short(text))
		return netip.Addr{}
	}
	return a
}

func (r *reader) link(n *yaml.Node) error {
	made := vnet.VirtualLink{}
	for i, field := range []string{"node1", "node2"} {
		name, known := r.named[word(n, field)]
		if !known {
			return r.fail(n, "%s of a link is no node: %s", field, short(word(n, field)))
		}
		made.Ends[i] = name
		port := word(n, "port"+strconv.Itoa(i+1))
		if named := word(n, "intfName"+strconv.Itoa(i+1)); vnet.ValidInterface(named) && !r.isSwitch(name) {
			made.Interfaces[i], port = named, "" // as it is there
		} else if named != "" {
			r.note(n, !r.isSwitch(name), "link "+word(n, "node1")+"-"+word(n, "node2"), "interface %s is left out", short(named))
		}
		r.ports[name] = append(r.ports[name], port)
	}
	where := "link " + made.Ends[0] + "-" + made.Ends[1]
	r.class(n, where, word(n, "cls"), plainLinks)
	r.leaveOut(n, where, append([]string{"node1", "node2", "port1", "port2", "cls", "bw", "params1", "params2", "intfName1", "intfName2"}, impaired...)...)
	for d := range made.Bandwidth {
		params := value(n, fmt.Sprint("params", d+1))
		if params == nil {
			params = &yaml.Node{}
		}
		known := append([]string{"bw"}, impaired...)
		if p, err := netip.ParsePrefix(word(params, "ip")); err == nil && !p.IsSingleIP() && !r.isSwitch(made.Ends[d]) {
			made.Addresses[d], known = []netip.Prefix{p}, append(known, "ip")
		}
		r.leaveOut(params, where+", params"+strconv.Itoa(d+1), known...)
		var err error
		if made.Bandwidth[d], err = r.rate(where, params, n); err != nil {
			return err
		}
		if made.Impair[d], err = r.impair(where, params, n); err != nil {
			return err
		}
	}
	r.at[fmt.Sprintf("links[%d]", len(r.request.Links))] = n
	r.request.Links = append(r.request.Links, made)
	return nil
}

// rate is what the first place with a bw says, in Mbit/s; none is best effort.
func (r *reader) rate(where string, places ...*yaml.Node) (vnet.Bandwidth, error) {
	for _, p := range places {
		text := word(p, "bw")
		if text == "" {
			continue
		}
		mbit, err := strconv.ParseFloat(text, 64)
		if err != nil || !(mbit > 0 && mbit <= float64(vnet.MaxRate/vnet.Mbit)) {
			return vnet.Bandwidth{}, r.fail(p, "%s: bw %s is no number of Mbit/s, up to %d", where, short(text), vnet.MaxRate/vnet.Mbit)
		}
		return vnet.Static(vnet.Rate(mbit * float64(vnet.Mbit))), nil
	}
	return vnet.Bandwidth{}, nil
}
