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

func TestReportsOfFormerAgentsAreRead(t *testing.T) {
	var r Report
	if err := json.Unmarshal([]byte(`{"errors":{"vnode a.net.n":"add: busy","host":"read"}}`), &r); err != nil {
		t.Fatal(err)
	}
	want := Errors{{Kind: "host", Text: "read"}, {Kind: KindVNode, Key: "a.net.n", Text: "add: busy"}}
	if !reflect.DeepEqual(r.Errors, want) {
		t.Errorf("read %+v, want %+v", r.Errors, want)
	}
	text, err := json.Marshal(Report{Errors: want})
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again.Errors, want) {
		t.Errorf("read %+v, %v", again.Errors, err)
	}
	if err := json.Unmarshal([]byte(`{"errors":3}`), &r); err == nil {
		t.Error("a number was taken for errors")
	}
}
