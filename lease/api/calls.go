package api

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

func LeasePath(id vnet.LeaseID) string {
	return "/v1/leases/" + url.PathEscape(string(id.Tenant)) + "/" + url.PathEscape(string(id.Network))
}

// NodePath is the path of a node's session: "exec", "probe", "copy", "log".
func NodePath(id vnet.LeaseID, node, session string) string {
	return LeasePath(id) + "/nodes/" + url.PathEscape(node) + "/" + session
}

// Kept is what a node keeps, as an archive, which the caller closes. One that is cut
// off ends with an error.
func (c *Client) Kept(ctx context.Context, id vnet.LeaseID, node string) (io.ReadCloser, error) {
	request, err := c.request(ctx, http.MethodGet, NodePath(id, node, "kept"), nil)
	if err != nil {
		return nil, err
	}
	response, err := c.exchange(request)
	if err != nil {
		return nil, c.explain(err)
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		return nil, readProblem(response)
	}
	return response.Body, nil
}

// SetKept replaces what a node keeps by an archive, and starts the node anew.
func (c *Client) SetKept(ctx context.Context, id vnet.LeaseID, node string, archive io.Reader) error {
	request, err := c.request(ctx, http.MethodPut, NodePath(id, node, "kept"), nil)
	if err != nil {
		return err
	}
	request.Body, request.ContentLength = io.NopCloser(archive), -1
	request.Header.Set("Content-Type", "application/zstd")
	_, err = c.send(request, nil)
	return err
}

// CapturePath is the path of the capture of a link.
func CapturePath(id vnet.LeaseID, link string) string {
	return LeasePath(id) + "/links/" + url.PathEscape(link) + "/capture"
}

// Admit asks for a lease. With accept, the counter-offer is taken at once if
// the request itself is refused. Errors: *vnet.FieldError, *vnet.Rejection,
// ErrConflict, ErrUnreachable.
func (c *Client) Admit(ctx context.Context, req vnet.Request, accept bool) (Admission, error) {
	var a Admission
	return a, c.do(ctx, http.MethodPost, "/v1/leases", Ask{Request: req, Accept: accept}, &a)
}

// Ask is Admit with all that can be said; what was refused may wait.
func (c *Client) Ask(ctx context.Context, ask Ask) (a Admission, err error) {
	return a, c.do(ctx, http.MethodPost, "/v1/leases", ask, &a)
}

// Waiting lists the caller's requests that wait for room, all tenants' for the operator.
func (c *Client) Waiting(ctx context.Context) (list []vnet.Waiting, err error) {
	return list, c.do(ctx, http.MethodGet, "/v1/waiting", nil, &list)
}

// EndWaiting ends that a request waits; ErrNotFound.
func (c *Client) EndWaiting(ctx context.Context, id vnet.LeaseID) error {
	return c.do(ctx, http.MethodDelete, "/v1/waiting/"+url.PathEscape(string(id.Tenant))+"/"+url.PathEscape(string(id.Network)), nil, nil)
}

// Offers asks what would be admitted, and when, without booking anything.
func (c *Client) Offers(ctx context.Context, req vnet.Request) (Proposal, error) {
	var p Proposal
	return p, c.do(ctx, http.MethodPost, "/v1/offers", Ask{Request: req}, &p)
}

// Calendar is what is booked of every substrate link during a window.
func (c *Client) Calendar(ctx context.Context, w vnet.Window) (Calendar, error) {
	var answer Calendar
	query := url.Values{"from": {w.Start.Format(time.RFC3339)}}
	if !w.End.IsZero() {
		query.Set("until", w.End.Format(time.RFC3339))
	}
	return answer, c.do(ctx, http.MethodGet, "/v1/calendar?"+query.Encode(), nil, &answer)
}

// Policy is the caller's limits and what is used of them; for the operator
// also another tenant's, or with all those of everybody.
func (c *Client) Policy(ctx context.Context, tenant vnet.TenantID, all bool) ([]PolicyView, error) {
	query := make(url.Values)
	if tenant != "" {
		query.Set("tenant", string(tenant))
	}
	if all {
		query.Set("all", "true")
	}
	var views []PolicyView
	return views, c.do(ctx, http.MethodGet, "/v1/policy?"+query.Encode(), nil, &views)
}

