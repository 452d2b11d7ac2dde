package plan

import (
	"net/netip"
	"testing"
	"time"

	"sublet/vnet"
)

// TestImpairmentsAreDoneWhereFramesEnter: each direction's on the host of the
// node that sends, by the stage that runs; nowhere twice.
func TestImpairmentsAreDoneWhereFramesEnter(t *testing.T) {
	slow, lossy := vnet.Impairment{Delay: time.Millisecond}, vnet.Impairment{Loss: 10_000}
	r := vnet.Request{
		Tenant: "alice", Network: "net",
		Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "b"}},
			Links: []vnet.VirtualLink{{Name: "a-b", Ends: [2]string{"a", "b"}, Impair: [2]vnet.Impairment{slow, lossy}}},
		},
		Stages: []vnet.Stage{{Name: "clean", After: time.Hour, Impair: map[string][2]vnet.Impairment{"a-b": {}}}},
	}
	r.Fill()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	sub := vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}},
		Links: []vnet.SubstrateLink{{Name: "h1-h2", Ends: [2]string{"h1", "h2"}, Capacity: vnet.Gbit, Ports: [2]vnet.Port{{Interface: "eth0"}, {Interface: "eth0"}}}},
	}
	l := vnet.Lease{
		Request: r, State: vnet.Running, Stage: -1, VNIs: map[string][]vnet.VNI{"a-b": {5}},
		Mapping: vnet.Mapping{Nodes: map[string]vnet.HostID{"a": "h1", "b": "h2"}, Links: map[string]vnet.Path{"a-b": {"h1-h2"}}},
	}
	for stage, want := range map[int][2]vnet.Impairment{-1: {slow, lossy}, 0: {}} {
		l.Stage = stage
		hosts, err := Compile(sub, []vnet.Lease{l})
		if err != nil {
			t.Fatal(err)
		}
		for i, host := range []vnet.HostID{"h1", "h2"} {
			for _, end := range Of[VxLink](hosts[host])[0].Ends {
				if end.Port != nil && end.Impair != want[i] || end.Port == nil && end.Impair != (vnet.Impairment{}) {
					t.Errorf("stage %d, %s: %s", stage, host, end)
				}
			}
		}
	}
}

// TestWhomAnImpairmentSilencesIsNotAsked: of a line a-b-c, pairs over a link that
// loses too much or answers too late are not asked for, the others are.
func TestWhomAnImpairmentSilencesIsNotAsked(t *testing.T) {
	for _, c := range []struct {
		name   string
		impair vnet.Impairment
		pairs  int
	}{
		{"none", vnet.Impairment{}, 6},
		{"little", vnet.Impairment{Delay: 20 * time.Millisecond, Loss: 10_000}, 6},
		{"late", vnet.Impairment{Delay: time.Second}, 2},
		{"lost", vnet.Impairment{Loss: vnet.WholeShare}, 2},
		{"damaged", vnet.Impairment{Corrupt: 600_000}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := vnet.Request{Tenant: "alice", Network: "net", Topology: vnet.Topology{
				Nodes:   []vnet.VirtualNode{{Name: "a"}, {Name: "c"}},
				Routers: []vnet.VirtualNode{{Name: "b"}},
				Links: []vnet.VirtualLink{
					{Name: "a-b", Ends: [2]string{"a", "b"}, Impair: [2]vnet.Impairment{{}, c.impair}},
					{Name: "b-c", Ends: [2]string{"b", "c"}},
				},
			}}
			r.Fill()
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
			sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1"}}}
			l := vnet.Lease{Request: r, State: vnet.Running, Stage: -1, Addresses: map[string]netip.Addr{}, Mapping: vnet.Mapping{Nodes: map[string]vnet.HostID{}}}
			for i, name := range []string{"a", "b", "c"} {
				l.Mapping.Nodes[name], l.Addresses[name] = "h1", netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
			}
			hosts, err := Compile(sub, []vnet.Lease{l})
			if err != nil {
				t.Fatal(err)
			}
			pairs := 0
			for _, reach := range Of[Reach](hosts["h1"]) {
				for _, from := range reach.Pairs {
					pairs += len(from.To)
				}
			}
			if pairs != c.pairs {
				t.Errorf("%d pairs are asked, want %d", pairs, c.pairs)
			}
		})
	}
}
