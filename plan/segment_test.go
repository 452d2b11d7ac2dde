package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// lan is two segments joined by router r, as in the picture; p may only speak
// with r. Everything on the left is on h1, the rest on h3.
//
//	a, b, p - s1 - s2 - r - s3 - c
//	           \___/
func lan() vnet.Lease {
	link := func(a, b string) vnet.VirtualLink { return vnet.VirtualLink{Name: a + "-" + b, Ends: [2]string{a, b}} }
	again := vnet.VirtualLink{Name: "again", Ends: [2]string{"s1", "s2"}}
	l := vnet.Lease{
		Request: vnet.Request{Network: "lan", Tenant: "alice", Topology: vnet.Topology{
			Nodes:    []vnet.VirtualNode{{Name: "a"}, {Name: "b"}, {Name: "p"}, {Name: "c"}},
			Routers:  []vnet.VirtualNode{{Name: "r", Protocol: vnet.ProtocolStatic}},
			Switches: []vnet.VirtualSwitch{{Name: "s1", Ports: map[string]vnet.SwitchPort{"p-s1": {To: []string{"s1-s2"}}}}, {Name: "s2"}, {Name: "s3"}},
			Links:    []vnet.VirtualLink{link("a", "s1"), link("b", "s1"), link("p", "s1"), link("s1", "s2"), link("s2", "r"), link("r", "s3"), link("c", "s3"), again},
		}},
		State: vnet.Running, Stage: -1,
		Mapping: vnet.Mapping{
			Nodes: map[string]vnet.HostID{"a": "h2", "b": "h2", "p": "h2", "s1": "h2", "s2": "h3", "r": "h3", "s3": "h3", "c": "h3"},
			Links: map[string]vnet.Path{"s1-s2": {"c"}, "again": {"c"}},
		},
		Addresses: make(map[string]netip.Addr),
		VNIs:      map[string][]vnet.VNI{"s1-s2": {1}, "again": {2}},
	}
	for i, name := range []string{"a", "b", "p", "r"} {
		l.Addresses[name] = netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
	}
	l.Addresses["c"] = netip.MustParseAddr("10.0.1.1")
	return l
}

func TestCompileSwitches(t *testing.T) {
	hosts, err := Compile(substrate, []vnet.Lease{lan()})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, h := range substrate.Hosts {
		fmt.Fprintf(&text, "host %s\n%s", h.Name, hosts[h.Name])
	}
	golden(t, "switches", text.String())
}