// Ledger is a page of all leases that ever were.
func (c *Client) Ledger(ctx context.Context, q LedgerQuery) (LedgerPage, error) {
	query := make(url.Values)
	state := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	state("tenant", string(q.Tenant))
	state("after", q.After)
	if q.Limit > 0 {
		state("limit", strconv.Itoa(q.Limit))
	}
	for name, t := range map[string]time.Time{"from": q.From, "until": q.Until} {
		if !t.IsZero() {
			state(name, t.UTC().Format(time.RFC3339))
		}
	}
	var page LedgerPage
	return page, c.do(ctx, http.MethodGet, "/v1/ledger?"+query.Encode(), nil, &page)
}

// Proof is what is known of a lease's promises since a time; zero: all that is kept.
func (c *Client) Proof(ctx context.Context, id vnet.LeaseID, since time.Time) ([]vnet.Proof, error) {
	path, query := LeasePath(id)+"/proof", make(url.Values)
	if !since.IsZero() {
		query.Set("since", since.UTC().Format(time.RFC3339))
	}
	var proofs []vnet.Proof
	return proofs, c.do(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &proofs)
}

// Events are what happened since a time, of one network, of a tenant's, or of all
// that the caller may see, after the event of a number.
func (c *Client) Events(ctx context.Context, of vnet.LeaseID, since time.Time, after uint64) ([]vnet.Happening, error) {
	query := url.Values{"after": {strconv.FormatUint(after, 10)}}
	if of.Tenant != "" {
		query.Set("tenant", string(of.Tenant))
	}
	if of.Network != "" {
		query.Set("network", string(of.Network))
	}
	if !since.IsZero() {
		query.Set("since", since.UTC().Format(time.RFC3339))
	}
	var list []vnet.Happening
	return list, c.do(ctx, http.MethodGet, "/v1/events?"+query.Encode(), nil, &list)
}

// Leases lists the caller's leases, all tenants' for the operator.
func (c *Client) Leases(ctx context.Context) ([]vnet.Lease, error) {
	var leases []vnet.Lease
	return leases, c.do(ctx, http.MethodGet, "/v1/leases", nil, &leases)
}

// Lease finds one; ErrNotFound.
func (c *Client) Lease(ctx context.Context, id vnet.LeaseID) (vnet.Lease, error) {
	return c.leaseWhen(ctx, id, "")
}

func (c *Client) leaseWhen(ctx context.Context, id vnet.LeaseID, query string) (vnet.Lease, error) {
	var l vnet.Lease
	return l, c.do(ctx, http.MethodGet, LeasePath(id)+query, nil, &l)
}

// Update gives a lease another request. Of two who change a lease as they read
// it one gets ErrConflict. Other errors: *vnet.FieldError, also for what cannot
// be changed, *vnet.Rejection, ErrNotFound.
func (c *Client) Update(ctx context.Context, read vnet.Lease, u Update) (Updated, error) {
	request, err := c.request(ctx, http.MethodPut, LeasePath(read.ID()), u)
	if err != nil {
		return Updated{}, err
	}
	request.Header.Set("If-Match", Tag(read))
	var answer Updated
	_, err = c.send(request, &answer)
	return answer, err
}

// Release ends a lease; WaitGone waits until its hosts have removed it.
func (c *Client) Release(ctx context.Context, id vnet.LeaseID) (vnet.Lease, error) {
	var l vnet.Lease
	return l, c.do(ctx, http.MethodDelete, LeasePath(id), nil, &l)
}

// Impair changes what a link of a running lease does to its frames, from its
// first end to its second, and back. Errors: ErrNotFound, ErrConflict when it
// does not run.
func (c *Client) Impair(ctx context.Context, id vnet.LeaseID, link string, both [2]vnet.Impairment) (vnet.Lease, error) {
	var l vnet.Lease
	return l, c.do(ctx, http.MethodPut, LeasePath(id)+"/links/"+url.PathEscape(link)+"/impair", ImpairAsk{both}, &l)
}

// ImpairAsk is what a link is to do to its frames.
type ImpairAsk struct {
	Impair [2]vnet.Impairment `json:"impair"` // from ends[0] to ends[1], and back
}

// SetLinkState takes a link of a running lease down, or up again. Errors: as of Impair.
func (c *Client) SetLinkState(ctx context.Context, id vnet.LeaseID, link string, down bool) (vnet.Lease, error) {
	var l vnet.Lease
	return l, c.do(ctx, http.MethodPut, LeasePath(id)+"/links/"+url.PathEscape(link)+"/state", LinkStateAsk{down}, &l)
}

