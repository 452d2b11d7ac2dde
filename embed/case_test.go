package embed

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"

	"pgregory.net/rapid"
)

// small is a random instance that the reference can decide.
type small struct {
	sub     vnet.Substrate
	cal     *calendar.Calendar
	request vnet.Request
	window  vnet.Window
}

var epoch = time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)

func drawSmall(t *rapid.T) small {
	c := small{sub: drawSubstrate(t), cal: calendar.New()}
	c.window = vnet.Window{Start: epoch}
	if rapid.Bool().Draw(t, "ends") {
		c.window.End = epoch.Add(time.Duration(rapid.IntRange(1, 4).Draw(t, "hours")) * time.Hour)
	}
	c.request = drawRequest(t, c.sub, rapid.IntRange(0, 3).Draw(t, "stages"))
	if rapid.IntRange(0, 3).Draw(t, "apart") == 0 {
		c.request.Colocate = vnet.ColocateForbidden
	}
	c.request.Objective = rapid.SampledFrom(vnet.Objectives).Draw(t, "objective")
	for range rapid.IntRange(0, 2).Draw(t, "others") {
		c.bookOther(t)
	}
	return c
}

// bookOther embeds another network, in another window that may overlap.
func (c *small) bookOther(t *rapid.T) {
	start := epoch.Add(time.Duration(rapid.IntRange(-2, 4).Draw(t, "start")) * time.Hour)
	w := vnet.Window{Start: start, End: start.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "for")) * time.Hour)}
	other := drawRequest(t, c.sub, 0)
	mapping, err := embedOn(c.sub, c.cal, other, w)
	if err != nil {
		return
	}
	bookings, err := bookingsOn(c.sub, other, w, mapping)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cal.Book(bookings...); err != nil {
		t.Fatal(err)
	}
}

// drawSubstrate draws up to four hosts and three switches.
func drawSubstrate(t *rapid.T) vnet.Substrate {
	var sub vnet.Substrate
	if rapid.Bool().Draw(t, "one machine") {
		sub.Forwards = vnet.Rate(rapid.IntRange(1, 20).Draw(t, "forwards")) * 100 * vnet.Mbit
	}
	names := []string{}
	for i := range rapid.IntRange(1, 4).Draw(t, "hosts") {
		h := vnet.SubstrateNode{
			Name:     vnet.HostID(fmt.Sprintf("h%d", i)),
			Site:     rapid.SampledFrom([]string{"lyon", "nancy"}).Draw(t, "site"),
			CPU:      vnet.CPU(rapid.IntRange(1, 4).Draw(t, "cores")) * vnet.Core,
			Memory:   vnet.Bytes(rapid.IntRange(1, 4).Draw(t, "memory")) * vnet.GiB,
			Capacity: vnet.Rate(rapid.IntRange(1, 10).Draw(t, "inside")) * 100 * vnet.Mbit,
			Inside:   time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Millisecond,
		}
		sub.Hosts = append(sub.Hosts, h)
		names = append(names, string(h.Name))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "switches") {
		sub.Switches = append(sub.Switches, fmt.Sprintf("s%d", i))
		names = append(names, sub.Switches[i])
	}
	if len(names) < 2 {
		return sub
	}
	// Mostly connected: each node is joined to an earlier one, then chords. Link
	// names are not in order of appearance.
	apart := rapid.IntRange(0, 9).Draw(t, "apart") == 0
	for i := range rapid.IntRange(len(names)-1, len(names)+2).Draw(t, "links") {
		a := rapid.IntRange(0, len(names)-1).Draw(t, "a")
		b := (a + rapid.IntRange(1, len(names)-1).Draw(t, "b")) % len(names)
		if i+1 < len(names) && !apart {
			a, b = i+1, a%(i+1)
		}
		sub.Links = append(sub.Links, vnet.SubstrateLink{
			Name:     fmt.Sprintf("w%02d", (i*7)%11),
			Ends:     [2]string{names[a], names[b]},
			Capacity: vnet.Rate(rapid.IntRange(1, 10).Draw(t, "capacity")) * 100 * vnet.Mbit,
			Share:    rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "share"),
			Latency:  time.Duration(rapid.IntRange(0, 5).Draw(t, "latency")) * time.Millisecond,
		})
	}
	if rapid.Bool().Draw(t, "relays") {
		for i, s := range sub.Switches {
			if sub.Relays == nil {
				sub.Relays = make(map[string]netip.Addr)
			}
			sub.Relays[s] = netip.AddrFrom4([4]byte{198, 19, 0, byte(i + 1)})
		}
	}
	return sub
}

