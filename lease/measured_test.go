package lease

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sublet/vnet"
)

// local is a link between two nodes of one host.
func local(network vnet.VNetID, rate vnet.Rate) vnet.Request {
	r := vnet.Request{Network: network, Tenant: "alice"}
	r.Nodes = []vnet.VirtualNode{{Name: "a", Host: "h1"}, {Name: "b", Host: "h1"}}
	bandwidth := vnet.Static(rate)
	r.Links = []vnet.VirtualLink{{Name: "a-b", Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{bandwidth, bandwidth}}}
	return r
}

func TestAdmissionCountsOnNoMoreThanWasMeasured(t *testing.T) {
	b := pair(t)
	var rejection *vnet.Rejection
	if _, err := b.Admit(noon, local("large", vnet.DefaultHostCapacity+8), 1000); !errors.As(err, &rejection) || rejection.Offer == nil {
		t.Fatal("more than is assumed of a host that nobody measured is not refused with an offer:", err)
	}
	if _, err := b.Admit(noon, local("first", 2*vnet.Gbit), 1000); err != nil {
		t.Fatal("before it is measured:", err)
	}
	if err := b.Measured(noon, "h1", vnet.Measurement{Measured: vnet.Gbit}); !errors.Is(err, ErrConflict) {
		t.Fatal("less measured than is booked:", err)
	}
	if err := b.Release(noon, vnet.LeaseID{Tenant: "alice", Network: "first"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Measured(noon, "h1", vnet.Measurement{Measured: vnet.Gbit}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Admit(noon, local("second", 2*vnet.Gbit), 1000); !errors.As(err, &rejection) || rejection.Offer == nil {
		t.Fatal("more than was measured is not refused with an offer:", err)
	}
	if _, err := b.Admit(noon, *rejection.Offer, 1000); err != nil {
		t.Error("the offer:", err)
	}
}

// What a host forwards bounds its links to others as well.
func TestLinksCarryNoMoreThanTheirHostsForward(t *testing.T) {
	b := pair(t)
	rate := b.Substrate().Links[0].Leasable() / 2
	across := local("across", rate)
	across.Nodes[1].Host = "h2"
	if err := b.Measured(noon, "h2", vnet.Measurement{Measured: rate / 2}); err != nil {
		t.Fatal(err)
	}
	var rejection *vnet.Rejection
	if _, err := b.Admit(noon, across, 1000); !errors.As(err, &rejection) || rejection.Offer == nil {
		t.Fatal("more than h2 forwards is not refused with an offer:", err)
	}
	if _, err := b.Admit(noon, *rejection.Offer, 1000); err != nil {
		t.Error("the offer:", err)
	}
}

// All that a host's links start and end there is bound together.
func TestAHostForwardsForAllItsLinks(t *testing.T) {
	b := pair(t)
	most := b.Substrate().Links[0].Leasable()
	if err := b.Measured(noon, "h1", vnet.Measurement{Measured: most}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Admit(noon, local("inside", most/4), 1000); err != nil { // half of what it can
		t.Fatal(err)
	}
	across := local("across", most/8*5)
	across.Nodes[1].Host = "h2"
	var rejection *vnet.Rejection
	if _, err := b.Admit(noon, across, 1000); !errors.As(err, &rejection) || rejection.Offer == nil {
		t.Fatal("more than h1 forwards in all is not refused with an offer:", err)
	}
	if text := strings.Join(rejection.Reasons, "\n"); !strings.Contains(text, "forwarding of host h1") {
		t.Error("the reasons:", text)
	}
	if _, err := b.Admit(noon, *rejection.Offer, 1000); err != nil {
		t.Error("the offer:", err)
	}
	less := local("less", rejection.Offer.Links[0].Bandwidth[0].Min/2)
	less.Nodes[1].Host = "h2"
	if _, err := b.Admit(noon, less, 1000); !errors.As(err, &rejection) {
		t.Error("beside it nothing is left, and more is admitted:", err)
	}
}

func TestMeasuredOutlivesANewDescription(t *testing.T) {
	b := pair(t)
	described := b.Substrate()
	if err := b.Measured(noon, "h2", vnet.Measurement{Measured: vnet.Gbit}); err != nil {
		t.Fatal(err)
	}
	b.KeepMeasured(&described)
	if got, _ := described.HostOf("h2"); got.Carries() != vnet.Gbit {
		t.Errorf("h2 carries %s after a restart, 1Gbit was measured", got.Carries())
	}
	if got := described.Links[0].Leasable(); got > vnet.Gbit {
		t.Errorf("the link to h2 carries %s after a restart", got)
	}
	if got, _ := described.HostOf("h1"); got.Carries() != vnet.DefaultHostCapacity {
		t.Errorf("h1 carries %s, nobody measured", got.Carries())
	}
}

// A file that states no ports, as those that labs are made of, leaves links that stay
// theirs; what it states counts.
func TestPortsOutliveANewDescription(t *testing.T) {
	sub := pair(t).Substrate()
	was := [2]vnet.Port{
		{Interface: "to-b", Address: netip.MustParseAddr("198.18.0.0")},
		{Interface: "to-a", Address: netip.MustParseAddr("198.18.0.1")},
	}
	sub.Links[0].Ports = was
	b := New(sub)
	ends, other := sub.Links[0].Ends, vnet.Port{Interface: "eth9", Address: netip.MustParseAddr("198.18.9.9")}
	for _, c := range []struct {
		name   string
		ends   [2]string
		stated [2]vnet.Port
		want   [2]vnet.Port
	}{
		{"without ports", ends, [2]vnet.Port{}, was},
		{"its ends in the other order", [2]string{ends[1], ends[0]}, [2]vnet.Port{}, [2]vnet.Port{was[1], was[0]}},
		{"one port stated", ends, [2]vnet.Port{other}, [2]vnet.Port{other, was[1]}},
		{"another end", [2]string{ends[0], "elsewhere"}, [2]vnet.Port{}, [2]vnet.Port{was[0]}},
	} {
		described := b.Substrate()
		described.Links = slices.Clone(described.Links)
		described.Links[0].Ends, described.Links[0].Ports = c.ends, c.stated
		b.KeepMeasured(&described)
		if got := described.Links[0].Ports; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Hosts that are one machine forward no more than that, however it is spread.
func TestOneMachineForwardsForAllHosts(t *testing.T) {
	sub := pair(t).Substrate()
	sub.Forwards = 600 * vnet.Mbit
	b := New(sub)
	across := local("across", 200*vnet.Mbit) // both ways
	across.Nodes[1].Host = "h2"
	if _, err := b.Admit(noon, across, 1000); err != nil {
		t.Fatal(err)
	}
	var rejection *vnet.Rejection
	if _, err := b.Admit(noon, local("inside", 200*vnet.Mbit), 1000); !errors.As(err, &rejection) || rejection.Offer == nil {
		t.Fatal("more than the machine forwards is not refused with an offer:", err)
	}
	if text := strings.Join(rejection.Reasons, "\n"); text != "the network needs 400Mbit of forwarding, and all hosts together have 200Mbit free in this window: all hosts are one machine" {
		t.Error("the reasons:", text)
	}
	if got := rejection.Offer.Links[0].Bandwidth[0].Min; got != 100*vnet.Mbit {
		t.Errorf("offered are %s", got)
	}
	if _, err := b.Admit(noon, *rejection.Offer, 1000); err != nil {
		t.Error("the offer:", err)
	}
	best := local("best", vnet.Mbit)
	best.Links[0].Bandwidth = [2]vnet.Bandwidth{}
	if _, err := b.Admit(noon, best, 1000); err != nil {
		t.Error("best effort needs no part of it:", err)
	}
}

func TestMeasuredHostMustExist(t *testing.T) {
	var bad *vnet.FieldError
	if err := pair(t).Measured(noon, "h9", vnet.Measurement{Measured: vnet.Gbit}); !errors.As(err, &bad) {
		t.Error(err)
	}
}
