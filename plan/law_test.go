package plan

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

// everyKind calls f with random items of every kind of every section: any
// fields, within what JSON can say.
func everyKind(t *testing.T, f func(t *rapid.T, draw func() Item)) {
	for _, s := range sections {
		for _, kind := range s.kinds {
			t.Run(string(kind), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					f(t, func() Item { return randomItem(t, s, kind) })
				})
			})
		}
	}
}

func randomItem(t *rapid.T, s section, kind Kind) Item {
	empty, err := s.read([]byte("[{}]"))
	if err != nil {
		t.Fatal(err)
	}
	value := reflect.New(reflect.TypeOf(empty[0])).Elem()
	fill(t, value, true)
	item := value.Interface().(Item)
	if s, ok := item.(Spread); ok {
		if s.VNI++; kind == KindPrefixSpread {
			s.VNI = 0
		}
		item = s
	}
	for of, names := range switchTypes {
		switch sw := item.(type) {
		case Switch:
			if sw.Type = of; of != vnet.SwitchEngine {
				sw.Engine = nil
			} else if sw.Engine == nil {
				sw.Engine = &Engine{}
			}
			if of != vnet.SwitchOpenFlow {
				sw.OpenFlow = nil
			} else if sw.OpenFlow == nil {
				sw.OpenFlow = &OpenFlow{}
			}
			item = sw
		case SwitchPort:
			if sw.Type = of; of != vnet.SwitchEngine {
				sw.Engine = nil
			} else if sw.Engine == nil {
				sw.Engine = &EnginePort{}
			}
			item = sw
		}
		if names.kind == kind || names.port == kind {
			break
		}
	}
	if item.Kind() != kind {
		t.Fatalf("an item of %s is of kind %q", s.name, item.Kind())
	}
	return item
}

// fill draws what a value has; of one that is not new, its numbers only.
func fill(t *rapid.T, v reflect.Value, fresh bool) {
	switch value := v.Addr().Interface().(type) {
	case *netip.Addr:
		if fresh {
			*value = netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "address")})
		}
		return
	case *netip.Prefix:
		if fresh {
			*value = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, rapid.Byte().Draw(t, "prefix"), 0, 0}), 16)
		}
		return
	case *Gap:
		*value = Gap(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "gap"))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).Addr().CanInterface() && v.Type().Field(i).Tag.Get("json") != "-" { // only what is read back has others
				fill(t, v.Field(i), fresh)
			}
		}
	case reflect.Pointer:
		if fresh && rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			copied := reflect.New(v.Type().Elem())
			copied.Elem().Set(v.Elem())
			fill(t, copied.Elem(), fresh)
			v.Set(copied)
		}
	case reflect.Slice, reflect.Array:
		fillList(t, v, fresh)
	case reflect.Map:
		if fresh && rapid.Bool().Draw(t, "there") {
			v.Set(reflect.ValueOf(map[string]string{rapid.StringMatching("[a-z]{1,3}").Draw(t, "key"): "value"}))
		}
	case reflect.String:
		if fresh {
			v.SetString(rapid.StringMatching("[a-z][a-z0-9]{0,7}").Draw(t, "text"))
		}
	case reflect.Bool:
		if fresh {
			v.SetBool(rapid.Bool().Draw(t, "bool"))
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(0, 1<<40).Draw(t, "number"))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if fresh {
			v.SetUint(rapid.Uint64Range(0, 255).Draw(t, "number"))
		}
	default:
		t.Fatalf("items have a %s: draw it here", v.Type())
	}
}

func fillList(t *rapid.T, v reflect.Value, fresh bool) {
	if v.Kind() == reflect.Slice {
		n := v.Len()
		if fresh {
			n = rapid.IntRange(0, 3).Draw(t, "length")
		}
		if n == 0 {
			return
		}
		copied := reflect.MakeSlice(v.Type(), n, n)
		reflect.Copy(copied, v)
		v.Set(copied)
	}
	for i := range v.Len() {
		fill(t, v.Index(i), fresh)
	}
}

// TestItemsAreListedAndSent: what was added is listed, and comes back from JSON
// and from a sealed plan.
func TestItemsAreListedAndSent(t *testing.T) {
	everyKind(t, func(t *rapid.T, draw func() Item) {
		item := draw()
		h := Host{Host: "h1", Revision: 3}
		h.Add(item)
		if list := h.Items(); len(list) != 1 || !Equal(list[0], item) {
			t.Fatalf("lists %v", list)
		}
		if list := Diff(h, Host{}); len(list) != 1 || list[0].Op != Add {
			t.Errorf("from nothing: %v", list)
		}
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var sent Host
		if err := json.Unmarshal(text, &sent); err != nil || !reflect.DeepEqual(sent, h) {
			t.Fatalf("%v: sent as %s came\n%+v\nof\n%+v", err, text, sent, h)
		}
		for form := uint64(1); form <= Form; form++ {
			sealed, err := SealIn(form, h)
			spared := spare(item, form)
			if s, _ := sectionOf(item.Kind()); form < s.formOf(spared) && isUnknown(err) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Host{Host: h.Host, Revision: h.Revision}
			want.Add(spared)
			if got, err := Unseal(sealed); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%v: sealed as %s came\n%+v\nof\n%+v", err, sealed, got, want)
			}
		}
	})
}

