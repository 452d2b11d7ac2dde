package vnet

import (
	"testing"
	"time"
)

// A tunnel counts once between two hosts, whatever switches are between them,
// and once more for each host that relays.
func TestDelaysOfHosts(t *testing.T) {
	us := time.Microsecond
	s := Substrate{
		Hosts:    []SubstrateNode{{Name: "a", Measurement: Measurement{Delay: 40 * us}}, {Name: "b", Measurement: Measurement{Delay: 60 * us}}, {Name: "c"}},
		Switches: []string{"s"},
		Links: []SubstrateLink{
			{Name: "ab", Ends: [2]string{"a", "b"}, Latency: time.Millisecond}, {Name: "as", Ends: [2]string{"a", "s"}},
			{Name: "sb", Ends: [2]string{"s", "b"}}, {Name: "bc", Ends: [2]string{"b", "c"}},
		},
	}
	d := s.WithDelays()
	for i, want := range []time.Duration{1050 * us, 20 * us, 30 * us, 80 * us} {
		if d.Links[i].Latency != want {
			t.Errorf("%s: %s, want %s", d.Links[i].Name, d.Links[i].Latency, want)
		}
	}
	for i, want := range []time.Duration{40 * us, 60 * us, DefaultDelay} {
		if d.Hosts[i].Inside != want {
			t.Errorf("inside %s: %s, want %s", d.Hosts[i].Name, d.Hosts[i].Inside, want)
		}
	}
	if s.Links[0].Latency != time.Millisecond || s.Hosts[0].Inside != 0 {
		t.Error("the substrate itself was changed")
	}
}
