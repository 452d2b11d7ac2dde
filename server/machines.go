package server

import (
	"fmt"
	"strings"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

// runsMachines refuses a request with a machine that may come to a host that runs
// none, as its agent reports. Where a machine is placed is decided by room alone.
func (s *Server) runsMachines(r vnet.Request) error {
	return s.look(func(_ time.Time, b *lease.Book) error {
		for _, n := range r.Union().Nodes {
			if !n.Machine() {
				continue
			}
			without, with := s.withoutMachines(b.Substrate(), n)
			switch {
			case len(without) == 0:
			case with == 0:
				return &vnet.FieldError{Path: "nodes", Problem: fmt.Sprintf("%s is a machine, and %s runs none: install QEMU there, as sublet doctor says", n.Name, strings.Join(without, ", "))}
			default:
				return &vnet.FieldError{Path: "nodes", Problem: fmt.Sprintf("%s is a machine, and may come to %s, where none runs: state its host", n.Name, strings.Join(without, ", "))}
			}
		}
		return nil
	})
}

// withoutMachines lists hosts for a node, a few by name, that run no machines, and
// counts the others.
func (s *Server) withoutMachines(sub vnet.Substrate, n vnet.VirtualNode) (without []string, with int) {
	const named = 4
	for _, h := range sub.Hosts {
		switch {
		case n.Host != "" && n.Host != h.Name, n.Site != "" && n.Site != h.Site:
		case s.agents[h.Name].report.Host == "", s.agents[h.Name].report.Machines != "":
			with++ // also one that was not heard of: its agent says what it cannot do
		case len(without) < named:
			without = append(without, string(h.Name))
		case len(without) == named:
			without = append(without, "others")
		}
	}
	return without, with
}
