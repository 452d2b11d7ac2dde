package server

import (
	"context"
	"net/netip"
	"testing"

	"sublet/lease/api"
	"sublet/report"
)

// listed is a cluster of servers at addresses.
type listed struct {
	twoServers
	addresses []string
}

func (c listed) Servers(context.Context) (servers []api.Server, err error) {
	for _, a := range c.addresses {
		servers = append(servers, api.Server{Name: "s", Address: a})
	}
	return servers, nil
}

// TestAgentsAreNoServers: a host's certificate points no server at one that shares
// its store.
func TestAgentsAreNoServers(t *testing.T) {
	s := &Server{cluster: listed{addresses: []string{"192.0.2.1:7443", "localhost:7443", "[2001:db8::1]:7443", "none"}}}
	for _, c := range []struct {
		from, agent string
		ok          bool
	}{
		{"192.0.2.1", "https://192.0.2.1:7443", false}, {"192.0.2.1", "https://0.0.0.0:7443", false}, {"192.0.2.1", "https://any.example:7443", false},
		{"127.0.0.1", "https://127.0.0.1:7443", false}, {"2001:db8::1", "https://[2001:db8::1]:7443", false},
		{"192.0.2.1", "https://192.0.2.1:7444", true}, {"192.0.2.9", "https://192.0.2.9:7443", true},
	} {
		told := report.Report{Host: "h1", Agent: c.agent}
		if err := s.noServer(t.Context(), told, netip.MustParseAddr(c.from)); (err == nil) != c.ok {
			t.Errorf("%s from %s: %v", c.agent, c.from, err)
		}
	}
}
