package nsh

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A node that returns nothing any more is found out by the packets that go in. Then
// they are dropped and counted, go past it, or go to another node, as its hop says;
// when it works again they go in again, each once. What is not watched stays.
func TestNodeThatDies(t *testing.T) {
	for _, kind := range []Kind{Node, Aware} {
		for _, fails := range []Failure{Drop, Bypass, Reroute} {
			t.Run(string(kind)+" "+string(fails), func(t *testing.T) { nodeDies(t, kind, fails) })
		}
	}
}

// nodeDies is of one kind of node, and of one that stands by.
func nodeDies(t *testing.T, kind Kind, fails Failure) {
	g := newGround(t)
	second := g.namespace("f2")
	g.wire(g.h2.Path(fabric), "fi1", second, "i0")
	g.wire(g.h2.Path(fabric), "fo1", second, "o0")
	for i, ns := range []string{g.f, second} {
		if kind == Aware {
			g.returnsNext(ns, int32(253+i))
			continue
		}
		g.in(ns, "tc qdisc add dev i0 clsact", "tc filter add dev i0 ingress protocol all u32 match u32 0 0 action mirred egress redirect dev o0")
	}
	p1, p2 := g.planes()
	if kind == Aware {
		p1, p2 = backBeside(g.planes(Function{Name: "ids", Kind: kind, In: "fi0", Out: "fo0"}, Function{Name: "nothing", Kind: None}))
	}
	p2.Functions = []Function{{Name: "nothing", Kind: None}, {Name: "ids", Kind: kind, In: "fi0", Out: "fo0"}, {Name: "ids2", Kind: kind, In: "fi1", Out: "fo1"}}
	first := Hop{Path: there, Index: 254, Function: "ids", Fails: fails}
	if fails == Reroute {
		first.Instead = &Place{9, 255}
	}
	p2.Hops = append(slices.DeleteFunc(p2.Hops, func(h Hop) bool { return h.Path == there }), first,
		Hop{Path: there, Index: 253, Egress: &Egress{Port: "lb0"}},
		Hop{Path: 9, Index: 255, Function: "ids2"}, Hop{Path: 9, Index: 254, Jump: &Place{there, 253}})
	g.set(p1, p2)
	if !g.pings(g.a, "192.168.7.2") {
		t.Fatalf("no answer: %+v", g.report(g.h2))
	}
	if again, err := g.h2.part.Planes(); err != nil || len(again) != 1 || len(again[0].Hops) != len(p2.Hops) {
		t.Fatalf("read back as %+v, %v", again, err)
	}
	g.in(g.f, "ip link set o0 down")
	dead := func() []string { return g.report(g.h2).Dead }
	eventually(t, "it is dead", func() bool { g.echoes(20); return slices.Equal(dead(), []string{"ids"}) })
	before, other := g.h2.hop(t, there, 254), g.h2.hop(t, 9, 255)
	answers, _ := g.echoes(30)
	after, moved := g.h2.hop(t, there, 254), g.h2.hop(t, 9, 255)
	dropped := after.Drops["dead"] - before.Drops["dead"]
	if fails == Drop && (answers != 0 || dropped < 30) || fails != Drop && (answers != 30 || dropped != 0) {
		t.Errorf("%d answers while it is dead, %d dropped", answers, dropped)
	}
	if led := moved.Returned - other.Returned; (fails == Reroute) != (led >= 30) || fails != Reroute && led != 0 {
		t.Errorf("%d packets through the other node", led)
	}
	g.in(g.f, "ip link set o0 up")
	eventually(t, "it lives again", func() bool { g.echoes(20); return len(dead()) == 0 })
	before, other = g.h2.hop(t, there, 254), g.h2.hop(t, 9, 255)
	answers, twice := g.echoes(30)
	after, moved = g.h2.hop(t, there, 254), g.h2.hop(t, 9, 255)
	if answers != 30 || twice != 0 || after.Returned-before.Returned < 30 || moved.Packets != other.Packets {
		t.Errorf("%d answers when it lives again, %d of them twice: %+v", answers, twice, g.report(g.h2))
	}
}

// echoes is how many of some echoes of a, ten milliseconds apart, b answers.
func (g *testGround) echoes(n int) (answers, twice int) {
	g.t.Helper()
	out, _ := exec.Command("nsenter", "--net="+g.a, "ping", "-n", "-i", "0.01", "-W", "1", "-c", strconv.Itoa(n), "192.168.7.2").Output()
	twice = strings.Count(string(out), "DUP!")
	return strings.Count(string(out), "bytes from") - twice, twice
}
