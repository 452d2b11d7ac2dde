package plan

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sublet/vnet"
)

func isUnknown(err error) bool { return errors.Is(err, ErrUnknown) && !errors.Is(err, ErrDamaged) }

// TestAPlanOfTheFormerVersionIsRead: one that an agent of the version before
// form 2 kept, with switches of both kinds, is the plan that it was.
func TestAPlanOfTheFormerVersionIsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/former.json")
	if err != nil {
		t.Fatal(err)
	}
	h, err := Unseal(text)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "former", h.String())
	if sw := Of[Switch](h); len(sw) != 2 || sw[0].Type != vnet.SwitchKernel || sw[0].Engine != nil || sw[1].Type != vnet.SwitchEngine || sw[1].Engine.Manager == "" {
		t.Errorf("switches %+v", sw)
	}
}

// TestAFormerAgentGetsNoHalfPlan: it would pass over what it does not know, and
// say that all is done.
func TestAFormerAgentGetsNoHalfPlan(t *testing.T) {
	port, numbered := &Port{Namespace: "n"}, &Port{Namespace: "n", More: []netip.Prefix{netip.MustParsePrefix("2001:db8::1/64")}}
	for item, known := range map[Item]bool{
		VxLink{Ends: [2]End{{Port: port}, {Port: port}}}:                                   true,
		VxLink{Ends: [2]End{{Port: port}, {Port: port, Impair: vnet.Impairment{Loss: 1}}}}: false,
		VxLink{Ends: [2]End{{Port: numbered}, {Port: port}}}:                               false,
		VxLink{Link: "joins", Ends: [2]End{{Join: numbered}, {Port: port}}}:                false,
	} {
		h := Host{Host: "h1"}
		h.Add(item)
		if _, err := SealIn(1, h); known != (err == nil) || err != nil && !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", item, err)
		}
		if _, err := Seal(h); err != nil {
			t.Error(err)
		}
	}
	for _, item := range []Item{Gateway{Node: "out"}, Setup{Node: "web"}} {
		h := Host{Host: "h1"}
		h.Add(item)
		if _, err := SealIn(1, h); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", item, err)
		}
	}
}

// TestEveryMemberHasAForm: a member that items did not have in the last release
// needs a row in since, and Form be higher than that release's. Then write the
// golden file anew.
func TestEveryMemberHasAForm(t *testing.T) {
	var b strings.Builder
	for _, s := range sections {
		listMembers(&b, s.name, 1, s.item, nil)
	}
	golden(t, "members", b.String())
	for path, form := range since {
		if line := fmt.Sprintf("%s %d\n", path, form); form > Form || !strings.Contains(b.String(), line) {
			t.Errorf("since has %s, which is no member, or is of no form yet", strings.TrimSpace(line))
		}
	}
}

// listMembers writes what stands at a path, with the form that brought it, and
// what is below. Types that write their JSON themselves end a path.
func listMembers(b *strings.Builder, path string, form uint64, of reflect.Type, above []reflect.Type) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Array {
		of = of.Elem()
	}
	form = max(form, since[path])
	if line := fmt.Sprintf("%s %d\n", path, form); !strings.Contains(b.String(), line) {
		b.WriteString(line)
	}
	writes := of.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || of.Implements(reflect.TypeFor[json.Marshaler]())
	if of.Kind() != reflect.Struct || writes || slices.Contains(above, of) {
		return
	}
	for i := range of.NumField() {
		if member, ok := memberPath(path, of.Field(i)); ok {
			listMembers(b, member, form, of.Field(i).Type, append(above, of))
		}
	}
}

// TestWhatIsNotKnownIsNotPassedOver: an agent that did the rest of an item would
// say that all is done.
func TestWhatIsNotKnownIsNotPassedOver(t *testing.T) {
	for _, text := range []string{
		`{"host":"h1","links":[{"link":"a","colour":1}]}`,
		`{"host":"h1","switches":[{"switch":"a","colour":1}]}`,
		`{"host":"h1","switch_ports":[{"switch":"a","engine":{"colour":1}}]}`,
		`{"host":"h1","colours":[]}`,
	} {
		var h Host
		if err := json.Unmarshal([]byte(text), &h); !isUnknown(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestAFormerAgentGetsItsForm: what it is handed out has no section that it
// would not see, and no switch of kind vxswitch among the kernel's.
func TestAFormerAgentGetsItsForm(t *testing.T) {
	h := Host{Host: "h1"}
	lease := vnet.LeaseID{Tenant: "alice", Network: "lan"}
	h.Add(
		Switch{Lease: lease, Switch: "k", Type: vnet.SwitchKernel, Ageing: 1},
		Switch{Lease: lease, Switch: "x", Type: vnet.SwitchEngine, Ageing: 1, Engine: &Engine{Scheduler: "drr", Buffer: 5, Manager: "tail-drop"}},
		SwitchPort{Lease: lease, Switch: "k", Type: vnet.SwitchKernel, Interface: "eth0", LearningPort: LearningPort{MACs: 3}},
		SwitchPort{Lease: lease, Switch: "x", Type: vnet.SwitchEngine, Interface: "eth0", Engine: &EnginePort{In: 7, Scheduler: "rr"}},
	)
	for form, want := range map[uint64][]string{
		1: {
			`"switches":[{"lease":{"tenant":"alice","network":"lan"},"switch":"k","kind":"kernel","ageing_ns":1}]`,
			`"vxswitches":[{"lease":{"tenant":"alice","network":"lan"},"switch":"x","kind":"vxswitch","ageing_ns":1,"scheduler":"drr","buffer_bytes":5,"manager":"tail-drop"}]`,
			`"switch_ports":[{"lease":{"tenant":"alice","network":"lan"},"switch":"k","kind":"kernel","interface":"eth0","macs":3}]`,
			`"vxswitch_ports":[{"lease":{"tenant":"alice","network":"lan"},"switch":"x","kind":"vxswitch","interface":"eth0","in_bps":7,"scheduler":"rr"}]`,
		},
		Form: {`"engine":{"scheduler":"drr"`, `"engine":{"in_bps":7`},
	} {
		text, err := SealIn(form, h)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("form %d lacks %s:\n%s", form, part, text)
			}
		}
		if got, err := Unseal(text); err != nil || !reflect.DeepEqual(Of[Switch](got), Of[Switch](h)) {
			t.Errorf("form %d is read as %v, %v", form, got, err)
		}
	}
}
