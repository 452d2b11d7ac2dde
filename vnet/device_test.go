package vnet

import (
	"strings"
	"testing"
)

// Devices are on interfaces of their own, under names that no link of a node has.
func TestDevicesAreChecked(t *testing.T) {
	base := func() Substrate {
		return Substrate{
			Hosts:   []SubstrateNode{{Name: "h1", CPU: 4000, Memory: GiB}, {Name: "h2", CPU: 4000, Memory: GiB}},
			Links:   []SubstrateLink{{Name: "h1-h2", Ends: [2]string{"h1", "h2"}, Ports: [2]Port{{Interface: "eth0"}, {Interface: "eth1"}}, Capacity: Gbit}},
			Exits:   []Exit{{Name: "lan", Host: "h1", Interface: "eth2", VLANs: VLANRange{1, 2}, Capacity: Mbit}},
			Devices: []Device{{Name: "tester", Host: "h1", Interface: "eth5"}},
		}
	}
	if err := base().Check(); err != nil {
		t.Fatal(err)
	}
	for says, d := range map[string]Device{
		"eth0 is that of link h1-h2":    {"other", "h1", "eth0"},
		"eth2 is that of exits[0]":      {"other", "h1", "eth2"},
		"eth5 is that of devices[0]":    {"other", "h1", "eth5"},
		`there is no host "h3"`:         {"other", "h3", "eth5"},
		`already a device "tester"`:     {"tester", "h2", "eth5"},
		`"all" is no name of a device`:  {"all", "h2", "eth7"},
		`"../x" is no name of a device`: {"../x", "h2", "eth7"},
		`"a b" is not a device name`:    {"other", "h2", "a b"},
		`"a234567890123456" is no name`: {"a234567890123456", "h2", "eth7"},
	} {
		s := base()
		s.Devices = append(s.Devices, d)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, and not %q", d, err, says)
		}
	}
}

// A device is of one node, which runs on its host.
func TestNodesWithDevicesAreChecked(t *testing.T) {
	for says, nodes := range map[string][]VirtualNode{
		"":                            {{Name: "a", Device: "tester"}, {Name: "b"}},
		"a and b both have device":    {{Name: "a", Device: "tester"}, {Name: "b", Device: "tester"}},
		"the device says where":       {{Name: "a", Device: "tester", Host: "h1"}, {Name: "b"}},
		"leave out device or join":    {{Name: "a", Device: "tester", Join: "any"}, {Name: "b"}},
		`"lo" is no name of a device`: {{Name: "a", Device: "lo"}, {Name: "b"}},
	} {
		r := Request{Tenant: "alice", Network: "net", Topology: Topology{Nodes: nodes}}
		r.Fill()
		if err := r.Check(); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%+v: %v, and not %q", nodes, err, says)
		}
	}
}

// A device may be called as interfaces of links are, where the node has none of that
// name, and links that come later have others.
func TestDevicesNamedLikeLinks(t *testing.T) {
	request := func(device, stated string) Request {
		r := Request{Tenant: "alice", Network: "net", Topology: Topology{
			Nodes: []VirtualNode{{Name: "a", Device: device}, {Name: "b"}, {Name: "c"}},
			Links: []VirtualLink{{Ends: [2]string{"a", "b"}, Interfaces: [2]string{stated, ""}}, {Ends: [2]string{"c", "a"}}},
		}}
		r.Fill()
		return r
	}
	for says, r := range map[string]Request{
		"": request("eth5", ""),
		"links[0].ends[0]: interface eth0 of a is its device":   request("eth0", ""),
		"links[1].ends[1]: interface eth1 of a is its device":   request("eth1", "up"),
		"links[0].ends[0]: interface tester of a is its device": request("tester", "tester"),
	} {
		if err := r.Check(); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%v, and not %q", err, says)
		}
	}
	former := request("eth2", "")
	if err := former.Check(); err != nil {
		t.Fatal(err)
	}
	next := former
	next.Links = append(next.Links[:2:2], VirtualLink{Name: "more", Ends: [2]string{"a", "c"}})
	if got := next.Renumbered(former.Numbering(), former.Topology).Interfaces["more"]; got != [2]string{"eth3", "eth1"} {
		t.Errorf("a link that comes later is at %v", got)
	}
}
