package lease

import (
	"errors"
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
	if _, err := b.Admit(noon, local("first", 5*vnet.Gbit), 1000); err != nil {
		t.Fatal("before it is measured:", err)
	}
	if err := b.Measured(noon, "h1", 3*vnet.Gbit); !errors.Is(err, ErrConflict) {
		t.Fatal("less measured than is booked:", err)
	}
	if err := b.Release(noon, vnet.LeaseID{Tenant: "alice", Network: "first"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Measured(noon, "h1", 3*vnet.Gbit); err != nil {
		t.Fatal(err)
	}
	var rejection *vnet.Rejection
	if _, err := b.Admit(noon, local("second", 5*vnet.Gbit), 1000); !errors.As(err, &rejection) || rejection.Offer == nil {
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
	if err := b.Measured(noon, "h2", rate/2); err != nil {
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
	if err := b.Measured(noon, "h1", most); err != nil {
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
	if err := b.Measured(noon, "h2", vnet.Gbit); err != nil {
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

func TestMeasuredHostMustExist(t *testing.T) {
	var bad *vnet.FieldError
	if err := pair(t).Measured(noon, "h9", vnet.Gbit); !errors.As(err, &bad) {
		t.Error(err)
	}
}