// BeginStage lets a stage of a running lease begin that begins on command. Errors:
// as of Impair.
func (c *Client) BeginStage(ctx context.Context, id vnet.LeaseID, stage string) (vnet.Lease, error) {
	var l vnet.Lease
	return l, c.do(ctx, http.MethodPut, LeasePath(id)+"/stage", StageAsk{stage}, &l)
}

// Pause has the nodes of a running lease stand still; with give back others may
// use its rates meanwhile. Errors: as of Impair.
func (c *Client) Pause(ctx context.Context, id vnet.LeaseID, giveBack bool) (vnet.Lease, error) {
	var l vnet.Lease
	return l, c.do(ctx, http.MethodPut, LeasePath(id)+"/pause", PauseAsk{giveBack}, &l)
}

// Resume lets them go on. A *vnet.Rejection: others use the rates that were given
// back. Other errors: as of Impair.
func (c *Client) Resume(ctx context.Context, id vnet.LeaseID) (vnet.Lease, error) {
	var l vnet.Lease
	return l, c.do(ctx, http.MethodPut, LeasePath(id)+"/resume", nil, &l)
}

// PauseAsk says how a lease is to be paused.
type PauseAsk struct {
	GiveBack bool `json:"give_back"` // others may use its rates
}

// StageAsk says which stage is to begin.
type StageAsk struct {
	Stage string `json:"stage"`
}

// LinkStateAsk says whether a link is to be down.
type LinkStateAsk struct {
	Down bool `json:"down"`
}