func drawRequest(t *rapid.T, sub vnet.Substrate, stages int) vnet.Request {
	r := vnet.Request{Network: "net"}
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		r.Nodes = append(r.Nodes, drawNode(t, sub, fmt.Sprintf("n%d", i)))
	}
	if n := len(r.Nodes); n > 1 {
		for i := range rapid.IntRange(n-1, n+1).Draw(t, "links") {
			a := rapid.IntRange(0, n-1).Draw(t, "from")
			r.Links = append(r.Links, drawLink(t, fmt.Sprintf("l%d", i), r.Nodes[a].Name, r.Nodes[(a+rapid.IntRange(1, n-1).Draw(t, "to"))%n].Name))
		}
	}
	for i := range stages {
		r.Stages = append(r.Stages, drawStage(t, sub, r, i))
	}
	return r
}

func drawNode(t *rapid.T, sub vnet.Substrate, name string) vnet.VirtualNode {
	n := vnet.VirtualNode{
		Name:   name,
		CPU:    vnet.CPU(rapid.IntRange(1, 5).Draw(t, "cpu")) * vnet.Core / 2,
		Memory: vnet.Bytes(rapid.IntRange(0, 3).Draw(t, "memory")) * vnet.GiB / 2,
	}
	switch rapid.IntRange(0, 19).Draw(t, "where") {
	case 0, 1:
		n.Site = rapid.SampledFrom([]string{"lyon", "nancy"}).Draw(t, "site")
	case 2, 3:
		n.Host = rapid.SampledFrom(sub.Hosts).Draw(t, "host").Name
	case 4:
		n.Exclusive = true
	}
	return n
}

func drawLink(t *rapid.T, name, a, b string) vnet.VirtualLink {
	l := vnet.VirtualLink{Name: name, Ends: [2]string{a, b}}
	for _, dir := range vnet.Directions {
		l.Bandwidth[dir] = drawBandwidth(t)
	}
	if rapid.Bool().Draw(t, "bounded") {
		l.Latency = time.Duration(rapid.IntRange(1, 12).Draw(t, "bound")) * time.Millisecond
	}
	return l
}

func drawBandwidth(t *rapid.T) vnet.Bandwidth {
	low := vnet.Rate(rapid.IntRange(0, 6).Draw(t, "min")) * 50 * vnet.Mbit
	return vnet.Bandwidth{Min: low, Max: low + vnet.Rate(rapid.IntRange(0, 2).Draw(t, "more"))*100*vnet.Mbit}
}

// drawStage changes a link's rates, removes a node, and adds one with a link:
// a new one, or one that went earlier and comes back with other wishes.
func drawStage(t *rapid.T, sub vnet.Substrate, r vnet.Request, i int) vnet.Stage {
	s := vnet.Stage{Name: fmt.Sprintf("stage%d", i), After: time.Duration(i*60+rapid.IntRange(1, 90).Draw(t, "after")) * time.Minute}
	if rapid.IntRange(0, 2).Draw(t, "on command") == 0 {
		s.OnCommand, s.After = true, 0
	}
	now := r.At(i - 1)
	if len(now.Links) > 0 {
		s.Links = map[string][2]vnet.Bandwidth{now.Links[0].Name: {drawBandwidth(t), drawBandwidth(t)}}
	}
	if len(now.Nodes) > 1 && rapid.Bool().Draw(t, "remove") {
		s.Remove = []string{now.Nodes[len(now.Nodes)-1].Name}
	}
	if rapid.Bool().Draw(t, "add") {
		s.Add = drawAddition(t, sub, r, now, i)
	}
	return s
}

// drawAddition is a node with the links it had before or, if it is new, one.
func drawAddition(t *rapid.T, sub vnet.Substrate, r vnet.Request, now vnet.Topology, i int) vnet.Topology {
	first := now.Nodes[0].Name
	for _, gone := range r.Union().Nodes {
		if !slices.ContainsFunc(now.Nodes, func(n vnet.VirtualNode) bool { return n.Name == gone.Name }) {
			back := vnet.Topology{Nodes: []vnet.VirtualNode{drawNode(t, sub, gone.Name)}}
			for _, l := range r.Union().Links {
				if l.Ends == [2]string{first, gone.Name} || l.Ends == [2]string{gone.Name, first} {
					back.Links = append(back.Links, drawLink(t, l.Name, l.Ends[0], l.Ends[1]))
				}
			}
			return back
		}
	}
	n := drawNode(t, sub, fmt.Sprintf("added%d", i))
	return vnet.Topology{Nodes: []vnet.VirtualNode{n}, Links: []vnet.VirtualLink{drawLink(t, fmt.Sprintf("to%d", i), first, n.Name)}}
}
