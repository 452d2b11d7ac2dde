package inband

import (
	"fmt"
	"hash/maphash"
	"slices"
	"testing"
)

const (
	local  = 0xfffffffe
	second = int64(1e9)
)

// wire joins ports of two switches; one of switch -1 is the controller.
type wire struct{ a, aPort, b, bPort int }

// web is bridges, a controller, and frames on their way.
type web struct {
	t       *testing.T
	bridges []*Bridge
	ports   [][]uint32
	wires   []wire
	now     int64
	sent    int
	to      map[int]int // frames that each switch's stack has got
}

func newWeb(t *testing.T, n int, wires ...wire) *web {
	w := &web{t: t, wires: wires, now: second, to: make(map[int]int), ports: make([][]uint32, n)}
	for i := range n {
		w.bridges = append(w.bridges, NewBridge(testFilter(), local, maphash.MakeSeed()))
		w.ports[i] = []uint32{local}
	}
	for _, l := range wires {
		for _, e := range [][2]int{{l.a, l.aPort}, {l.b, l.bPort}} {
			if e[0] >= 0 {
				w.ports[e[0]] = append(w.ports[e[0]], uint32(e[1]))
			}
		}
	}
	return w
}

type flight struct {
	at    int
	port  uint32
	frame []byte
}

// carry takes frames on until none is left. A loop would not end.
func (w *web) carry(first ...flight) {
	for list := first; len(list) > 0; {
		f := list[0]
		list = list[1:]
		if w.sent++; w.sent > 5000 {
			w.t.Fatal("frames go round")
		}
		w.now += 1e4
		if f.at < 0 {
			if c, _ := testFilter().Look(f.frame); c.Asks {
				list = append(list, w.out(-1, uint32(0), arpFrame(2, controllerMAC, mac(f.frame[6:]), "10.0.0.254", "10.0.0.7"))...)
			}
			continue
		}
		for _, port := range w.bridges[f.at].Receive(w.now, f.port, f.frame, w.ports[f.at], nil) {
			if port == local {
				w.to[f.at]++
				continue
			}
			list = append(list, w.out(f.at, port, f.frame)...)
		}
	}
}

func (w *web) out(at int, port uint32, frame []byte) (list []flight) {
	for _, l := range w.wires {
		if l.a == at && l.aPort == int(port) {
			list = append(list, flight{l.b, uint32(l.bPort), frame})
		}
		if l.b == at && l.bPort == int(port) {
			list = append(list, flight{l.a, uint32(l.aPort), frame})
		}
	}
	return list
}

func (w *web) cut(l wire) {
	w.wires = slices.DeleteFunc(w.wires, func(x wire) bool { return x == l })
	for _, e := range [][2]int{{l.a, l.aPort}, {l.b, l.bPort}} {
		if e[0] >= 0 {
			w.ports[e[0]] = slices.DeleteFunc(w.ports[e[0]], func(p uint32) bool { return p == uint32(e[1]) })
			w.bridges[e[0]].Changed(w.now, uint32(e[1]), false)
		}
	}
}

// pass lets time go on, in which questions are asked.
func (w *web) pass(time int64) {
	for end := w.now + time; w.now < end; w.now += 1e7 {
		for i, b := range w.bridges {
			list, _ := b.Questions(w.now)
			for _, q := range list {
				w.carry(flight{i, local, q})
			}
		}
	}
}

var controllerMAC = mac{2, 0xff}

func switchMAC(i int) mac { return mac{2, 0, 0, 0, 0, byte(i)} }

// ask has the stack of every switch ask for the controller.
func (w *web) ask() {
	for i := range w.bridges {
		w.carry(flight{i, local, arpFrame(1, switchMAC(i), everybody, fmt.Sprintf("10.0.0.%d", i+2), "10.0.0.254")})
	}
}

// connected says whether TCP of every switch reaches the controller, and comes back.
func (w *web) connected() bool {
	for i := range w.bridges {
		before := w.to[i]
		w.sent = 0
		w.now += second
		w.carry(flight{i, local, tcpFrame(switchMAC(i), controllerMAC, "10.0.0.2:1", "10.0.0.254:6653", 1)})
		w.carry(w.out(-1, 0, tcpFrame(controllerMAC, switchMAC(i), "10.0.0.254:6653", "10.0.0.2:1", 2))...)
		if w.to[i] == before {
			return false
		}
	}
	return true
}