// Check has the server measure a lease, and returns the verdict that it stored.
// duration is that of each measuring window, 0 for the default; progress is
// told what begins. Errors: ErrNotFound, ErrConflict when it does not run or is
// being checked already.
func (c *Client) Check(ctx context.Context, id vnet.LeaseID, duration time.Duration, progress func(phase string)) (vnet.Verdict, error) {
	request, err := c.request(ctx, http.MethodPost, LeasePath(id)+"/check", CheckAsk{Duration: duration})
	if err != nil {
		return vnet.Verdict{}, err
	}
	request.Header.Set("Accept", NDJSON)
	response, err := c.exchange(request)
	if err != nil {
		return vnet.Verdict{}, c.explain(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return vnet.Verdict{}, readProblem(response)
	}
	lines := json.NewDecoder(io.LimitReader(response.Body, maxAnswer))
	for {
		var line CheckLine
		if err := lines.Decode(&line); err != nil {
			return vnet.Verdict{}, cmp.Or(ctx.Err(), errBrokeOff)
		}
		switch {
		case line.Verdict != nil:
			return *line.Verdict, nil
		case line.Problem != nil:
			return vnet.Verdict{}, line.Problem.asError()
		}
		progress(line.Phase)
	}
}

// waitFor is how long one long poll lasts.
const waitFor = 30 * time.Second

// WaitReady waits until a lease runs, and returns it; it also returns, without
// an error, one that failed or ended: see State and Message. What was booked
// for later is waited for too.
func (c *Client) WaitReady(ctx context.Context, id vnet.LeaseID) (vnet.Lease, error) {
	for {
		l, err := c.leaseWhen(ctx, id, "?until=settled&wait="+waitFor.String())
		if err != nil || Settled(l) {
			return l, err
		}
	}
}

// applying is how long hosts may take for a small change: a host that does not
// answer must not hold up who made it.
const applying = 10 * time.Second

// WaitApplied waits until a lease's hosts have carried out what was decided so
// far, for a while at most, and returns it.
func (c *Client) WaitApplied(ctx context.Context, id vnet.LeaseID) (vnet.Lease, error) {
	return c.leaseWhen(ctx, id, "?until=applied&wait="+applying.String())
}

// WaitGone waits until no host has anything of a released lease.
func (c *Client) WaitGone(ctx context.Context, id vnet.LeaseID) error {
	for {
		l, err := c.leaseWhen(ctx, id, "?until=gone&wait="+waitFor.String())
		if errors.Is(err, ErrNotFound) || err == nil && Gone(l) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Hosts lists the substrate's hosts as they are now.
func (c *Client) Hosts(ctx context.Context) ([]Host, error) {
	var hosts []Host
	return hosts, c.do(ctx, http.MethodGet, "/v1/hosts", nil, &hosts)
}

// Links lists both directions of every substrate link as they are now.
func (c *Client) Links(ctx context.Context) ([]Link, error) {
	var links []Link
	return links, c.do(ctx, http.MethodGet, "/v1/links", nil, &links)
}

// SetDown tells the server that a host or link ("hosts", "links") is out of
// order, or that it works again; for the operator.
func (c *Client) SetDown(ctx context.Context, kind, name string, down bool) (Aftermath, error) {
	method := http.MethodDelete
	if down {
		method = http.MethodPut
	}
	var after Aftermath
	return after, c.do(ctx, method, "/v1/down/"+kind+"/"+url.PathEscape(name), nil, &after)
}

// Substrate is the graph that is leased out.
func (c *Client) Substrate(ctx context.Context) (vnet.Substrate, error) {
	var sub vnet.Substrate
	return sub, c.do(ctx, http.MethodGet, "/v1/substrate", nil, &sub)
}

// SubstrateAsk asks for another substrate.
type SubstrateAsk struct {
	Substrate vnet.Substrate `json:"substrate"`
	Displace  bool           `json:"displace,omitempty"` // running leases may be interrupted, and leases end
	DryRun    bool           `json:"dry_run,omitempty"`  // only say what would come of it
}

// SetSubstrate replaces the substrate while leases run. Lost are leases that
// ended, or would. The error is a *vnet.Rejection when leases would be displaced
// and may not; for the operator.
func (c *Client) SetSubstrate(ctx context.Context, ask SubstrateAsk) (Aftermath, error) {
	var after Aftermath
	return after, c.do(ctx, http.MethodPut, "/v1/substrate", ask, &after)
}

// SetDrained lets a host take nothing new, and takes off it what can go, or opens
// it again; for the operator.
func (c *Client) SetDrained(ctx context.Context, host vnet.HostID, drained bool) (Drained, error) {
	method := http.MethodPut
	if !drained {
		method = http.MethodDelete
	}
	var of Drained
	return of, c.do(ctx, method, "/v1/drained/"+url.PathEscape(string(host)), nil, &of)
}

// PlanNow is what a host shall have; for the operator.
func (c *Client) PlanNow(ctx context.Context, host vnet.HostID) (plan.Host, error) {
	return c.plan(ctx, host, url.Values{})
}

// Plan is an agent's question: the host's plan once it is another one than
// after, or the same plan after 30 s. It counts as a sign of life.
func (c *Client) Plan(ctx context.Context, host vnet.HostID, after plan.Origin) (plan.Host, error) {
	return c.plan(ctx, host, url.Values{
		"after": {strconv.FormatUint(after.Revision, 10)}, "term": {after.Term}, "wait": {waitFor.String()},
	})
}

// PlanBegins is the header that says when a host begins with its plan. It is no member of
// that, so that agents of former versions begin at once.
const PlanBegins = "Sublet-Plan-Begins"

func (c *Client) plan(ctx context.Context, host vnet.HostID, query url.Values) (plan.Host, error) {
	query.Set("form", strconv.Itoa(plan.Form))
	var text json.RawMessage
	header, err := c.ask(ctx, http.MethodGet, "/v1/plans/"+url.PathEscape(string(host))+"?"+query.Encode(), nil, &text)
	if err != nil {
		return plan.Host{}, err
	}
	p, err := plan.Unseal(text)
	if err != nil {
		return p, fmt.Errorf("read the plan of %s: %w", host, err)
	}
	p.Begins, _ = time.Parse(time.RFC3339Nano, header.Get(PlanBegins)) // what is no time is at once
	return p, nil
}

// Report says what came of a host's plan.
func (c *Client) Report(ctx context.Context, r report.Report) error {
	return c.do(ctx, http.MethodPost, "/v1/reports", r, nil)
}

// Traffic is what a host counted of a lease's links.
func (c *Client) Traffic(ctx context.Context, id vnet.LeaseID, host vnet.HostID) ([]report.Traffic, error) {
	var list []report.Traffic
	return list, c.do(ctx, http.MethodGet, LeasePath(id)+"/traffic/"+url.PathEscape(string(host)), nil, &list)
}

// ChainHops is what a host counted of a lease's chains.
func (c *Client) ChainHops(ctx context.Context, id vnet.LeaseID, host vnet.HostID) ([]report.ChainHop, error) {
	var list []report.ChainHop
	return list, c.do(ctx, http.MethodGet, LeasePath(id)+"/chains/"+url.PathEscape(string(host)), nil, &list)
}

// Processes lists what runs in a node of a lease.
func (c *Client) Processes(ctx context.Context, id vnet.LeaseID, node string) ([]report.Process, error) {
	var list []report.Process
	return list, c.do(ctx, http.MethodGet, NodePath(id, node, "processes"), nil, &list)
}

// Join lets a machine with a public key of WireGuard become a node of a lease, in
// the place of one that joined before; without one, a pair is made for it.
func (c *Client) Join(ctx context.Context, id vnet.LeaseID, node, public string) (joined report.Joined, err error) {
	path := NodePath(id, node, "join")
	if public != "" {
		path += "?" + url.Values{"public_key": {public}}.Encode()
	}
	return joined, c.do(ctx, http.MethodPost, path, nil, &joined)
}

// Revoke lets no machine become a node of a lease.
func (c *Client) Revoke(ctx context.Context, id vnet.LeaseID, node string) error {
	return c.do(ctx, http.MethodDelete, NodePath(id, node, "join"), nil, nil)
}

// Flows lists the entries of an OpenFlow switch of a lease.
func (c *Client) Flows(ctx context.Context, id vnet.LeaseID, name string) ([]report.Flow, error) {
	var list []report.Flow
	err := c.do(ctx, http.MethodGet, LeasePath(id)+"/switches/"+url.PathEscape(name)+"/flows", nil, &list)
	slices.SortStableFunc(list, func(a, b report.Flow) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(b.Priority, a.Priority))
	})
	return list, err
}

// Switch is what an OpenFlow switch of a lease tells of itself.
func (c *Client) Switch(ctx context.Context, id vnet.LeaseID, name string) (s report.OpenFlowStatus, err error) {
	return s, c.do(ctx, http.MethodGet, LeasePath(id)+"/switches/"+url.PathEscape(name)+"/status", nil, &s)
}

// Trace says what would become of a frame that a port of an OpenFlow switch receives.
func (c *Client) Trace(ctx context.Context, id vnet.LeaseID, name string, port uint32, frame []byte) (t report.FlowTrace, err error) {
	q := url.Values{"in_port": {strconv.FormatUint(uint64(port), 10)}, "frame": {hex.EncodeToString(frame)}}
	return t, c.do(ctx, http.MethodGet, LeasePath(id)+"/switches/"+url.PathEscape(name)+"/trace?"+q.Encode(), nil, &t)
}

// Measured gives admission what a host was found to carry.
func (c *Client) Measured(ctx context.Context, host vnet.HostID, m vnet.Measurement) error {
	return c.do(ctx, http.MethodPut, "/v1/hosts/"+url.PathEscape(string(host))+"/measured", m, nil)
}

// Adopt makes a host whose agent keeps another plan follow the server's; for
// the operator. ErrConflict: it keeps none.
func (c *Client) Adopt(ctx context.Context, host vnet.HostID) error {
	return c.do(ctx, http.MethodPut, "/v1/hosts/"+url.PathEscape(string(host))+"/adopted", nil, nil)
}

// Paths reads what a host's routers and switches forward, and how.
func (c *Client) Paths(ctx context.Context, host vnet.HostID) (paths []report.Forwarding, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/plans/"+url.PathEscape(string(host))+"/paths", nil, &paths)
	return paths, err
}

// Diff reads what a host's agent would change now, into result: the agent's
// own JSON.
func (c *Client) Diff(ctx context.Context, host vnet.HostID, result any) error {
	return c.do(ctx, http.MethodGet, "/v1/plans/"+url.PathEscape(string(host))+"/diff", nil, result)
}

// Overlay reads a host's overlay entries.
func (c *Client) Overlay(ctx context.Context, host vnet.HostID) ([]report.TunnelState, error) {
	var states []report.TunnelState
	return states, c.do(ctx, http.MethodGet, "/v1/hosts/"+url.PathEscape(string(host))+"/overlay", nil, &states)
}

// Tables reads a host's tables of the operator's own tunnels.
func (c *Client) Tables(ctx context.Context, host vnet.HostID) ([]report.TableState, error) {
	var states []report.TableState
	return states, c.do(ctx, http.MethodGet, "/v1/hosts/"+url.PathEscape(string(host))+"/tables", nil, &states)
}

// ChangeTable changes one of them, or nothing.
func (c *Client) ChangeTable(ctx context.Context, host vnet.HostID, change plan.TableChange) error {
	return c.do(ctx, http.MethodPost, "/v1/hosts/"+url.PathEscape(string(host))+"/tables", change, nil)
}
