package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/openflow/controller"
	"sublet/openflow/of13"
)

// twoRouters are on the same port, and ethertypes keep them apart.
func twoRouters(t *testing.T, entries int) controller.Installed {
	t.Helper()
	kind := func(n uint64) []of13.Field { return []of13.Field{of13.Exact(of13.EthType, n)} }
	made, err := controller.Slicing{
		MaxEntries: entries, MaxMeters: 1,
		Links: []controller.VxLink{{Name: "l1", Port: 3, Kbps: 5000}, {Name: "l2", Port: 2, Queue: 4}},
		Routers: []controller.VxRouter{
			{Name: "r1", Ports: []uint32{1, 3}, Match: kind(0x88b6), Routes: []controller.Route{{VxLink: "l1", Next: [6]byte{2, 0, 0, 0, 0, 9}}}},
			{Name: "r2", Ports: []uint32{1, 2}, Match: kind(0x88b7), Routes: []controller.Route{{VxLink: "l2"}}},
		},
	}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// routed are the entries of virtual routers of a bridge, by what they do.
func (r *ring) routed(bridge int) map[string]string {
	entries := make(map[string]string)
	for line := range strings.Lines(r.ofctl("dump-flows", bridge)) {
		if match, does, ok := strings.Cut(line, "actions="); ok && strings.Contains(match, "dl_type=0x88b") {
			entries[strings.TrimSpace(does)] += match
		}
	}
	return entries
}

// Virtual routers on a real switch have their entries and meters, packets of each
// meet its own, and what another hand deletes or alters comes back.
func TestVxRoutersOnOpenVSwitch(t *testing.T) {
	t.Parallel()
	c := newControlled(t, "OpenFlow13", map[uint64]controller.Installed{1: twoRouters(t, 100)})
	const (
		first  = "meter:23296,set_field:02:00:00:00:00:09->eth_dst,output:3"
		second = "set_queue:4,output:2"
	)
	whole := func() error {
		meters, entries := c.ofctl("dump-meters", 1), c.routed(1)
		if !strings.Contains(meters, "meter=23296 kbps burst") || !strings.Contains(meters, "rate=5000 burst_size=500") || entries[first] == "" || entries[second] == "" || strings.Count(entries["drop"], "priority=999") != 4 {
			return fmt.Errorf("%s %v", meters, entries)
		}
		return nil
	}
	eventually(t, whole)
	c.counts(first, second)
	for _, harm := range [][]string{
		{"del-meter", "meter=23296"}, // and the entries that use it
		{"mod-meter", "meter=23296,kbps,burst,band=type=drop,rate=9,burst_size=9"},
		{"del-flows"},
		{"mod-flows", "dl_type=0x88b7,actions=output:3"},
	} {
		c.ofctl(harm[0], 1, harm[1:]...)
		t.Logf("%v is put right after %s", harm, eventually(t, whole))
	}
}

// counts sends frames of the first router, and finds them at no other's entry.
func (c *controlled) counts(first, second string) {
	c.t.Helper()
	eventually(c.t, func() error {
		c.run("ovs-appctl", "-t", c.dir+"/vs.ctl", "netdev-dummy/receive", "h1", "020000000003"+station(1)+"88b6"+strings.Repeat("00", 46))
		time.Sleep(50 * time.Millisecond)
		entries := c.routed(1)
		if strings.Contains(entries[first], "n_packets=0,") {
			return fmt.Errorf("no packet meets %s", entries[first])
		}
		if !strings.Contains(entries[second], "n_packets=0,") {
			c.t.Fatalf("the packets of one router meet the entry of another: %v", entries)
		}
		return nil
	})
}

// Of routers for which a switch has no room there is nothing: it refuses an entry,
// and those before it go, with the meters.
func TestVxRoutersAreTakenBack(t *testing.T) {
	t.Parallel()
	made := twoRouters(t, 100)
	refused := made.Entries[0]
	refused.Priority, refused.Instructions = 5000, []of13.Instruction{{Type: of13.InstructionMeter, Meter: 77}}
	made.Entries = append(made.Entries, refused)
	c := newControlled(t, "OpenFlow13", map[uint64]controller.Installed{1: made})

	eventually(t, func() error {
		if !c.log.says("MeterModFailedInvalidMeter") && !c.log.says("virtual routers of a switch are not there") {
			return fmt.Errorf("nothing was refused")
		}
		meters, entries := c.ofctl("dump-meters", 1), c.routed(1)
		if len(entries) > 0 || strings.Contains(meters, "meter=") {
			return fmt.Errorf("%v %s", entries, meters)
		}
		return nil
	})
}

// What an active router has no route for goes where paths lead, by entries of its own,
// and only out of its ports: a station whose way begins at another port is not reached,
// also when the way over its ports is lost. Without room for entries the controller sends
// each packet on.
func TestActiveRoutersAreConfined(t *testing.T) {
	for _, room := range []int{1, 0} {
		t.Run(fmt.Sprint("room for ", room), func(t *testing.T) {
			t.Parallel()
			made, err := controller.Slicing{
				MaxEntries: 2 + room,
				Routers:    []controller.VxRouter{{Name: "r", Ports: []uint32{1, 3}, Match: []of13.Field{of13.Exact(of13.EthType, 0x88b5)}, Active: true}},
			}.Compile()
			if err != nil {
				t.Fatal(err)
			}
			c := newControlled(t, "OpenFlow13", map[uint64]controller.Installed{1: made})
			c.links(3)
			c.comes(2, 3, 1)
			c.comes(3, 2, 2)
			c.comes(1, 2, 3)
			own := func() int { return strings.Count(c.ofctl("dump-flows", 1), "priority=999") }
			eventually(t, func() error {
				if own() != room {
					return fmt.Errorf("%d entries of the router's paths, %d are wanted", own(), room)
				}
				return nil
			})
			c.misses(1, 3)
			c.comes(1, 2, 4)
			c.run("ovs-vsctl", c.db(), "del-port", "p12")
			c.links(2)
			eventually(t, func() error {
				if n := own(); n > 0 {
					return fmt.Errorf("%d entries of a way that is lost", n)
				}
				return nil
			})
			c.misses(1, 2)
		})
	}
}

// misses sends frames that must not come.
func (c *controlled) misses(from, to int) {
	c.t.Helper()
	c.received(to)
	for n := range uint32(10) {
		c.send(from, station(to), 5000+n)
		time.Sleep(30 * time.Millisecond)
	}
	if got := c.received(to); len(got) > 0 {
		c.t.Errorf("%d frames came from %d to %d", len(got), from, to)
	}
}
