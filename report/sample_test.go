package report

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"runtime"
	"testing"

	"sublet/plan"
	"sublet/vnet"
)

var (
	alice = vnet.LeaseID{Tenant: "alice", Network: "net"}
	other = vnet.LeaseID{Tenant: "alice", Network: "other"}
	bob   = vnet.LeaseID{Tenant: "bob", Network: "net"}
)

// sent is a sample after it went over a wire.
func sent(t *testing.T, s Sample) (got Sample) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSamplesCarryTraffic(t *testing.T) {
	link := plan.VxLink{Lease: alice, Index: 3, Path: 1}
	for _, want := range []Traffic{
		{Link: "a-b", First: true, Packets: 7, Bytes: 700},
		{Link: "a-b", Direction: 1, Last: true, Packets: 9, Bytes: 1e12, Drops: map[string]uint64{"queue": 3, "closed": 1}},
	} {
		s := sent(t, want.Sample(link))
		if got := Traffics([]Sample{s}); !reflect.DeepEqual(got, []Traffic{want}) {
			t.Errorf("%+v became %+v", want, got)
		}
		if s.Kind != plan.KindVxLink || s.Key != link.Key() || s.Lease != alice {
			t.Errorf("it is of %s %s, %s", s.Kind, s.Key, s.Lease)
		}
	}
}

// What a tunnel could not send is the link's that begins there, and no other's.
func TestTunnelsDropsAreTheirLinks(t *testing.T) {
	tunnel := func(id vnet.LeaseID, n uint64) Sample {
		state := TunnelState{Overlay: plan.Overlay{Lease: id, Link: "a-b"}, State: TunnelValid, Drops: map[string]uint64{"unresolved": n, "port": 50}}
		return state.Sample([]string{"unresolved"})
	}
	link := plan.VxLink{Lease: alice}
	got := Traffics([]Sample{
		Traffic{Link: "a-b", First: true, Drops: map[string]uint64{"queue": 1}}.Sample(link), Traffic{Link: "a-b", Direction: 1, Last: true}.Sample(link),
		Traffic{Link: "a-c", First: true}.Sample(link), Traffic{Link: "a-b", First: true, Last: true}.Sample(link),
		tunnel(alice, 2), tunnel(bob, 40),
	})
	want := []map[string]uint64{{"queue": 1, "unresolved": 2}, nil, nil, nil}
	for i, t2 := range got {
		if !reflect.DeepEqual(t2.Drops, want[i]) {
			t.Errorf("link %d dropped %v, want %v", i, t2.Drops, want[i])
		}
	}
}

func TestSamplesCarryForwarding(t *testing.T) {
	for _, want := range []Forwarding{
		{Kind: plan.KindVxRouter, Of: "alice.net.r", Why: "rules", Fallbacks: map[string]uint64{"ttl": 1, "local": 2}},
		{Kind: plan.KindSwitchPort, Of: "alice.net.s.switch/p0", Fast: true, Packets: 9, Bytes: 900, Chained: 8, Floods: 2, Answers: 3, Full: 4, Dropped: map[string]uint64{"isolated": 5}},
	} {
		s := sent(t, want.Sample(alice))
		if got := Forwardings([]Sample{s}); !reflect.DeepEqual(got, []Forwarding{want}) {
			t.Errorf("%+v became %+v", want, got)
		}
	}
}

