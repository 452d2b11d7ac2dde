package vnet

import (
	"net/netip"
	"strings"
	"testing"
)

// TestBadClasses: each thing wrong with classes of traffic is named with its place.
func TestBadClasses(t *testing.T) {
	web := Packets{Protocol: ProtocolTCP, DstPort: PortRange{First: 80, Last: 80}}
	base := func() Request {
		return Request{
			Network: "net", Classes: []TrafficClass{{"bulk", web}},
			Topology: Topology{
				Nodes:   []VirtualNode{{Name: "n"}},
				Routers: []VirtualNode{{Name: "r1"}, {Name: "r2"}, {Name: "r3", Protocol: ProtocolNone}},
				Links:   []VirtualLink{{Name: "x", Ends: [2]string{"r1", "r2"}, Class: "bulk"}, {Name: "y", Ends: [2]string{"n", "r1"}}},
			},
		}
	}
	good := base()
	good.Fill()
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	dscp := uint8(8)
	for want, spoil := range map[string]func(r *Request){
		"links[0].class":               func(r *Request) { r.Links[0].Class = "bulky" },
		"links[1].class":               func(r *Request) { r.Links[1].Class = "bulk" },
		`router "r3" leaves its table`: func(r *Request) { r.Links[0].Ends[1] = "r3" },
		"classes[0].name":              func(r *Request) { r.Classes[0].Name = "a b" },
		"classes[1].name":              func(r *Request) { r.Classes = append(r.Classes, r.Classes[0]) },
		"is all packets":               func(r *Request) { r.Classes[0].Match = Packets{} },
		"leave out dscp":               func(r *Request) { r.Classes[0].Match.DSCP = &dscp },
		"is every address":             func(r *Request) { r.Classes[0].Match = Packets{Src: netip.MustParsePrefix("0.0.0.0/0")} },
		"classes[0].match.dst_port":    func(r *Request) { r.Classes[0].Match.Protocol = "" },
		"9 classes are more than 8":    func(r *Request) { r.Classes = make([]TrafficClass, 9) },
	} {
		r := base()
		spoil(&r)
		r.Fill()
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestAnswersAreOfTheClass: ports and addresses change sides, and a set that answers
// itself is there once.
func TestAnswersAreOfTheClass(t *testing.T) {
	c := TrafficClass{"c", Packets{Protocol: ProtocolUDP, DstPort: PortRange{First: 53, Last: 53}, Src: netip.MustParsePrefix("10.0.0.0/8")}}
	sets := c.Sets()
	if len(sets) != 2 || sets[1].SrcPort != c.Match.DstPort || sets[1].Dst != c.Match.Src || sets[1].Src.IsValid() || sets[1].DstPort != (PortRange{}) {
		t.Errorf("sets are %+v", sets)
	}
	if sets := (TrafficClass{"c", Packets{Protocol: ProtocolUDP}}).Sets(); len(sets) != 1 {
		t.Errorf("sets of all of UDP are %+v", sets)
	}
}
