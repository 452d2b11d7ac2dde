package main

import (
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"sublet/lease"
	"sublet/plan"
	"sublet/vnet"
)

// trial is a book of one's own on a substrate, on which requests are decided
// as a server would: no server is asked and nothing is touched.
type trial struct {
	book   *lease.Book
	sub    vnet.Substrate
	now    time.Time
	accept bool // take counter-offers
}

// trialRun is the outcome of `up --dry-run`.
type trialRun struct {
	Substrate string         `json:"substrate"`
	Time      time.Time      `json:"time"` // as of which it was decided
	Admitted  int            `json:"admitted"`
	Refused   int            `json:"refused"`
	Requests  []trialOutcome `json:"requests"`
}

// trialOutcome says what became of one request.
type trialOutcome struct {
	File    string        `json:"file"`
	Network vnet.VNetID   `json:"network"`
	Tenant  vnet.TenantID `json:"tenant"`
	Nodes   int           `json:"nodes"`
	Links   int           `json:"links"`
	State   trialState    `json:"state"`
	Window  *vnet.Window  `json:"window,omitempty"`
	Mapping *vnet.Mapping `json:"mapping,omitempty"`
	Hosts   int           `json:"hosts,omitempty"`   // that would carry some of it
	Objects int           `json:"objects,omitempty"` // that would be made on them
	Changes []vnet.Change `json:"changes,omitempty"` // taken of a counter-offer
	Reasons []string      `json:"reasons,omitempty"`
	Offers  []vnet.Offer  `json:"offers,omitempty"`
	Never   string        `json:"never,omitempty"` // why there is no offer

	Undecided bool `json:"undecided,omitempty"` // not all was tried in the time an answer may take
}

// trialState is whether a request would be admitted.
type trialState string

const (
	trialAdmitted trialState = "admitted"
	trialRefused  trialState = "refused"
	trialFailed   trialState = "failed" // it contradicts itself, or a name is in use
)

// dryRun decides on requests, in order, on a substrate nobody else uses; what
// is admitted stays.
func (a *app) dryRun(files []string, o upOptions) error {
	if o.substrate == "" {
		return badInput{errors.New("--dry-run needs a --substrate: " + substrateForms)}
	}
	sub, err := a.readSubstrate(o.substrate)
	if err != nil {
		return err
	}
	requests := make([]vnet.Request, len(files))
	for i, name := range files {
		if requests[i], err = a.readRequest(name, false); err != nil {
			return err
		}
	}
	t := trial{book: lease.New(sub), sub: sub, now: a.asOf(requests), accept: o.accept}
	run := trialRun{Substrate: o.substrate, Time: t.now, Requests: make([]trialOutcome, len(files))}
	for i, r := range requests {
		run.Requests[i] = t.decide(files[i], r)
		switch run.Requests[i].State {
		case trialAdmitted:
			run.Admitted++
		case trialRefused:
			run.Refused++
		}
	}
	return errors.Join(a.printTrial(run), a.writeOffer(run, o.offer))
}

// writeOffer writes the counter-offer of the first request that has one, if it
// is wanted.
func (a *app) writeOffer(run trialRun, path string) error {
	for _, o := range run.Requests {
		if o.State == trialRefused && len(o.Offers) > 0 && path != "" {
			return a.offerTo(path, o.Offers[0].Request)
		}
	}
	return nil
}

// asOf is the instant at which a dry run takes place: now, or when the first
// of the requests begins, if that has passed.
func (a *app) asOf(requests []vnet.Request) time.Time {
	now := time.Now().Round(0).UTC()
	at := now
	for _, r := range requests {
		if !r.Start.IsZero() && r.Start.Before(at) {
			at = r.Start
		}
	}
	if at != now {
		fmt.Fprintf(a.err, "sublet: note: decided as if it were %s, when the first of them begins\n", at.Format(time.RFC3339))
	}
	return at
}

// decide asks for one network.
func (t *trial) decide(name string, r vnet.Request) trialOutcome {
	if r.Tenant == "" {
		r.Tenant = callersName()
	}
	union := r.Union()
	o := trialOutcome{File: name, Network: r.Network, Tenant: r.Tenant, Nodes: len(union.All()), Links: len(union.Links)}
	l, err := t.book.Admit(t.now, r, 0)
	var refused *vnet.Rejection
	if errors.As(err, &refused) && refused.Offer != nil && t.accept {
		o.Changes = refused.Changes
		l, err = t.book.Admit(t.now, *refused.Offer, 0)
	}
	if err == nil {
		err = t.compile(l, &o)
	}
	switch {
	case err == nil:
		o.State, o.Window, o.Mapping = trialAdmitted, &l.Window, &l.Mapping
	case errors.As(err, &refused):
		o.State, o.Reasons, o.Offers, o.Never, o.Undecided = trialRefused, refused.Reasons, refused.Offers, refused.Never, refused.Undecided
	default:
		o.State, o.Reasons = trialFailed, []string{oneLine(err)}
	}
	return o
}

// compile makes the plans of a lease's hosts, as if its window were open.
func (t *trial) compile(l vnet.Lease, o *trialOutcome) error {
	l.State = vnet.Deploying
	hosts, err := plan.Compile(t.sub, []vnet.Lease{l})
	if err != nil {
		return err
	}
	for _, h := range hosts {
		if n := len(h.Items()); n > 0 {
			o.Hosts++
			o.Objects += n
		}
	}
	return nil
}

// callersName is the tenant that a server would take the caller for.
func callersName() vnet.TenantID {
	if u, err := user.Current(); err == nil && vnet.CheckName(u.Username) == nil {
		return vnet.TenantID(u.Username)
	}
	return "caller"
}

// printTrial prints the outcomes; a refusal among them is exit code 3.
func (a *app) printTrial(run trialRun) error {
	rows := make([][]string, len(run.Requests))
	code := exitDone
	for i, o := range run.Requests {
		rows[i] = []string{o.File, string(o.Network), fmt.Sprint(o.Nodes), fmt.Sprint(o.Links), string(o.State), o.why()}
		switch o.State {
		case trialRefused:
			code = max(code, exitRefused)
		case trialFailed:
			code = max(code, exitInput)
		}
	}
	if err := a.print(run, "FILE NETWORK NODES LINKS RESULT WHY", rows); err != nil {
		return err
	}
	if a.format == "table" {
		fmt.Fprintf(a.out, "%d of %d would be admitted\n", run.Admitted, len(run.Requests))
	}
	if code != exitDone {
		return status(code)
	}
	return nil
}

// why explains an outcome in one line: what binds and the nearest offer, or
// where the network would be.
func (o trialOutcome) why() string {
	changes := o.Changes
	text := strings.Join(o.Reasons, "; ")
	switch {
	case o.State == trialAdmitted:
		text = fmt.Sprintf("%d objects on %s", o.Objects, number(o.Hosts, "host"))
	case len(o.Offers) > 0:
		changes = o.Offers[0].Changes
		text += "; would be admitted"
	case o.Never != "":
		text += "; " + o.Never
	case o.Undecided:
		text += "; " + undecided
	}
	var words []string
	for _, c := range changes {
		words = append(words, c.String())
	}
	if len(words) > 0 {
		text += " with " + strings.Join(words, ", ")
	}
	return text
}

// number counts things in words.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
