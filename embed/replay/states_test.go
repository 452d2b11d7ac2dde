package replay

import (
	"encoding/json"
	"reflect"
	"testing"

	"sublet/embed"
)

// TestStates: in the states of a run each request gets what it got in the run,
// also when its mappings are written and read in between.
func TestStates(t *testing.T) {
	instance, err := Parse("line", []byte(line))
	if err != nil {
		t.Fatal(err)
	}
	held := map[int]Mapping{}
	if _, err := Run(instance, Options{Accepted: func(m Mapping) error {
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		var again Mapping
		if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%s is read as %+v, %v", text, again, err)
		}
		held[m.ID] = again
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	want := []float64{40, 40, 100} // a hop for each link
	seen, asked := 0, func(id int) bool { return id != 1 }
	err = States(instance, held, embed.Options{}, asked, func(id int, cost float64, found bool) error {
		if seen++; !asked(id) || !found || cost != want[id] {
			t.Errorf("request %d costs %g, found %v, want %g", id, cost, found, want[id])
		}
		return nil
	})
	if err != nil || seen != len(want)-1 {
		t.Fatalf("%d requests, %v", seen, err)
	}
}
