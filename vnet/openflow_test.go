package vnet

import (
	"strings"
	"testing"
	"time"
)

func openFlowRequest() Request {
	r := Request{Network: "n", Topology: Topology{
		Nodes:    []VirtualNode{{Name: "a"}, {Name: "ctl"}},
		Switches: []VirtualSwitch{{Name: "s", Kind: SwitchOpenFlow, OpenFlowOptions: OpenFlowOptions{Controllers: []string{"tcp:ctl:6653"}}}},
		Links:    []VirtualLink{{Name: "c", Ends: [2]string{"s", "ctl"}, Control: true}, {Name: "as", Ends: [2]string{"a", "s"}}},
	}}
	r.Fill()
	return r
}

func TestControllerTargets(t *testing.T) {
	for text, want := range map[string]string{
		"tcp:ctl:6653": "ctl", "tcp:10.0.0.1:1": "10.0.0.1", "tcp:[2001:db8::1]:6653": "2001:db8::1", "ptcp:6653": "", "ssl:ctl:6653": "ctl", "pssl:6653": "",
	} {
		if host, port, ok := ControllerTarget(text); !ok || host != want || port == 0 {
			t.Errorf("%s is %q, %d, %v", text, host, port, ok)
		}
	}
	for _, text := range []string{"", "tcp", "tcp:", "tcp:ctl", "tcp::6653", "tcp:ctl:0", "tcp:ctl:65536", "tcp:ctl:+1", "tcp:ctl:01", "tcp:a b:1", "tcp:-x:1", "ptcp:", "ptcp:x", "ptcp:1.2.3.4:6653", "tls:ctl:6653", "ssl:6653", "unix:/x:1", "tcp:../x:1", "tcp:[::1:5"} {
		if host, port, ok := ControllerTarget(text); ok {
			t.Errorf("%q is taken as %q, %d", text, host, port)
		}
	}
}

func TestOpenFlowSwitchesAreChecked(t *testing.T) {
	if err := openFlowRequest().Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(r *Request){
		"needs a controller":        func(r *Request) { r.Switches[0].Controllers = nil },
		"there is no node \"ctrl\"": func(r *Request) { r.Switches[0].Controllers[0] = "tcp:ctrl:6653" },
		"is spoken to over TLS":     func(r *Request) { r.Switches[0].Controllers[0] = "ssl:ctl:6653" },
		"own address nobody else":   func(r *Request) { r.Switches[0].Controllers[0] = "tcp:127.0.0.1:2379" },
		"is nobody's":               func(r *Request) { r.Switches[0].Controllers[0] = "tcp:0.0.0.0:6653" },
		"no single machine's":       func(r *Request) { r.Switches[0].Controllers[0] = "tcp:255.255.255.255:6653" },
		"is not routed":             func(r *Request) { r.Switches[0].Controllers[0] = "tcp:[fe80::1%eth0]:6653" },
		"is no controller":          func(r *Request) { r.Switches[0].Controllers[0] = "ctl" },
		"is there already":          func(r *Request) { r.Switches[0].Controllers = []string{"ptcp:1", "ptcp:1"} },
		"use process or kernel":     func(r *Request) { r.Switches[0].Datapath = "user" },
		"is no datapath":            func(r *Request) { r.Switches[0].Datapath = "dpdk" },
		"use secure":                func(r *Request) { r.Switches[0].Fail = "open" },
		"use drop or controller":    func(r *Request) { r.Switches[0].Miss = "flood" },
		"is not between 1 and 254":  func(r *Request) { r.Switches[0].Tables = 255 },
		"is not between 0s and 1s":  func(r *Request) { r.Switches[0].MeterHold = 2 * time.Second },
		"is not between 1 and 8":    func(r *Request) { r.Switches[0].Auxiliary = 9 },
		"the switch connects to":    func(r *Request) { r.Switches[0].Auxiliary, r.Switches[0].Controllers = 1, []string{"ptcp:6653"} },
		"fewer than 8 tables":       func(r *Request) { r.Switches[0].Miss, r.Switches[0].Entries = "controller", 7 },
		"entries have timeouts":     func(r *Request) { r.Switches[0].Ageing = MinAgeing },
		"what ports do":             func(r *Request) { r.Switches[0].Ports = map[string]SwitchPort{"as": {MACs: 3}} },
		"is for kind: vxswitch":     func(r *Request) { r.Switches[0].Scheduler = "drr" },
		"is for kind: openflow":     func(r *Request) { r.Switches[0].Kind = SwitchKernel },
		"in band switch \"s\"":      func(r *Request) { r.Links[0].Control, r.Switches[0].Controllers = false, []string{"ptcp:6653"} },
		"joins one switch of kind":  func(r *Request) { r.Links[1].Ends = [2]string{"a", "ctl"}; r.Links[1].Control = true },
		"is that of switch \"s\" too": func(r *Request) {
			s := r.Switches[0]
			s.Name, s.DatapathID = "z", DatapathIDOf("s")
			r.Switches = append(r.Switches, s)
			r.Links = append(r.Links, VirtualLink{Name: "cz", Ends: [2]string{"z", "ctl"}, Control: true})
		},
	} {
		r := openFlowRequest()
		change(&r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v instead of %q", err, want)
		}
	}
	r := openFlowRequest()
	r.Links[0].Control = false
	if err := r.Check(); err != nil {
		t.Errorf("in band: %v", err)
	}
	if seen := r.Topology.Controlled(); seen.Links[len(seen.Links)-1].Name != LocalLink("s") || seen.Links[len(seen.Links)-1].Interfaces[0] != LocalInterface {
		t.Errorf("links in band: %+v", seen.Links)
	}
	r = openFlowRequest()
	r.Stages = []Stage{{Name: "later", After: MinAgeing, Remove: []string{"c"}}}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "needs a link with control") {
		t.Errorf("a stage takes the control link: %v", err)
	}
}

// Control links are no ports: on them a switch is a node of its own, in a network
// of layer 2 of theirs. Links at such switches are never cut as loops.
func TestControlled(t *testing.T) {
	r := openFlowRequest()
	r.Links = append(r.Links, VirtualLink{Name: "as2", Ends: [2]string{"s", "a"}})
	top := r.At(-1).Controlled()
	if len(top.Nodes) != 3 || top.Nodes[2].Name != "s.control" || top.Links[0].Ends != [2]string{"s.control", "ctl"} || top.Links[1].Ends != [2]string{"a", "s"} {
		t.Errorf("%+v", top)
	}
	if s := top.Segments(); len(s) != 1 || len(s[0].Stations) != 2 {
		t.Errorf("segments %+v", s)
	}
	if r.At(-1).Links[0].Ends != [2]string{"s", "ctl"} {
		t.Error("the request changed")
	}
	ring := Topology{Switches: []VirtualSwitch{{Name: "x", Kind: SwitchOpenFlow}, {Name: "y", Kind: SwitchKernel}},
		Links: []VirtualLink{{Name: "1", Ends: [2]string{"x", "y"}}, {Name: "2", Ends: [2]string{"x", "y"}}}}
	if loops := ring.Loops(); len(loops) != 0 {
		t.Errorf("%v is cut", loops)
	}
}
