package api

import (
	"net/http"
	"time"

	"sublet/datapath/overlay"
	"sublet/report"
	"sublet/vnet"
)

// diff says what the agent would do.
func (h *Host) diff(w http.ResponseWriter, r *http.Request) {
	steps, err := h.Diff(r.Context())
	lines := make([]string, len(steps))
	for i, s := range steps {
		lines[i] = s.String()
	}
	answer(w, lines, err)
}

// paths says what routers and switches forward.
func (h *Host) paths(w http.ResponseWriter, r *http.Request) {
	var all []report.Forwarding
	for _, of := range h.Paths {
		some, err := of(r.Context())
		if err != nil {
			answer[report.Forwarding](w, nil, err)
			return
		}
		all = append(all, some...)
	}
	answer(w, all, nil)
}

// overlay says what the tunnels' entries are and did.
func (h *Host) overlay(w http.ResponseWriter, _ *http.Request) {
	states, err := h.Tunnels()
	answer(w, states, err)
}

// traffic says what this host counted of a lease's links.
func (h *Host) traffic(w http.ResponseWriter, r *http.Request) {
	lease := leaseOf(r)
	list, err := h.Traffic(lease)
	if err == nil {
		err = h.addTunnelDrops(lease, list)
	}
	answer(w, list, err)
}

// addTunnelDrops adds what the tunnels of a lease could not send to the counters
// of the links that begin here.
func (h *Host) addTunnelDrops(lease vnet.LeaseID, list []report.Traffic) error {
	states, err := h.Tunnels()
	if err != nil {
		return err
	}
	for _, t := range list {
		for _, s := range states {
			if !t.First || t.Last || s.Lease != lease || s.Overlay.Link != t.Link {
				continue
			}
			for _, cause := range overlay.SendCauses {
				if n := s.Drops[cause]; n > 0 {
					t.Drops[cause] += n
				}
			}
		}
	}
	return nil
}

// reachTime is how long nodes are asked whether they reach each other: OSPF may
// take most of it.
const reachTime = 5 * time.Second

// reach says which nodes of a lease on this host do not reach whom they must.
func (h *Host) reach(w http.ResponseWriter, r *http.Request) {
	var missing []string
	if problem := h.Reach(r.Context(), leaseOf(r), reachTime); problem != "" {
		missing = append(missing, problem)
	}
	answer(w, missing, nil)
}
