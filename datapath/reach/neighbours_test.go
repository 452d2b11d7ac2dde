package reach

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"sublet/plan"
)

// entries counts a node's resolved neighbours.
func (w *wire) entries(node string) int {
	w.Helper()
	c, err := w.host.Dial(plan.Namespace(demo, node))
	if err != nil {
		w.Fatal(err)
	}
	defer c.Close()
	return len(neighbours(c, resolved))
}

// All namespaces share one table: of many that are asked, few are in it at once,
// and none afterwards.
func TestAskingNeedsFewNeighbours(t *testing.T) {
	const many = 4 * mostAsked
	w := newWire(t)
	w.in("b", fmt.Sprintf("i=0; while [ $i -lt %d ]; do ip addr add 10.0.$((1+i/200)).$((1+i%%200))/32 dev eth0; i=$((i+1)); done", many))
	w.in("a", "ip route add 10.0.0.0/16 dev eth0")
	item := plan.Reach{Lease: demo, Nodes: []plan.Name{{Name: "a", Address: netip.MustParseAddr("10.0.0.1")}}, Pairs: []plan.ReachFrom{{From: 0}}}
	for i := range many {
		item.Nodes = append(item.Nodes, plan.Name{Name: fmt.Sprint("n", i), Address: netip.AddrFrom4([4]byte{10, 0, byte(1 + i/200), byte(1 + i%200)})})
		item.Pairs[0].To = append(item.Pairs[0].To, i+1)
	}
	if err := w.part.Do(w.Context(), plan.Step{Op: plan.Add, Item: item}); err != nil {
		t.Fatal(err)
	}
	most := 0
	for end := time.Now().Add(10 * time.Second); w.problems() != ""; {
		if time.Now().After(end) {
			t.Fatal(w.problems())
		}
		most = max(most, w.entries("a"))
	}
	for range 20 { // who counts may have had no processor while they were there
		if most > 0 {
			break
		}
		asked := make(chan string, 1)
		go func() { asked <- w.part.Ask(w.Context(), demo, 10*time.Second) }()
		for done := false; !done; {
			select {
			case problem := <-asked:
				if done = true; problem != "" {
					t.Fatal(problem)
				}
			default:
				most = max(most, w.entries("a"))
			}
		}
	}
	if most == 0 || most > mostAsked {
		t.Errorf("%d neighbours at once, of %d asked", most, many)
	}
	w.empties("a")
}

// empties waits until a node has no neighbours.
func (w *wire) empties(node string) {
	w.Helper()
	for end := time.Now().Add(5 * time.Second); w.entries(node) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%d neighbours of %s are left", w.entries(node), node)
		}
	}
}

// Asking again leaves the neighbours that nodes had before.
func TestOwnNeighboursAreLeft(t *testing.T) {
	w := newWire(t)
	w.do(plan.Add)
	w.says("")
	w.empties("a")
	w.empties("b")
	time.Sleep(lateAsked + 100*time.Millisecond)
	w.in("a", "bash -c 'echo > /dev/udp/10.0.0.2/9'")
	for end := time.Now().Add(5 * time.Second); w.entries("a") == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("b was not resolved")
		}
	}
	if got := w.part.Ask(w.Context(), demo, 3*time.Second); got != "" {
		t.Error(got)
	}
	if w.entries("a") != 1 {
		t.Error("the neighbour that a had was removed")
	}
}