// Switches of the engine have ports as capable as their links, or less.
func TestCompileEngineSwitches(t *testing.T) {
	l := lan()
	for i := range l.Request.Switches {
		l.Request.Switches[i].Kind = vnet.SwitchEngine
	}
	l.Request.Switches[0] = vnet.VirtualSwitch{
		Name: "s1", Kind: vnet.SwitchEngine, CPU: 500,
		Ports: map[string]vnet.SwitchPort{"p-s1": {To: []string{"s1-s2"}, PortEngineOptions: vnet.PortEngineOptions{In: 5 * vnet.Mbit, Out: 8 * vnet.Mbit, Scheduler: "sp", Priority: 2}}},
		SwitchEngineOptions: vnet.SwitchEngineOptions{
			Scheduler: "lqf", Buffer: 64 * vnet.KiB,
			Crosspoints: []vnet.Crosspoint{{From: "a-s1", To: "b-s1", Manager: "codel"}, {From: "a-s1", To: "s1-s2", Buffer: 128 * vnet.KiB}},
		},
	}
	l.Rates = map[string][2]vnet.Rate{"a-s1": {10 * vnet.Mbit, 20 * vnet.Mbit}, "p-s1": {6 * vnet.Mbit, 6 * vnet.Mbit}}
	hosts, err := Compile(substrate, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, h := range substrate.Hosts {
		for _, item := range hosts[h.Name].Items() {
			if k := item.Kind(); k == KindVxSwitch || k == KindVxSwitchPort || k == KindVxLink || k == KindSwitch {
				fmt.Fprintf(&text, "%s %s %s\n", h.Name, k, item)
			}
		}
	}
	golden(t, "vxswitches", text.String())
}

// Tables lead to interfaces, and slices have the switch's settings unless they state
// their own. On the way between two plans only slices of both stay.
func TestSlices(t *testing.T) {
	l := lan()
	l.Request.Switches[0] = vnet.VirtualSwitch{Name: "s1", Kind: vnet.SwitchEngine, SwitchEngineOptions: vnet.SwitchEngineOptions{
		Lookup: vnet.LookupClassifier, Table: []vnet.SwitchRow{{Protocol: "udp", To: []string{"a-s1", "b-s1"}}}, Lend: 50,
		Slices: []vnet.SwitchSlice{{Name: "x", Share: 10, Claim: vnet.SwitchClaim{VLAN: 3}, Lookup: vnet.LookupStatic, Table: []vnet.SwitchRow{{MAC: "02:00:00:00:00:09", To: []string{"b-s1"}}}}},
	}}
	hosts, err := Compile(substrate, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	var found *Engine
	for _, h := range hosts {
		for _, item := range h.Items() {
			if s, ok := item.(Switch); ok && s.Switch == "s1" {
				found = s.Engine
			}
		}
	}
	if found == nil || len(found.Slices) != 1 || len(found.Table[0].To) != 2 || strings.Contains(found.Table[0].To[0], "s1") {
		t.Fatalf("planned %v", found)
	}
	if x := found.Slices[0]; x.Buffer != found.Buffer || x.Scheduler != found.Scheduler || x.Manager != found.Manager || x.Table[0].To[0] != found.Table[0].To[1] {
		t.Errorf("slice %v of %v", x, found)
	}
	if text := found.String(); !strings.Contains(text, "lend 50%") || !strings.Contains(text, "slice x (vlan 3) share 10%") || !strings.Contains(text, "[proto=udp to ") {
		t.Error(text)
	}
	a := Switch{Engine: &Engine{Slices: []Slice{{Name: "x", Buffer: 5}, {Name: "y"}}}}
	b := Switch{Engine: &Engine{Slices: []Slice{{Name: "z"}, {Name: "x", Buffer: 3}}}}
	if got := a.Meet(b).(Switch).Engine.Slices; len(got) != 1 || got[0].Buffer != 3 || a.Engine.Slices[0].Buffer != 5 {
		t.Errorf("they meet in %v", got)
	}
}

// On the way between two plans an engine has the less of both.
func TestEnginesMeet(t *testing.T) {
	engine := func(e Engine) Switch { return Switch{Switch: "s", Type: vnet.SwitchEngine, Engine: &e} }
	a := engine(Engine{Buffer: 64, Crosspoints: []Crosspoint{{From: "eth0", To: "eth1", Buffer: 200}, {From: "eth1", To: "eth0", Buffer: 10}}})
	b := engine(Engine{Buffer: 100, Crosspoints: []Crosspoint{{From: "eth0", To: "eth1", Buffer: 150}}})
	if got := a.Meet(b).(Switch).Engine; got.Buffer != 64 || got.Crosspoints[0].Buffer != 150 || got.Crosspoints[1].Buffer != 10 || a.Engine.Crosspoints[0].Buffer != 200 {
		t.Errorf("%v and %v meet in %v", a, b, got)
	}
	p, q := SwitchPort{Engine: &EnginePort{In: 5}}, SwitchPort{Engine: &EnginePort{In: 7, Out: 3}}
	if got := p.Meet(q).(SwitchPort).Engine; got.In != 5 || got.Out != 3 || p.Engine.Out != 0 {
		t.Errorf("ports meet in %v", got)
	}
}

func TestSubnet(t *testing.T) {
	for _, c := range []struct{ natives, others, want string }{
		{"10.0.0.1 10.0.0.9", "", "10.0.0.0/24"},
		{"10.0.0.1 10.0.1.9", "10.0.4.1", "10.0.0.0/23"},
		{"10.0.0.255", "", "10.0.0.0/23"},
		{"10.0.0.1", "10.0.0.9", "invalid Prefix"},
		{"10.0.0.1 192.168.0.1", "11.0.0.1", "invalid Prefix"},
		{"", "10.0.0.1", "invalid Prefix"},
	} {
		parse := func(s string) (list []netip.Addr) {
			for _, f := range strings.Fields(s) {
				list = append(list, netip.MustParseAddr(f))
			}
			return list
		}
		if got := Subnet(parse(c.natives), parse(c.others)).String(); got != c.want {
			t.Errorf("%q beside %q: %s, want %s", c.natives, c.others, got, c.want)
		}
	}
}

func TestHardwareText(t *testing.T) {
	for _, bad := range []string{"", "00:00:00:00:00", "00-00-00-00-00-00", "0g:00:00:00:00:00"} {
		if h := new(Hardware); h.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is read as %s", bad, h)
		}
	}
	want := Port{Namespace: "a.b.c", Interface: "eth0"}.Hardware()
	text, _ := want.MarshalText()
	if got := new(Hardware); got.UnmarshalText(text) != nil || *got != want || want[0]&3 != 2 {
		t.Errorf("%s is read as %s", want, got)
	}
}

// A stream that is to fill a link asks no more than the ports of its switch
// take and give.
func TestStreamsKeepToPorts(t *testing.T) {
	l := lan()
	l.Rates = make(map[string][2]vnet.Rate)
	for _, link := range l.Request.Links {
		l.Rates[link.Name] = [2]vnet.Rate{100, 100}
	}
	l.Request.Switches[0].Kind = vnet.SwitchEngine
	l.Request.Switches[0].Ports = map[string]vnet.SwitchPort{"a-s1": {PortEngineOptions: vnet.PortEngineOptions{In: 20}}, "b-s1": {PortEngineOptions: vnet.PortEngineOptions{Out: 30}}}
	streams, err := Streams(substrate, l)
	if err != nil {
		t.Fatal(err)
	}
	rates := make(map[string]vnet.Rate)
	for _, s := range streams {
		rates[s.From.Link] = s.Rate
		if s.To.Link == "b-s1" && s.Rate > 30 {
			t.Errorf("a stream of %d goes to b, whose port gives 30", s.Rate)
		}
	}
	if rates["a-s1"] != 20 || rates["b-s1"] != 100 {
		t.Errorf("streams of a and b have %v", rates)
	}
}

// A stream is bounded in latency by the sum of the links it crosses, if each has
// a bound.
func TestStreamsAddUpLatencies(t *testing.T) {
	for _, without := range []string{"", "a-s1"} {
		l := lan()
		l.Rates = make(map[string][2]vnet.Rate)
		bound := make(map[string]time.Duration)
		for i := range l.Request.Links {
			link := &l.Request.Links[i]
			l.Rates[link.Name] = [2]vnet.Rate{100, 100}
			if link.Name != without {
				link.Latency = time.Duration(i+1) * time.Millisecond
			}
			bound[link.Name] = link.Latency
		}
		streams, err := Streams(substrate, l)
		if err != nil {
			t.Fatal(err)
		}
		judged := 0
		for _, s := range streams {
			ends := bound[s.From.Link] + bound[s.To.Link]
			if lacks := s.From.Link == without || s.To.Link == without; lacks != (s.Latency == 0) || !lacks && s.Latency < ends {
				t.Errorf("without %q, from %s to %s: %s, of %s at its ends", without, s.From.Link, s.To.Link, s.Latency, ends)
			}
			if s.Latency > 0 {
				judged++
			}
		}
		if judged == 0 && without == "" {
			t.Error("no stream has a bound")
		}
	}
}

// The link of a fast station among slow ones is asked for its minimum, if a
// slow one takes that; not for less.
func TestStreamsProveMinima(t *testing.T) {
	for _, c := range []struct {
		least vnet.Rate
		want  vnet.Rate // of the fast one's stream; 0: none
	}{{50, 100}, {100, 100}, {101, 0}} {
		l := lan()
		l.Rates = make(map[string][2]vnet.Rate)
		for i, link := range l.Request.Links {
			l.Rates[link.Name] = [2]vnet.Rate{100, 100}
			if link.Name == "a-s1" {
				l.Rates[link.Name] = [2]vnet.Rate{400, 400}
				l.Request.Links[i].Bandwidth[vnet.Forward].Min = c.least
			}
		}
		streams, err := Streams(substrate, l)
		if err != nil {
			t.Fatal(err)
		}
		have := vnet.Rate(0)
		for _, s := range streams {
			if s.From.Link == "a-s1" {
				have = s.Rate
				if s.Fills {
					t.Errorf("a stream of %d fills a link of 400", s.Rate)
				}
			} else if !s.Fills {
				t.Errorf("the stream from %s does not fill its link", s.Ends[0])
			}
		}
		if have != c.want {
			t.Errorf("minimum %d: a stream of %d, want %d", c.least, have, c.want)
		}
	}
}
