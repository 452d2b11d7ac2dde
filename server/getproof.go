package server

import (
	"cmp"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

// getProof answers what is known of the promises of a lease since a time: of
// each direction of each link that has a minimum or was tested.
func (s *Server) getProof(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := idOf(r, c)
	if err != nil {
		return err
	}
	since, err := sinceOf(r)
	if err != nil {
		return err
	}
	l, err := s.leaseOf(id)
	if err != nil {
		return err
	}
	by := make(map[ofPromise][]vnet.ProofRun)
	note := func(run vnet.ProofRun) {
		if run.From.Add(time.Duration(run.Minutes) * time.Minute).After(since) {
			at := ofPromise{run.Link, run.Direction, run.Of}
			by[at] = append(by[at], run)
		}
	}
	from := max(since.Unix(), l.Life.Admitted.Unix())
	if err := each(s.journal, filepath.Join(proofDir, proofName(id, l.Serial)), time.Unix(from, 0), note); err != nil {
		return unavailable(err)
	}
	for _, run := range s.proving.open(id, l.Serial) {
		note(run)
	}
	list := []vnet.Proof{}
	present := l.Request.At(l.Stage).Promised(l.Request.Chains) // also while rates are given back
	for _, link := range l.Request.Union().Promised(l.Request.Chains) {
		var now vnet.VirtualLink
		if i := slices.IndexFunc(present, func(p vnet.VirtualLink) bool { return p.Name == link.Name }); i >= 0 {
			now = present[i]
		}
		for _, d := range vnet.Directions {
			runs, latency := by[ofPromise{link.Name, d, ""}], by[ofPromise{link.Name, d, vnet.OfLatency}]
			rests := chainRests(l, link.Chain, d)
			if len(runs)+len(latency) == 0 && now.Bandwidth[d].Min == 0 && now.Latency == 0 && !rests {
				continue
			}
			slices.SortFunc(runs, byTime)
			slices.SortFunc(latency, byTime)
			list = append(list, measure.Prove(vnet.Proof{
				Paused: pausedSince(l), ChainPaused: rests, Link: link.Name, Direction: d, From: link.Ends[d], To: link.Ends[d.Opposite()], Min: now.Bandwidth[d].Min,
			}, append([]vnet.ProofRun{}, runs...)))
			if len(latency) > 0 || now.Latency > 0 {
				list[len(list)-1].Latency = measure.ProveLatency(now.Latency, append([]vnet.ProofRun{}, latency...))
			}
		}
	}
	return answer(w, http.StatusOK, list)
}

// chainRests says whether a stage has paused a chain of which something is promised
// in a direction while it goes on.
func chainRests(l vnet.Lease, name string, d vnet.Direction) bool {
	for _, c := range l.Chains() {
		if c.Name == name && c.Paused {
			c.Paused = false
			return c.Demand()[d].Min > 0
		}
	}
	return false
}

// ofPromise is one of a direction of a link.
type ofPromise struct {
	link      string
	direction vnet.Direction
	of        string // vnet.ProofRun.Of
}

func byTime(a, b vnet.ProofRun) int { return a.From.Compare(b.From) }

// pausedSince is since when a lease is paused; nil: it is not.
func pausedSince(l vnet.Lease) *time.Time {
	if l.Paused == nil {
		return nil
	}
	return &l.Paused.Since
}

// sinceOf is the time that a query states; none: all that is kept.
func sinceOf(r *http.Request) (since time.Time, err error) {
	text := r.URL.Query().Get("since")
	if text == "" {
		return since, nil
	}
	if since, err = time.Parse(time.RFC3339, text); err != nil {
		return since, &vnet.FieldError{Path: "since", Problem: strconv.Quote(text) + " is no time: state one such as 2027-03-01T08:00:00Z"}
	}
	return since, nil
}

// getEvents answers events: the caller's, or everybody's and the substrate's to
// the operator.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request, c *call) error {
	since, err := sinceOf(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	tenant, network := vnet.TenantID(query.Get("tenant")), vnet.VNetID(query.Get("network"))
	if tenant == "" && !c.Operator {
		tenant = c.Tenant
	}
	if tenant != "" && !c.MayTouch(tenant) {
		return forbidden("only the operator sees other tenants' events")
	}
	after, err := strconv.ParseUint(cmp.Or(query.Get("after"), "0"), 10, 64)
	if err != nil {
		return &vnet.FieldError{Path: "after", Problem: "is no number of an event"}
	}
	list, err := s.journal.happened(tenant, since, func(h vnet.Happening) bool {
		return (network == "" || h.Lease.Network == network) && h.Number > after
	})
	if err != nil {
		return unavailable(err)
	}
	return answer(w, http.StatusOK, list)
}
