package plan

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"sublet/vnet"
)

func TestAPlanFollowsWhatItsStoreGaveOut(t *testing.T) {
	history := []Term{{"", 0}, {"t1", 10}, {"t2", 20}}
	for _, c := range []struct {
		name    string
		terms   []Term
		now     Origin // of the new plan
		held    Origin
		follows bool
	}{
		{"the next one", history, Origin{"t2", 25}, Origin{"t2", 24}, true},
		{"the same one", history, Origin{"t2", 25}, Origin{"t2", 25}, true},
		{"of the server before", history, Origin{"t2", 25}, Origin{"t1", 19}, true},
		{"of a former version", history, Origin{"t2", 25}, Origin{"", 9}, true},
		{"later than this one", history, Origin{"t2", 25}, Origin{"t2", 26}, false},
		{"later than the copy of the store was made", history, Origin{"t2", 25}, Origin{"t1", 20}, false},
		{"the same, but the revisions have overtaken it", history, Origin{"t2", 2500}, Origin{"t1", 20}, false},
		{"of another store", history, Origin{"t2", 25}, Origin{"x1", 5}, false},
		{"of another store, of a former version", []Term{{"t1", 1}}, Origin{"t1", 25}, Origin{"", 5}, false},
		{"of a term before it began", history, Origin{"t2", 25}, Origin{"t1", 3}, false},
		{"by a server of a former version", nil, Origin{"", 25}, Origin{"", 24}, true},
		{"older, by a server of a former version", nil, Origin{"", 25}, Origin{"", 26}, false},
	} {
		next := Host{Term: c.now.Term, Revision: c.now.Revision, Terms: c.terms}
		if got := next.Follows(c.held); got != c.follows {
			t.Errorf("%s: follows %v", c.name, got)
		}
	}
}

func TestASealedPlanCannotBeAltered(t *testing.T) {
	h := Host{Host: "h1", Revision: 7, Store: "s", Term: "t1"}
	h.Add(VNode{Lease: vnet.LeaseID{Tenant: "alice", Network: "net"}, Node: "a<b", CPU: 500})
	text, err := Seal(h)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Unseal(append(bytes.Clone(text), '\n')); err != nil || !reflect.DeepEqual(got, h) {
		t.Fatalf("unsealed as %+v, %v", got, err)
	}
	for i := range text {
		for _, alter := range []byte{text[i] ^ 1, ' ', '0'} {
			altered := bytes.Clone(text)
			if altered[i] = alter; bytes.Equal(altered, text) || i == len(text)-1 && alter == ' ' {
				continue
			}
			if got, err := Unseal(altered); !errors.Is(err, ErrDamaged) {
				t.Fatalf("byte %d as %q: %+v, %v", i, alter, got, err)
			}
		}
		if _, err := Unseal(text[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if got, err := Unseal([]byte(`{"host":"h1","revision":7}`)); err != nil || got.Revision != 7 {
		t.Errorf("a plan of a former version: %+v, %v", got, err)
	}
}

// TestHalfAPlanOnlyRemoves: nothing comes or grows.
func TestHalfAPlanOnlyRemoves(t *testing.T) {
	node := func(name string, cpu vnet.CPU) VNode { return VNode{Node: name, CPU: cpu} }
	var have, next Host
	for _, n := range []VNode{node("goes", 100), node("shrinks", 200), node("grows", 300)} {
		have.Add(n)
	}
	next = Host{Host: "h1", Revision: 9, Store: "s", Term: "t"}
	for _, n := range []VNode{node("shrinks", 100), node("grows", 400), node("comes", 100)} {
		next.Add(n)
	}
	half := next.Shrunk(have)
	want := Host{Host: "h1", Revision: 9, Store: "s", Term: "t", Half: true}
	want.Add(node("grows", 300), node("shrinks", 100))
	if !reflect.DeepEqual(half, want) {
		t.Errorf("half is %+v", half)
	}
}