// line is n switches, the controller at port 3 of the first; ring joins its ends.
func lineOf(n int, ring bool) []wire {
	list := []wire{{-1, 0, 0, 3}}
	for i := 1; i < n; i++ {
		list = append(list, wire{i - 1, 2, i, 1})
	}
	if ring {
		list = append(list, wire{n - 1, 2, 0, 1})
	}
	return list
}

// Switches join without a controller's help, whatever joins them; no frame goes round.
func TestEveryShapeJoins(t *testing.T) {
	for n := 2; n <= 10; n++ {
		shapes := map[string][]wire{"line": lineOf(n, false), "ring": lineOf(n, true), "tree": {{-1, 0, 0, 9}}, "mesh": {{-1, 0, 0, 20}}}
		for i := 1; i < n; i++ {
			shapes["tree"] = append(shapes["tree"], wire{(i - 1) / 2, 1 + (i+1)%2, i, 3})
			for k := range i {
				shapes["mesh"] = append(shapes["mesh"], wire{k, i, i, k})
			}
		}
		for name, wires := range shapes {
			w := newWeb(t, n, wires...)
			w.ask()
			if !w.connected() {
				t.Errorf("%s of %d: not all reach the controller", name, n)
			}
		}
	}
}

// When a link of a ring is cut, all are reached the other way round in a second, by
// nothing but what switches do themselves.
func TestCutRingHasAnotherWay(t *testing.T) {
	for n := 3; n <= 10; n++ {
		for _, l := range lineOf(n, true)[1:] {
			w := newWeb(t, n, lineOf(n, true)...)
			w.ask()
			w.pass(second)
			w.cut(l)
			w.sent = 0
			w.pass(second)
			if w.sent > 300*n {
				t.Errorf("ring of %d without %v: %d frames", n, l, w.sent)
			}
			if !w.connected() {
				t.Errorf("ring of %d without %v: not all reach the controller", n, l)
			}
		}
	}
}

// A controller that is moved is found at its new place, though it says nothing.
func TestMovedControllerIsFound(t *testing.T) {
	w := newWeb(t, 6, lineOf(6, false)...)
	w.ask()
	w.pass(second)
	w.cut(wire{-1, 0, 0, 3})
	w.wires = append(w.wires, wire{-1, 0, 5, 9})
	w.ports[5] = append(w.ports[5], 9)
	w.bridges[5].Changed(w.now, 9, true)
	w.sent = 0
	w.pass(second)
	if !w.connected() {
		t.Error("not all reach the controller")
	}
}

// One that finds the controller gone has all others ask anew: what their stacks
// remember of it may be old as well. It ends.
func TestQuestionsAreHints(t *testing.T) {
	w := newWeb(t, 10, lineOf(10, true)...)
	w.ask()
	w.pass(5 * second)
	before := make([]uint32, len(w.bridges))
	for i, b := range w.bridges {
		before[i] = b.serial
	}
	w.bridges[4].ask(w.now)
	w.pass(5 * second)
	for i, b := range w.bridges {
		if n := b.serial - before[i]; n < 1 || n > 2*asksOfTurn {
			t.Errorf("switch %d asked %d times", i, n)
		}
	}
	w.sent = 0
	if w.pass(5 * second); w.sent > 0 {
		t.Errorf("%d frames when all is quiet", w.sent)
	}
}

// Nobody takes a switch's own address, and nobody fills what a bridge remembers.
func TestBridgeIsBounded(t *testing.T) {
	w := newWeb(t, 1, wire{-1, 0, 0, 3})
	w.ask()
	b := w.bridges[0]
	if to := b.Receive(w.now, 3, arpFrame(1, switchMAC(0), everybody, "10.0.0.9", "10.0.0.254"), w.ports[0], nil); len(to) > 0 || b.stations[switchMAC(0)].port != local {
		t.Errorf("a frame from the switch's own address went to %v, which is at %d now", to, b.stations[switchMAC(0)].port)
	}
	flooded := 0
	for i := range 20000 {
		frame := arpFrame(1, mac{2, 1, 0, 0, byte(i >> 8), byte(i)}, everybody, "10.0.0.9", "10.0.0.254")
		flooded += len(b.Receive(w.now+int64(i), 3, frame, w.ports[0], nil))
	}
	if len(b.stations) > mostStations || len(b.seen) > mostSeen || flooded > mostFloods {
		t.Errorf("%d stations, %d frames, %d floods", len(b.stations), len(b.seen), flooded)
	}
	if !w.connected() {
		t.Error("the controller is not reached any more")
	}
}
