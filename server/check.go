package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// CheckJob is what a Checker needs of the server.
type CheckJob struct {
	Lease     vnet.Lease // as it stands when the check begins
	Substrate vnet.Substrate
	Duration  time.Duration      // as in CheckAsk
	Short     bool               // without a Duration, windows are as short as they can be
	Progress  func(phase string) // told what begins
	// Dial connects to the agent of a node's host, where a POST of the path
	// starts a probe in the node (package agent/session).
	Dial func(ctx context.Context, node string) (conn net.Conn, path string, err error)
	// Reach has a host ask whether the lease's nodes on it reach those that they
	// must, which takes some seconds if not, and says what is missing.
	Reach func(ctx context.Context, host vnet.HostID) (missing []string, err error)
	// Traffic is what a host counted of the lease's links.
	Traffic func(ctx context.Context, host vnet.HostID) ([]report.Traffic, error)
	// Chains is what a host counted of the hops of the lease's chains.
	Chains func(ctx context.Context, host vnet.HostID) ([]report.ChainHop, error)
}

// Checker measures a lease and judges what was promised. It ends when its
// context does.
type Checker func(ctx context.Context, job CheckJob) (vnet.Verdict, error)

// Checks that are made at a time: each loads the links of a lease to the full.
const (
	mostChecks         = 16
	mostChecksOfTenant = 4 // not of the operator's
)

// checks are those under way.
type checks struct {
	mu      sync.Mutex
	running map[vnet.LeaseID]bool
}

// begin enters a check; end must be called after it.
func (k *checks) begin(id vnet.LeaseID, operator bool) (end func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running[id] {
		return nil, &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s is being checked: wait for that to end", id)}
	}
	tenants := 0
	for other := range k.running {
		if other.Tenant == id.Tenant {
			tenants++
		}
	}
	if len(k.running) >= mostChecks {
		return nil, tooMany("%d networks are being checked, the most at a time", mostChecks)
	}
	if tenants >= mostChecksOfTenant && !operator {
		return nil, tooMany("%d networks of %s are being checked, the most at a time", tenants, id.Tenant)
	}
	if k.running == nil {
		k.running = make(map[vnet.LeaseID]bool)
	}
	k.running[id] = true
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.running, id)
	}, nil
}

// postCheck measures a lease, stores the verdict with it and answers that. The
// caller has no part in it but that it ends when they go away.
func (s *Server) postCheck(w http.ResponseWriter, r *http.Request, c *call) error {
	l, err := s.checkable(r, c)
	if err != nil {
		return err
	}
	var ask api.CheckAsk
	if r.ContentLength != 0 {
		if err := s.decode(w, r, c, &ask); err != nil {
			return err
		}
	}
	if ask.Duration != 0 && (ask.Duration < api.MinCheck || ask.Duration > api.MaxCheck) {
		return &vnet.FieldError{Path: "duration_ns", Problem: fmt.Sprintf("state %s to %s, or 0", api.MinCheck, api.MaxCheck)}
	}
	end, err := s.checks.begin(l.ID(), c.Operator)
	if err != nil {
		return err
	}
	prove := func(progress func(string)) (vnet.Verdict, error) {
		defer end() // before the answer: its reader may ask for the next
		return s.prove(r.Context(), l, CheckJob{Duration: ask.Duration, Progress: progress})
	}
	if strings.Contains(r.Header.Get("Accept"), api.NDJSON) {
		streamCheck(w, prove)
		return nil
	}
	verdict, err := prove(func(string) {})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, verdict)
}

// checkable finds a lease of the caller's that can be measured.
func (s *Server) checkable(r *http.Request, c *call) (vnet.Lease, error) {
	id, err := idOf(r, c)
	if err != nil {
		return vnet.Lease{}, err
	}
	l, err := s.leaseOf(id)
	switch {
	case err != nil:
		return l, err
	case !l.State.Up():
		return l, &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s is %s: only a running network can be measured", id, l.State)}
	case len(l.Topology().Links) == 0:
		return l, &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("%s has no links: there is nothing to measure", id)}
	case s.checker == nil:
		return l, &api.Problem{Status: http.StatusServiceUnavailable, Detail: "this server cannot measure"}
	}
	return l, nil
}

// streamCheck answers line by line.
func streamCheck(w http.ResponseWriter, prove func(progress func(string)) (vnet.Verdict, error)) {
	control := http.NewResponseController(w)
	lines := json.NewEncoder(w)
	say := func(line api.CheckLine) { // a caller that went away ends the context
		_ = control.SetWriteDeadline(time.Now().Add(answerTimeout))
		_ = lines.Encode(line)
		_ = control.Flush()
	}
	w.Header().Set("Content-Type", api.NDJSON)
	w.WriteHeader(http.StatusOK)
	verdict, err := prove(func(phase string) { say(api.CheckLine{Phase: phase}) })
	if err != nil {
		p := problemOf(err)
		say(api.CheckLine{Problem: &p})
		return
	}
	say(api.CheckLine{Verdict: &verdict})
}

// prove has a lease measured and stores the verdict. The time, and what it is
// about, are the server's.
func (s *Server) prove(ctx context.Context, l vnet.Lease, job CheckJob) (vnet.Verdict, error) {
	job.Lease = l
	err := s.look(func(_ time.Time, b *lease.Book) error {
		job.Substrate = b.Substrate()
		return nil
	})
	if err != nil {
		return vnet.Verdict{}, err
	}
	job.Dial = func(ctx context.Context, node string) (net.Conn, string, error) {
		conn, err := s.dialAgent(ctx, l.Mapping.Nodes[node])
		return conn, "/v1/nodes/" + plan.Namespace(l.ID(), node) + "/probe", err
	}
	job.Reach = func(ctx context.Context, host vnet.HostID) (missing []string, err error) {
		err = s.ask(ctx, host, "/v1/links/"+plan.Fabric(l.ID())+"/reach", &missing)
		return missing, err
	}
	job.Traffic = func(ctx context.Context, host vnet.HostID) (list []report.Traffic, err error) {
		err = s.ask(ctx, host, "/v1/links/"+plan.Fabric(l.ID())+"/traffic", &list)
		return list, err
	}
	job.Chains = func(ctx context.Context, host vnet.HostID) (list []report.ChainHop, err error) {
		err = s.ask(ctx, host, "/v1/links/"+plan.Fabric(l.ID())+"/chains", &list)
		return list, err
	}
	verdict, err := s.checker(ctx, job)
	if err != nil {
		return verdict, err
	}
	verdict.Network, verdict.Serial, verdict.Digest = l.Request.Network, l.Serial, l.Digest()
	err = s.change(func(now time.Time, b *lease.Book) error {
		verdict.Time = now.UTC().Truncate(time.Second)
		return b.SetVerdict(l.ID(), verdict)
	})
	if err != nil {
		return verdict, err
	}
	now, err := s.leaseOf(l.ID())
	if err != nil || now.Verdict == nil {
		return verdict, err
	}
	return *now.Verdict, nil
}
