package vxrouter

import (
	"net/netip"
	"reflect"
	"testing"
	"time"
)

// What zebra 8.4 said of a router of three, one of whose routes is not the best.
const ribText = `{
 "10.0.0.2/32":[{"prefix":"10.0.0.2/32","protocol":"ospf","selected":true,"installed":true,
  "nexthops":[{"fib":true,"ip":"10.0.0.5","interfaceIndex":3,"active":true,"onLink":true}]}],
 "10.0.0.4/32":[{"prefix":"10.0.0.4/32","protocol":"ospf","selected":true,"installed":true,
  "nexthops":[{"fib":true,"ip":"10.0.0.6","interfaceIndex":4,"active":true},{"fib":true,"ip":"10.0.0.5","interfaceIndex":3,"active":true}]}],
 "10.0.0.5/32":[{"prefix":"10.0.0.5/32","protocol":"ospf","nexthops":[{"ip":"10.0.0.6","interfaceIndex":4,"active":true}]}],
 "10.0.0.7/32":[{"prefix":"10.0.0.7/32","protocol":"ospf","selected":true,"installed":true,"queued":true,
  "nexthops":[{"fib":true,"ip":"10.0.0.6","interfaceIndex":4,"active":true}]}],
 "2001:db8::/64":[{"prefix":"2001:db8::/64","protocol":"bgp","selected":true,"installed":true,
  "nexthops":[{"fib":true,"ip":"fe80::1","interfaceIndex":3,"active":true}]}],
 "10.0.0.8/32":[{"prefix":"10.0.0.8/32","protocol":"ospf","selected":true,"installed":true,
  "nexthops":[{"fib":true,"interfaceIndex":4,"active":true},{"fib":true,"ip":"fe80::1","interfaceIndex":4,"active":true}]}]
}`

func TestWhatZebraTakesForInstalled(t *testing.T) {
	rib := make(table)
	err := rib.read([]byte(ribText))
	via := func(last byte, index int) nextHop {
		return nextHop{netip.AddrFrom4([4]byte{10, 0, 0, last}), index, protocolOSPF}
	}
	want := table{
		netip.MustParsePrefix("10.0.0.2/32"):   {via(5, 3)},
		netip.MustParsePrefix("10.0.0.4/32"):   {via(5, 3), via(6, 4)},
		netip.MustParsePrefix("2001:db8::/64"): {{netip.MustParseAddr("fe80::1"), 3, protocolBGP}},
	}
	if err != nil || !reflect.DeepEqual(rib, want) {
		t.Fatalf("%v, %v", rib, err)
	}
	fib := table{netip.MustParsePrefix("10.0.0.4/32"): {via(6, 4)}}
	if got := differing(rib, fib); !reflect.DeepEqual(got, want) {
		t.Errorf("lacking are %v", got)
	}
	if got := differing(rib, rib); len(got) != 0 {
		t.Errorf("of itself it lacks %v", got)
	}
	for _, text := range []string{"", "[]", `{"a":[{"prefix":"x"}]}`, `{"a":[{"prefix":"10.0.0.1/32","nexthops":[{"ip":7}]}]}`} {
		if err := make(table).read([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// zebra is asked while the kernel's table changes, seldom otherwise, and more
// and more seldom when it does not answer.
func TestZebraIsAskedWhenItMatters(t *testing.T) {
	var c comparison
	now := time.Unix(1000, 0)
	one := table{netip.MustParsePrefix("10.0.0.2/32"): {{index: 3}}}
	for i, step := range []struct {
		after time.Duration
		fib   table
		due   bool
		err   error
	}{
		{0, one, true, nil}, {4 * time.Second, one, true, nil}, {2 * time.Second, one, false, nil},
		{time.Second, nil, true, nil}, {6 * time.Second, nil, false, nil}, {9 * time.Second, nil, true, nil},
		{time.Second, one, true, errTest}, {9 * time.Second, nil, false, nil}, {2 * time.Second, one, true, errTest},
		{19 * time.Second, nil, false, nil}, {time.Second, nil, true, errTest}, {39 * time.Second, one, false, nil},
	} {
		now = now.Add(step.after)
		due := c.due(now, step.fib)
		if due != step.due {
			t.Errorf("step %d: due is %v", i, due)
		}
		if due {
			c.note(now, step.err)
		}
	}
}

var errTest = errorString("no answer")

type errorString string

func (e errorString) Error() string { return string(e) }
