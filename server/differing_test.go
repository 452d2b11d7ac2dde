package server

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sublet/lease/api"
	"sublet/vnet"
)

// TestStartWithAnotherSubstrateIsSaid: a server that is started with a substrate
// undoes what was applied since, and says what; with the one that is leased out it
// says nothing.
func TestStartWithAnotherSubstrateIsSaid(t *testing.T) {
	r := newRig(t)
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	applied := must[vnet.Substrate](t)(c.Substrate(ctx))
	applied.Links = slices.Clone(applied.Links)
	applied.Links[0].Capacity /= 2
	must[api.Aftermath](t)(c.SetSubstrate(ctx, api.SubstrateAsk{Substrate: applied}))
	for range 2 { // once with what was applied, once with its own
		r.stop()
		r.start()
	}
	said := strings.Count(r.log.String(), "takes another substrate")
	if said != 1 || !strings.Contains(r.log.String(), "link "+applied.Links[0].Name) {
		t.Errorf("it is said %d times: %s", said, r.log.String())
	}
}

func TestDiffering(t *testing.T) {
	a := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}}, Switches: []string{"s"}, Exits: []vnet.Exit{{Name: "campus"}}}
	b := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1", CPU: 1}, {Name: "h2"}}, Forwards: vnet.Mbit, Joins: []vnet.Join{{Name: "j"}}, NAT: []vnet.NAT{{Name: "n"}}, Devices: []vnet.Device{{Name: "d"}}}
	want := []string{"device d", "exit campus", "forwards", "host h1", "join j", "switch s", "way out n"}
	if got := differing(a, b); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	b.Switches = nil
	for _, letter := range "abcdefghijklmn" {
		b.Switches = append(b.Switches, string(letter))
	}
	if got := differing(a, b); len(got) != mostDiffering+1 {
		t.Errorf("%d are named: %q", len(got), got)
	}
}
