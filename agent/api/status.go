package api

import (
	"cmp"
	"math"
	"net/http"
	"strconv"
	"time"

	"sublet/internal/problem"
	"sublet/plan"
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
	samples, err := h.Samples(r.Context(), report.Scope{}, plan.KindVxRouter, plan.KindSwitchPort, plan.KindVxSwitchPort, plan.KindOpenFlow)
	answer(w, report.Forwardings(samples), err)
}

// overlay says what the tunnels' entries are and did.
func (h *Host) overlay(w http.ResponseWriter, r *http.Request) {
	samples, err := h.Samples(r.Context(), report.Scope{}, plan.KindOverlay)
	if err != nil {
		answer[report.TunnelState](w, nil, err)
		return
	}
	states, err := report.Tunnels(samples)
	answer(w, states, err)
}

// traffic says what this host counted of a lease's links.
func (h *Host) traffic(w http.ResponseWriter, r *http.Request) {
	samples, err := h.Samples(r.Context(), report.Of(leaseOf(r)), plan.KindVxLink, plan.KindOverlay)
	answer(w, report.Traffics(samples), err)
}

// chains says what this host counted of a lease's chains.
func (h *Host) chains(w http.ResponseWriter, r *http.Request) {
	samples, err := h.Samples(r.Context(), report.Of(leaseOf(r)), plan.KindChains)
	answer(w, report.ChainHops(samples), err)
}

// counts is what links have counted, without the list of them for who has ?set=.
func (h *Host) counts(w http.ResponseWriter, r *http.Request) {
	set, err := strconv.ParseUint(cmp.Or(r.URL.Query().Get("set"), "0"), 10, 64)
	if err != nil {
		problem.Write(w, http.StatusBadRequest, "set: state that of the counts before")
		return
	}
	c, err := h.Counts(r.Context())
	if err != nil {
		problem.Write(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(c.Encode(set)) // a caller that went away needs no answer
}

// packed is the value of ?form= of who reads samples in the short form. An agent
// that knows no forms answers with JSON.
const packed = "packed"

// samples are the last readings of all parts: those after ?after=, or the newest,
// of what ?tenant= and ?network= say. With ?form=packed they are in the short form
// for who has ?heads= of ?era=.
func (h *Host) samples(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var numbers [3]uint64
	for i, name := range []string{"after", "era", "heads"} {
		var err error
		if numbers[i], err = strconv.ParseUint(cmp.Or(query.Get(name), "0"), 10, 64); err != nil {
			problem.Write(w, http.StatusBadRequest, name+": state a number, as in the answer before")
			return
		}
	}
	after, era, heads := numbers[0], numbers[1], int(min(numbers[2], math.MaxInt32))
	of := report.Scope{Tenant: vnet.TenantID(query.Get("tenant")), Network: vnet.VNetID(query.Get("network"))}
	switch query.Get("form") {
	case "":
		answer(w, h.Rounds(r.Context(), after, of), nil)
	case packed:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(h.Packed(r.Context(), after, of, era, heads).Encode()) // a caller that went away needs no answer
	default:
		problem.Write(w, http.StatusBadRequest, "form: "+packed+" is the only one")
	}
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
