package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// Answers pass the functions of a chain in the same order: a program that passes packets
// from eth0 to eth1 alone sees both directions of a connection, over two hosts.
func TestAnswersInTheSameOrder(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(strings.Replace(chainRequest("same", "h2", "10Mbit"), "rate: 10Mbit}", "rate: 10Mbit, reverse: same}", 1))
	greets(t, s.namespaceOf(node{"h2", vnet.LeaseID{Tenant: "root", Network: "same"}, "b"}), 80)
	address := s.addressOf("h1", vnet.LeaseID{Tenant: "root", Network: "same"}, "b")
	eventually(t, time.Minute, func() error {
		if _, ok := s.heard("same/a", address, 80); !ok {
			return fmt.Errorf("no answer")
		}
		var chains []struct {
			Name string
			Hops []report.ChainHop
		}
		need(t, json.Unmarshal([]byte(s.must("chains", "same", "-o", "json")), &chains))
		came := make(map[string]uint64)
		for _, c := range chains {
			for _, h := range c.Hops {
				came[c.Name+" "+h.Hop] += h.Packets
			}
		}
		for _, hop := range []string{"web fw", "web ids", "web out", "web-back fw", "web-back ids", "web-back out"} {
			if came[hop] < 3 {
				return fmt.Errorf("%d packets came to %s: %v", came[hop], hop, came)
			}
		}
		return nil
	})
	s.must("down", "same")
}
