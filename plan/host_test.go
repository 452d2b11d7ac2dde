package plan

import (
	"encoding/json"
	"reflect"
	"testing"
)

// each calls f with an empty item of every section of a Host.
func each(t *testing.T, f func(t *testing.T, item Item)) {
	item := reflect.TypeFor[Item]()
	host, sections := reflect.TypeFor[Host](), 0
	for i := range host.NumField() {
		field := host.Field(i)
		if field.Type.Kind() != reflect.Slice || field.Type == reflect.TypeFor[[]Unknown]() || field.Type == reflect.TypeFor[[]Term]() {
			continue
		}
		if !field.Type.Elem().Implements(item) {
			t.Errorf("Host.%s: %s is no Item", field.Name, field.Type.Elem())
			continue
		}
		sections++
		t.Run(field.Name, func(t *testing.T) { f(t, reflect.New(field.Type.Elem()).Elem().Interface().(Item)) })
	}
	if sections != len(Kinds) {
		t.Errorf("a Host has %d sections, Kinds %d", sections, len(Kinds))
	}
}

// TestEverySectionHoldsItsItems: added, listed, met, compared and sent.
func TestEverySectionHoldsItsItems(t *testing.T) {
	each(t, func(t *testing.T, item Item) {
		var h Host
		h.Add(item)
		if list := h.Items(); len(list) != 1 || !Equal(list[0], item) {
			t.Fatalf("lists %v", list)
		}
		if meet := Meet(h, h); len(meet.Items()) != 1 {
			t.Errorf("meets itself as %v", meet)
		}
		if list := Diff(h, Host{}); len(list) != 1 || list[0].Op != Add {
			t.Errorf("from nothing: %v", list)
		}
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var sent Host
		if err := json.Unmarshal(text, &sent); err != nil || len(Diff(h, sent)) != 0 {
			t.Errorf("sent as %s: %v, %v", text, err, Diff(h, sent))
		}
	})
}
