package vnet

import (
	"reflect"
	"strings"
	"testing"
)

func TestInterfaceNames(t *testing.T) {
	named := func(a, b, first, second string) VirtualLink {
		return VirtualLink{Ends: [2]string{a, b}, Interfaces: [2]string{first, second}}
	}
	for _, c := range []struct {
		name, want string // in the problem; "": there is none
		r          Request
	}{
		{"stated", "", pairs(named("a", "b", "eth1", "1.100"), named("a", "c", "up-to_core.1", ""))},
		{"of others' numbers", "", pairs(named("a", "b", "eth1", ""), named("a", "c", "eth0", ""))},
		{"twice", "links[1].ends[0]: interface eth1 of a belongs to link a-b already", pairs(named("a", "b", "eth1", ""), named("a", "c", "eth1", ""))},
		{"a number's", "interface eth1 of a belongs to link a-b already", pairs(named("a", "b", "eth1", ""), named("a", "c", "", ""))},
		{"a switch's", "ports of switch \"s\" have no names", pairs(named("a", "s", "", "p1"))},
		{"too long", "is no name of an interface", pairs(named("a", "b", "a234567890123456", ""))},
		{"with a slash", "is no name of an interface", pairs(named("a", "b", "1/1/c1", ""))},
		{"a path", "is no name of an interface", pairs(named("a", "b", "..", ""))},
		{"loopback", "is the name of another device", pairs(named("a", "b", "lo", ""))},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.r.Check()
			if err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestInterfacesOfLinks(t *testing.T) {
	r := pairs(VirtualLink{Ends: [2]string{"a", "s"}}, VirtualLink{Ends: [2]string{"a", "b"}, Interfaces: [2]string{"", "up"}}, VirtualLink{Ends: [2]string{"b", "s"}})
	want := map[string][2]string{"a-s": {"eth0", "eth0"}, "a-b": {"eth1", "up"}, "b-s": {"eth1", "eth1"}}
	if got := r.Interfaces(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A link that returns in a stage has the interfaces that it had.
func TestReturningLinkKeepsItsInterfaces(t *testing.T) {
	l := VirtualLink{Name: "l", Ends: [2]string{"a", "b"}}
	r := pairs(l)
	l.Interfaces[1] = "up"
	r.Stages = []Stage{{Name: "without", After: 1, Remove: []string{"l"}}, {Name: "again", After: 2, Add: Topology{Links: []VirtualLink{l}}}}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "returns with other") {
		t.Errorf("%v", err)
	}
}
