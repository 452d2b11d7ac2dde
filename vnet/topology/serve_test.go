package topology

import "testing"

func TestServe(t *testing.T) {
	ring, _, err := Named("triangle")
	if err != nil {
		t.Fatal(err)
	}
	sub, err := Serve(ring, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(sub.Hosts) != 6 || len(sub.Switches) != 3 || len(sub.Links) != len(ring.Links)+6 || len(ring.Switches) != 0 {
		t.Fatalf("%d hosts, %d switches, %d links", len(sub.Hosts), len(sub.Switches), len(sub.Links))
	}
	links := make(map[string]int)
	for _, l := range sub.Links[len(ring.Links):] {
		links[l.Ends[0]]++
		if _, isHost := sub.HostOf(l.Ends[0]); !isHost || l.Capacity != ring.Links[0].Capacity {
			t.Errorf("link %s: %v, %v", l.Name, l.Ends, l.Capacity)
		}
	}
	if len(links) != 6 {
		t.Errorf("%d hosts have links", len(links))
	}
	for _, n := range []int{0, -1, 1025} {
		if _, err := Serve(ring, n); err == nil {
			t.Errorf("%d hosts at each switch are taken", n)
		}
	}
}
