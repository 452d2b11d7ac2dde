package lease

import (
	"errors"
	"testing"

	"sublet/vnet"
)

// TestWaysOutThatGo: a substrate without the way out of a lease displaces it, as
// one without its hosts does.
func TestWaysOutThatGo(t *testing.T) {
	sub := lineWithCampus()
	book := New(sub)
	r := transfer{mbit: 1}.request(0)
	r.Nodes = r.Nodes[:1]
	r.Routers, r.Links[0].Ends[1] = []vnet.VirtualNode{{Name: "out", NAT: "campus"}}, "out"
	l, err := book.Admit(noon, r, 0)
	if err != nil {
		t.Fatal(err)
	}
	without := sub
	without.NAT = nil
	var no *vnet.Rejection
	displaced, err := book.Resubstrate(noon, without, false, false)
	if !errors.As(err, &no) || len(displaced) != 1 || !displaced[0].Ends || len(displaced[0].Why) == 0 {
		t.Fatalf("displaced %+v, %v", displaced, err)
	}
	if _, err := book.Resubstrate(noon, without, true, false); err != nil {
		t.Fatal(err)
	}
	if now, _ := book.Lease(l.ID()); now.State != vnet.Ended {
		t.Errorf("without its way out it is %s", now.State)
	}
}
