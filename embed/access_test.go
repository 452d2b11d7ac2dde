package embed

import (
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/vnet"
)

func exitSubstrate() vnet.Substrate {
	sub := waySubstrate()
	sub.NAT = nil
	sub.Exits = []vnet.Exit{{Name: "campus", Host: "h2", Interface: "eth2", VLANs: vnet.VLANRange{First: 100, Last: 101}, Capacity: 100 * vnet.Mbit}}
	return sub
}

func accessRequest(network string, out vnet.Rate, vlan uint16) vnet.Request {
	r := wayRequest(network, out)
	r.Routers = nil
	r.Switches = []vnet.VirtualSwitch{{Name: "out", Access: "campus", VLAN: vlan, Kind: vnet.SwitchKernel}}
	return r
}

// Rates and VLANs of exits are booked; what does not fit is refused, with words,
// until it does. A network keeps its VLAN where it can.
func TestExitsAreBooked(t *testing.T) {
	sub, cal := exitSubstrate(), calendar.New()
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	hour := func(from int) vnet.Window {
		return vnet.Window{Start: noon.Add(time.Duration(from) * time.Hour), End: noon.Add(time.Duration(from+1) * time.Hour)}
	}
	admit := func(r vnet.Request, w vnet.Window) (vnet.Mapping, error) {
		m, err := embedOn(sub, cal, r, w)
		if err != nil {
			return m, err
		}
		bookings, err := bookingsOn(sub, r, w, m)
		if err != nil {
			t.Fatal(err)
		}
		return m, cal.Book(bookings...)
	}
	first, err := admit(accessRequest("first", 60*vnet.Mbit, 0), hour(0))
	if err != nil || first.Nodes["out"] != "h2" || first.VLANs["out"] != 100 {
		t.Fatalf("%+v, %v", first, err)
	}
	for dir, want := range map[vnet.Direction]int64{vnet.Forward: 40, vnet.Reverse: 70} {
		if free := cal.Residual(rate.Exit("campus", dir).String(), int64(100*vnet.Mbit), hour(0)); free != want*int64(vnet.Mbit) {
			t.Errorf("direction %d has %s free, not %dMbit", dir, vnet.Rate(free), want)
		}
	}
	refused(t, "exit campus has 40Mbit of 100Mbit free outwards")(admit(accessRequest("large", 50*vnet.Mbit, 0), hour(0)))
	refused(t, "VLAN 100 of exit campus is taken")(admit(accessRequest("same", 0, 100), hour(0)))
	refused(t, "VLANs 100-101, not VLAN 99")(admit(accessRequest("beyond", 0, 99), hour(0)))
	second, err := admit(accessRequest("second", 40*vnet.Mbit, 101), hour(0))
	if err != nil || second.VLANs["out"] != 101 {
		t.Fatalf("%+v, %v", second, err)
	}
	refused(t, "is taken in this window")(admit(accessRequest("third", 0, 0), hour(0)))
	if _, err := admit(accessRequest("third", 100*vnet.Mbit, 0), hour(1)); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	unknown := accessRequest("unknown", 0, 0)
	unknown.Switches[0].Access = "beach"
	refused(t, "no exit")(admit(unknown, hour(2)))

	e, err := New(sub)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := e.Embed(calendar.New(), accessRequest("second", 0, 0), hour(0), Options{Present: second})
	if err != nil || kept.VLANs["out"] != 101 {
		t.Errorf("kept %v, %v", kept.VLANs, err)
	}
}

// A substrate that offers an exit otherwise does not carry who uses what is gone.
func TestExitsStayOffered(t *testing.T) {
	r, w := accessRequest("net", vnet.Mbit, 0), vnet.Window{Start: time.Unix(0, 0)}
	m, err := embedOn(exitSubstrate(), calendar.New(), r, w)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*vnet.Exit){
		"":                  func(*vnet.Exit) {},
		"another interface": func(x *vnet.Exit) { x.Interface = "eth3" },
		"no such VLAN":      func(x *vnet.Exit) { x.VLANs.First = 101 },
		"another host":      func(x *vnet.Exit) { x.Host = "h1" },
		"another name":      func(x *vnet.Exit) { x.Name = "beach" },
	} {
		sub := exitSubstrate()
		change(&sub.Exits[0])
		if _, err := bookingsOn(sub, r, w, m); (err == nil) != (what == "" || what == "another interface") {
			t.Errorf("%s: %v", what, err)
		}
	}
	untagged := exitSubstrate()
	untagged.Exits[0].VLANs = vnet.VLANRange{}
	cal := calendar.New()
	if m, err = embedOn(untagged, cal, r, w); err != nil || m.VLANs["out"] != 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	bookings, err := bookingsOn(untagged, r, w, m)
	if err != nil || cal.Book(bookings...) != nil {
		t.Fatal(err)
	}
	refused(t, "one network can have it")(embedOn(untagged, cal, accessRequest("second", 0, 0), w))
}
