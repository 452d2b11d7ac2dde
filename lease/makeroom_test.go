package lease

import (
	"slices"
	"testing"

	"sublet/vnet"
)

// TestRoutersMakeRoom: 800 of 1000 on the links of a host do not fit beside 500 of a
// running network's router there, and do when it goes to another host, in one
// admission; not if its owner does not allow it, and not if the operator allows no moves.
//
//	A --- B --- C
//	 \--- D ---/
func TestRoutersMakeRoom(t *testing.T) {
	both := func(rate vnet.Rate) [2]vnet.Bandwidth { return [2]vnet.Bandwidth{vnet.Static(rate), vnet.Static(rate)} }
	for _, c := range []struct {
		name    string
		movable bool
		moves   int
		lets    bool
	}{
		{"allowed", true, DefaultMoves, true},
		{"the owner does not allow it", false, DefaultMoves, false},
		{"the operator does not allow it", true, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New(ground("host A", "host B", "host C", "host D", "link A B 1000", "link B C 1000", "link A D 1000", "link D C 1000"))
			b.MostMoves = c.moves
			first := admitted(t, b, vnet.Request{Tenant: "t", Network: "first", Movable: c.movable, Colocate: vnet.ColocateForbidden, Topology: vnet.Topology{
				Nodes:   []vnet.VirtualNode{{Name: "x", Host: "A"}, {Name: "y", Host: "C"}},
				Routers: []vnet.VirtualNode{{Name: "r"}},
				Links:   []vnet.VirtualLink{{Name: "xr", Ends: [2]string{"x", "r"}, Bandwidth: both(500 * vnet.Mbit)}, {Name: "ry", Ends: [2]string{"r", "y"}, Bandwidth: both(500 * vnet.Mbit)}},
			}})
			applied(t, b)
			was := mappingOf(t, b, first).Nodes["r"]
			second := vnet.Request{Tenant: "t", Network: "second", Topology: vnet.Topology{
				Nodes: []vnet.VirtualNode{{Name: "x", Host: "A"}, {Name: "y", Host: was}, {Name: "z", Host: "C"}},
				Links: []vnet.VirtualLink{{Name: "xy", Ends: [2]string{"x", "y"}, Bandwidth: both(800 * vnet.Mbit)}, {Name: "yz", Ends: [2]string{"y", "z"}, Bandwidth: both(800 * vnet.Mbit)}},
			}}
			l, err := b.Admit(noon, second, 0)
			if (err == nil) != c.lets {
				t.Fatalf("admitted: %v", err)
			}
			is := mappingOf(t, b, first).Nodes["r"]
			if !c.lets {
				if is != was {
					t.Errorf("r went to %s for nothing", is)
				}
				return
			}
			moves := b.Moves(l.Serial)
			if len(moves) != 1 || !slices.Equal(moves[0].Nodes, []vnet.Relocation{{Node: "r", From: was, To: is}}) || moves[0].Moved != 2 {
				t.Errorf("it is said that %+v", moves)
			}
			applied(t, b)
			applied(t, b)
			for _, name := range []vnet.VNetID{"first", "second"} {
				if l, _ := b.Lease(vnet.LeaseID{Tenant: "t", Network: name}); l.State != vnet.Running || l.Move != nil {
					t.Errorf("%s is %s, moving %+v: %s", name, l.State, l.Move, l.Message)
				}
			}
		})
	}
}