func TestSamplesCarryTunnels(t *testing.T) {
	address := netip.MustParseAddr
	for _, want := range []TunnelState{
		{Host: "h1", State: TunnelNone, Drops: map[string]uint64{"unknown": 3}},
		{Host: "h1", State: TunnelValid, NextHop: "02:00:00:00:00:01", PathMTU: 1450, Hits: 1, Bytes: 2, Received: 3, ReceivedBytes: 4,
			Drops:   map[string]uint64{"unresolved": 3, "port": 4},
			Overlay: plan.Overlay{Lease: alice, Link: "a-b", VNI: 12, Interface: "eth0", Local: address("192.0.2.1"), Remote: address("192.0.2.2"), MTU: 1500}},
		{Host: "h2", State: TunnelUnresolved, Reason: "no route",
			Overlay: plan.Overlay{Lease: bob, Link: "a-b", VNI: 13, Protocol: vnet.GRE, Interface: "eth0", Local: address("2001:db8::1"), Remote: address("2001:db8::2"),
				MTU: 1400, BestEffort: true, Ethernet: "02:00:00:00:00:01 02:00:00:00:00:02"}},
	} {
		got, err := Tunnels([]Sample{sent(t, want.Sample([]string{"unresolved"}))})
		if err != nil || !reflect.DeepEqual(got, []TunnelState{want}) {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	}
	if list, err := Tunnels([]Sample{{Kind: plan.KindOverlay, State: TunnelValid, Labels: map[string]string{labelVNI: "x"}}}); err == nil {
		t.Errorf("a tunnel without a number was read as %+v", list)
	}
}

func TestScopes(t *testing.T) {
	all, tenant, one := Scope{}, Scope{Tenant: "alice"}, Of(alice)
	host := vnet.LeaseID{}
	for _, c := range []struct {
		scope Scope
		holds [4]bool
	}{{all, [4]bool{true, true, true, true}}, {tenant, [4]bool{true, true, false, false}}, {one, [4]bool{true, false, false, false}}} {
		samples := []Sample{{Lease: alice}, {Lease: other}, {Lease: bob}, {Lease: host}}
		n := 0
		for i, s := range samples {
			if c.scope.Holds(s.Lease) != c.holds[i] {
				t.Errorf("%v holds %s: %v", c.scope, s.Lease, !c.holds[i])
			}
			if c.holds[i] {
				n++
			}
		}
		if got := c.scope.Filter(samples); len(got) != n {
			t.Errorf("%v of %d samples is %d, want %d", c.scope, len(samples), len(got), n)
		}
	}
	for _, c := range []struct {
		of   []Scope
		want Scope
	}{{[]Scope{one}, one}, {[]Scope{one, one}, one}, {[]Scope{one, Of(other)}, tenant}, {[]Scope{tenant, one}, tenant}, {[]Scope{one, Of(bob)}, all}, {[]Scope{one, all}, all}} {
		if got := Union(c.of[0], c.of[1:]...); got != c.want {
			t.Errorf("%v together are %v, want %v", c.of, got, c.want)
		}
	}
}

func TestRingKeepsItsBound(t *testing.T) {
	r := NewRing[int](100)
	if values, whole := r.After(0); len(values) != 0 || !whole {
		t.Errorf("an empty ring has %v, %v", values, whole)
	}
	for i := 1; i <= 1000; i++ {
		if n := r.Add(i, 10+i%7); n != uint64(i) || r.size > 100 {
			t.Fatalf("number %d, %d bytes kept", n, r.size)
		}
	}
	if values, whole := r.After(998); !reflect.DeepEqual(values, []int{999, 1000}) || !whole {
		t.Errorf("after 998: %v, %v", values, whole)
	}
	if values, whole := r.After(500); len(values) < 6 || values[len(values)-1] != 1000 || whole {
		t.Errorf("after 500: %v, %v", values, whole)
	}
	if values, whole := r.After(1001); len(values) != 0 || whole {
		t.Errorf("after what never was: %v, %v", values, whole)
	}
	for after, want := range map[uint64]uint64{998: 999, 999: 1000, 1000: 0} {
		if value, number, whole := r.Next(after); number != want || value != int(want) || !whole {
			t.Errorf("the next after %d is %d, number %d, %v", after, value, number, whole)
		}
	}
	for _, after := range []uint64{0, 500, 1001} {
		if _, number, whole := r.Next(after); number != 0 || whole {
			t.Errorf("after %d, which is not kept, comes %d, %v", after, number, whole)
		}
	}
	r.Add(0, 101)
	if values, whole := r.After(1000); !reflect.DeepEqual(values, []int{0}) || !whole || r.Last() != 1001 || r.size != 101 {
		t.Errorf("a value larger than the ring: %v, %v", values, whole)
	}
	if values, whole := r.After(999); len(values) != 1 || whole {
		t.Errorf("beside a value larger than the ring: %v, %v", values, whole)
	}
	if r.Add(1, 10); r.size != 10 {
		t.Errorf("%d bytes are kept after it", r.size)
	}
}

// Size is what bounds memory: it must not say less than half of what is taken.
func TestSizeIsAboutRight(t *testing.T) {
	const n = 2000
	link := plan.VxLink{Lease: alice}
	traffic := Traffic{Link: "a-b", First: true, Packets: 7, Bytes: 700, Drops: map[string]uint64{"queue": 3}}
	kept := make([]Sample, n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range kept {
		kept[i] = traffic.Sample(link)
	}
	runtime.ReadMemStats(&after)
	taken := int(after.TotalAlloc-before.TotalAlloc)/n + int(reflect.TypeFor[Sample]().Size())
	if size := kept[0].Size(); size < taken/2 || size > 3*taken {
		t.Errorf("Size is %d, %d bytes are taken", size, taken)
	}
}