// TestItemsSayWhoseTheyAre: every item that is of a lease says so, in its key too,
// so that items of two leases never take each other's place.
func TestItemsSayWhoseTheyAre(t *testing.T) {
	everyKind(t, func(t *rapid.T, draw func() Item) {
		item := draw()
		if strings.ContainsAny(item.String(), "\n\r") || item.Key() == "" {
			t.Errorf("key %q, text %q", item.Key(), item)
		}
		other := reflect.New(reflect.TypeOf(item)).Elem()
		other.Set(reflect.ValueOf(item))
		lease := other.FieldByName("Lease")
		if !lease.IsValid() {
			if k := item.Kind(); k != KindUplink && k != KindSpread && k != KindPrefixSpread {
				t.Errorf("%s has no lease: say here why its items are the host's own", k)
			}
			return
		}
		if item.LeaseID() != lease.Interface() {
			t.Errorf("%s is of %v", item, item.LeaseID())
		}
		lease.Set(reflect.ValueOf(vnet.LeaseID{Tenant: item.LeaseID().Tenant + "x", Network: item.LeaseID().Network}))
		if other.Interface().(Item).Key() == item.Key() {
			t.Errorf("items of two leases have the key %s", item.Key())
		}
	})
}

// TestItemsMeet: an item meets itself in itself; what two items with the same
// properties and other amounts meet in is more than neither; and where an amount
// gives way, it is the same in both orders.
func TestItemsMeet(t *testing.T) {
	everyKind(t, func(t *rapid.T, draw func() Item) {
		a := draw()
		value := reflect.New(reflect.TypeOf(a)).Elem()
		value.Set(reflect.ValueOf(a))
		fill(t, value, false)
		b := value.Interface().(Item)
		ab, ba := a.Meet(b), b.Meet(a)
		for text, same := range map[string]bool{
			"itself": Equal(a.Meet(a), a), "again": Equal(ab.Meet(b), ab), "back": Equal(ab.Meet(a), ab),
		} {
			if !same {
				t.Errorf("meets %s otherwise:\n%v\n%v\n%v", text, a, b, ab)
			}
		}
		inA, inB, inAB, inBA := numbers(a), numbers(b), numbers(ab), numbers(ba)
		for i, got := range inAB {
			if (got != inA[i] || inBA[i] != inB[i]) && got != inBA[i] {
				t.Errorf("%d and %d meet in %d, in the other order in %d:\n%v\n%v", inA[i], inB[i], got, inBA[i], a, b)
			}
			if inA[i] != 0 && got > inA[i] {
				t.Errorf("%d and %d meet in %d, which is more:\n%v\n%v", inA[i], inB[i], got, a, b)
			}
		}
	})
}

// numbers lists those of an item, field by field.
func numbers(item Item) (list []int64) {
	var gather func(v reflect.Value)
	gather = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				gather(v.Field(i))
			}
		case reflect.Pointer:
			if !v.IsNil() {
				gather(v.Elem())
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				gather(v.Index(i))
			}
		case reflect.Int, reflect.Int64:
			list = append(list, v.Int())
		}
	}
	gather(reflect.ValueOf(item))
	return list
}

// stray is of a kind that no section has.
type stray struct{ VNode }

func (stray) Kind() Kind { return "stray" }

// TestNothingIsLostInSilence: an item of no section is listed, and cannot be sent;
// what only another version knows cannot be read.
func TestNothingIsLostInSilence(t *testing.T) {
	var h Host
	h.Add(stray{}, VNode{Node: "n"})
	if list := h.Items(); len(list) != 2 || list[1].Kind() != "stray" {
		t.Errorf("lists %v", list)
	}
	if _, err := Seal(h); err == nil {
		t.Error("an item of no section was sealed")
	}
	for _, text := range []string{
		`{"host":"h1","curtains":[]}`, `{"host":"h1","revision":7,"paused":true}`,
		`{"host":"h1","switches":[{"switch":"s","kind":"optical"}]}`, `{"host":"h1","switch_ports":[{"switch":"s","kind":"openflow"}]}`,
	} {
		if got, err := Unseal(sealed([]byte(text))); !isUnknown(err) {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	var read Host
	if err := json.Unmarshal([]byte(`{"host":"h1","nodes":{"a":1}}`), &read); err == nil || isUnknown(err) {
		t.Errorf("no list is read as %v, %v", read, err)
	}
}
