package vxdl

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

func read(t *testing.T, file string, strict bool) (vnet.Request, string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, notes, err := Parse(file, text, strict)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range notes {
		lines = append(lines, n.String())
	}
	return r, strings.Join(lines, "\n")
}

func wantNotes(t *testing.T, got string, want ...string) {
	t.Helper()
	if got != strings.Join(want, "\n") {
		t.Errorf("notes are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func both(b vnet.Bandwidth) [2]vnet.Bandwidth { return [2]vnet.Bandwidth{b, b} }

// Guarantees, a router and two stages.
func TestStages(t *testing.T) {
	got, notes := read(t, "testdata/stages.xml", true)
	want := vnet.Request{
		Network: "night-copy", Tenant: "alice",
		Start: time.Date(2027, 3, 1, 19, 0, 0, 0, time.UTC), For: 6 * time.Hour,
		Topology: vnet.Topology{
			Nodes:   []vnet.VirtualNode{{Name: "store", CPU: 2 * vnet.Core, Memory: 2e9}},
			Routers: []vnet.VirtualNode{{Name: "gate", Site: "rack-a", Protocol: vnet.ProtocolOSPF}},
			Links: []vnet.VirtualLink{
				{
					Name: "steady", Ends: [2]string{"store", "gate"}, Latency: 10 * time.Millisecond,
					Bandwidth: [2]vnet.Bandwidth{{Min: 100 * vnet.Mbit, Max: vnet.Unbounded}, vnet.Static(20 * vnet.Mbit)},
				},
				{Name: "burst", Ends: [2]string{"store", "gate"}, Bandwidth: both(vnet.Static(100 * vnet.Mbit))},
			},
		},
		Stages: []vnet.Stage{
			{Name: "evening", Links: map[string][2]vnet.Bandwidth{"burst": both(vnet.Static(100 * vnet.Mbit))}},
			{Name: "night", After: time.Hour, Links: map[string][2]vnet.Bandwidth{"burst": both(vnet.Static(400 * vnet.Mbit))}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	wantNotes(t, notes, "33:7: bandwidth: no reverse: it is taken to be the same as forward")
}

// An array, and a choice of sizes.
func TestArray(t *testing.T) {
	r, notes := read(t, "testdata/array.xml", true)
	for i, want := range []string{"pool-0", "pool-1", "pool-2", "pool-3", "head"} {
		if n := r.Nodes[i]; n.Name != want || i < 4 && (n.CPU != vnet.Core || n.Site != "west") {
			t.Errorf("node %d is %+v, want %s with the smallest choice", i, n, want)
		}
	}
	for i, l := range r.Links {
		if want := r.Nodes[i].Name; l.Ends != [2]string{want, "head"} || l.Name != "l-"+want[5:] || !l.BestEffort() {
			t.Errorf("link %d is %+v", i, l)
		}
	}
	if len(r.Links) != 4 || r.For != 240*time.Hour {
		t.Errorf("%d links for %v", len(r.Links), r.For)
	}
	wantNotes(t, notes,
		"9:29: cores: the smallest of the alternatives is reserved",
		"5:5: vArray pool: expanded to 4 members")
}

// An access point with a NAT rule, an allowed maximum and no end.
func TestAccessPoint(t *testing.T) {
	r, notes := read(t, "testdata/access-point.xml", true)
	want := vnet.VirtualNode{Name: "edge", Labels: map[string]string{"vxdl:kind": "vAccessPoint", "vxdl:region": "1"}}
	if !reflect.DeepEqual(r.Nodes[1], want) {
		t.Errorf("got %+v, want %+v", r.Nodes[1], want)
	}
	if r.Links[0].Bandwidth != both(vnet.Bandwidth{Max: 50 * vnet.Mbit}) {
		t.Errorf("bandwidth is %v", r.Links[0].Bandwidth)
	}
	wantNotes(t, notes,
		"2:3: virtualInfrastructure front-door: no totalTime: the lease is open-ended, until released",
		"8:7: nat: of vAccessPoint edge is not built: it becomes a plain node, in which you may set it up, or a switch that leads to an exit (--access ID=EXIT:RATE)",
		"14:7: bandwidth: no reverse: it is taken to be the same as forward")
}

// An access point that says by which exit becomes a switch with access to it, and is
// written as one again. So does one that is led there afterwards.
func TestAccessPointOfAnExit(t *testing.T) {
	text, err := os.ReadFile("testdata/access-point.xml")
	if err != nil {
		t.Fatal(err)
	}
	tagged := strings.Replace(string(text), "<region>1</region>", "<tag><key>sublet:access</key><value>campus</value></tag>", 1)
	tagged = strings.Replace(tagged, "<max>50</max>", "<min>5</min><max>50</max>", 1)
	r, _, err := Parse("f", []byte(tagged), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Switches) != 1 || !reflect.DeepEqual(r.Switches[0], vnet.VirtualSwitch{Name: "edge", Kind: vnet.SwitchKernel, Access: "campus"}) || len(r.Nodes) != 1 {
		t.Errorf("switches %+v, nodes %+v", r.Switches, r.Nodes)
	}
	written, notes := Format(r)
	back, _, err := Parse("f", written, true)
	if err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("there and back: %v, %v\n%+v\n%+v", err, notes, back, r)
	}
	plain, _, err := Parse("f", text, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := Lead(&plain, "edge", "campus", 20*vnet.Mbit); err != nil {
		t.Fatal(err)
	}
	if plain.Switches[0].Access != "campus" || plain.Links[0].Bandwidth != both(vnet.Bandwidth{Min: 20 * vnet.Mbit, Max: 50 * vnet.Mbit}) {
		t.Errorf("%+v", plain.Topology)
	}
	if err := Lead(&plain, "web", "campus", vnet.Mbit); err == nil || !strings.Contains(err.Error(), "no vAccessPoint \"web\"") {
		t.Errorf("a node that is none: %v", err)
	}
}

// What of machines, devices and ways out is not written is told.
func TestWhatLeadsOutIsNotLostInSilence(t *testing.T) {
	ten := both(vnet.Static(10 * vnet.Mbit))
	r := vnet.Request{Network: "net", Tenant: "alice", Topology: vnet.Topology{
		Nodes:    []vnet.VirtualNode{{Name: "laptop", Join: "any"}, {Name: "probe", Device: "tester"}, {Name: "web"}},
		Routers:  []vnet.VirtualNode{{Name: "out", NAT: "campus", Publish: []vnet.Publish{{Outside: 8080, Node: "web", Port: 80}}}},
		Switches: []vnet.VirtualSwitch{{Name: "office", Access: "lan", VLAN: 117}},
	}}
	for _, end := range []string{"laptop", "probe", "web"} {
		r.Links = append(r.Links, vnet.VirtualLink{Ends: [2]string{end, "office"}, Bandwidth: ten})
	}
	r.Links = append(r.Links, vnet.VirtualLink{Ends: [2]string{"web", "out"}, Bandwidth: ten})
	r.Fill()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	_, notes := Format(r)
	lost := make(map[string]bool)
	for _, n := range notes {
		if n.Lost {
			lost[n.Where+": "+n.Text] = true
		}
	}
	for _, want := range []string{
		"node laptop: that a machine joins as it (any) is not written: VXDL has no word for it",
		"node probe: its device tester is not written: VXDL has no word for it",
		"router out: its way out campus and published ports are not written: VXDL 2.0 has no translation of addresses",
		"switch office: its VLAN 117 is not written, but one is chosen: VXDL has no word for it",
	} {
		if !lost[want] {
			t.Errorf("%q is not among %v", want, lost)
		}
	}
	if len(lost) != 4 {
		t.Errorf("lost %v", lost)
	}
}

func TestAurora(t *testing.T) {
	got, notes := read(t, "testdata/aurora.xml", true)
	band := both(vnet.Bandwidth{Min: 5 * vnet.Mbit, Max: 10 * vnet.Mbit})
	image := map[string]string{"vxdl:image": "small.img"}
	want := vnet.Request{
		Network: "ring", Tenant: "bob", For: 240 * time.Hour,
		Topology: vnet.Topology{
			Nodes:   []vnet.VirtualNode{{Name: "vm1", Memory: 256e6, Labels: image}, {Name: "vm2", Labels: image}},
			Routers: []vnet.VirtualNode{{Name: "r1", Protocol: vnet.ProtocolNone}},
			Links: []vnet.VirtualLink{
				{Name: "one", Ends: [2]string{"vm1", "r1"}, Bandwidth: band}, {Name: "two", Ends: [2]string{"vm2", "r1"}},
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	wantNotes(t, notes,
		"9:5: interface: names and addresses of interfaces are not kept: they are eth0, eth1, ... in order of links",
		"13:5: software_list: software is not installed",
		"15:20: controlPlane: no OpenFlow controller is attached: the table is left to the tenant (protocol none)",
		"3:3: controllerList mine: a tenant's OpenFlow controller is not attached")
}

func TestOlder(t *testing.T) {
	r, notes := read(t, "testdata/older.xml", false)
	if n := r.Nodes[0]; r.Network != "old-times" || n.Name != "node-one" || n.Site != "lab-example" || n.CPU != 2*vnet.Core {
		t.Errorf("got %+v", r)
	}
	wantNotes(t, notes,
		`3:3: virtualInfrastructure old times: id "old times" is written "old-times": names are letters, digits, '-' and '_', at most 40`,
		"6:5: vNode node one: id as an attribute is an older form of VXDL, read as the element id",
		"8:7: software: unknown here in vNode node one, ignored",
		"10:7: security: unknown here in vNode node one, ignored",
		`6:5: vNode node one: location "lab.example" is written "lab-example": names are letters, digits, '-' and '_', at most 40`,
		"9:12: cores: a plain number is an older form of VXDL, read as simple",
		`6:5: vNode node one: id "node one" is written "node-one": names are letters, digits, '-' and '_', at most 40`)
	text, err := os.ReadFile("testdata/older.xml")
	if err != nil {
		t.Fatal(err)
	}
	_, list, err := Parse("f", text, false)
	if err != nil || list[2].Raw != "<software>solver</software>" {
		t.Errorf("raw XML is %q, %v", list[2].Raw, err)
	}
	if _, _, err := Parse("f", text, true); err == nil || !strings.HasPrefix(err.Error(), "f:6:5: vNode node one: has an attribute id") {
		t.Errorf("strict reading says %v", err)
	}
}

func TestStorageIsRefused(t *testing.T) {
	text, err := os.ReadFile("testdata/storage.xml")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Parse("f", text, false)
	if want := "f:5:5: vStorage disk: storage is not leased by Sublet: remove it and its links"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
