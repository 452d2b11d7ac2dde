package vxlink

import (
	"net/netip"
	"reflect"
	"testing"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
)

// A host's own interfaces are told with what ports need to be compared, those
// with addresses first; Sublet's devices and queues are not.
func TestInterfaces(t *testing.T) {
	a := netip.MustParseAddr("192.0.2.1")
	links := []kernel.Link{
		{Index: 1, Name: "lo"}, {Index: 2, Name: "eth1", MTU: 9000}, {Index: 3, Name: "eth2", MTU: 1500}, {Index: 4, Name: plan.Trunk(demo), Kind: "veth"},
	}
	queues := []kernel.Qdisc{
		{Index: 2, Kind: "fq", Handle: kernel.Handle(8, 0), Parent: kernel.TCRoot},
		{Index: 3, Kind: "fq_codel", Parent: kernel.TCRoot}, // by default
		{Index: 3, Kind: "bfifo", Handle: kernel.Handle(16, 0), Parent: kernel.Handle(1, 16)},
	}
	got := interfacesOf(links, []kernel.Address{{Index: 3, Local: a}}, queues)
	want := []report.Interface{{Name: "eth2", MTU: 1500, Addresses: []netip.Addr{a}}, {Name: "eth1", MTU: 9000, Queue: "fq"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var many []kernel.Link
	for i := range 2 * report.MostInterfaces {
		many = append(many, kernel.Link{Index: 10 + i, Name: "veth"})
	}
	if n := len(interfacesOf(many, nil, nil)); n != report.MostInterfaces {
		t.Errorf("%d interfaces are told", n)
	}
}
