// Package report says, as data, what flows back from the hosts: a Report is
// what an agent says of its host as a whole and of what could not be done there.
//
// A Sample is what is known of one thing at one instant, in one form for all.
//
//	agent --Report, with errors--> server: the book's state, sublet hosts
//	parts --Sample--> agent: a Ring of Rounds --> server: feeds --> watchers
//	                    |
//	                    +--> Traffics, Forwardings, Tunnels: what commands show
package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sublet/plan"
	"sublet/vnet"
)

// Report is what an agent says of its host.
type Report struct {
	Host       vnet.HostID       `json:"host"`
	Revision   uint64            `json:"revision"`         // the plan last applied completely
	Tried      uint64            `json:"tried,omitempty"`  // the plan last gone through, with Errors if more than Revision
	Plan       *plan.Origin      `json:"plan,omitempty"`   // the plan of Tried; nil: none yet, or an agent of a former version
	Held       *Held             `json:"held,omitempty"`   // why the server's plan is not followed; nil: it is
	Agent      string            `json:"agent"`            // where exec and capture are served
	Errors     Errors            `json:"errors,omitempty"` // what could not be done
	Drift      uint64            `json:"drift,omitempty"`  // repairs since start
	Features   map[string]string `json:"features,omitempty"`
	NoCarrier  []string          `json:"dark,omitempty"`       // interfaces of the host without a carrier, sorted
	Interfaces []Interface       `json:"interfaces,omitempty"` // of the host, MostInterfaces at most
	// Machines is what runs virtual machines on the host: kvm or software; "": nothing.
	Machines string `json:"machines,omitempty"`
	// Exposed are the ports that images of nodes say they serve, such as 80/tcp, by
	// namespace.
	Exposed map[string][]string `json:"exposed,omitempty"`
	// Repairs are those since the last report that the server has heard.
	Repairs []Repair `json:"repairs,omitempty"`
}

// Repair is what an agent made as planned again although its plan had not
// changed: an accident's traces, or what a tenant had changed inside their node.
type Repair struct {
	Lease vnet.LeaseID `json:"lease"`
	Count uint64       `json:"count"` // steps
	Text  string       `json:"text"`  // of the last of them
}

// Held is what an agent keeps a host at, because the server's plan does not go
// on from it, until the operator says that the server's is to be followed.
type Held struct {
	plan.Origin
	Store string `json:"store,omitempty"` // of the plan that is kept; "": not known
	Why   string `json:"why"`
}

// ItemError is what could not be done to one item, or, with Op Observe, what
// could not be read.
type ItemError struct {
	Kind  plan.Kind    `json:"kind,omitempty"` // of the item; "": the host as a whole
	Key   string       `json:"key,omitempty"`
	What  string       `json:"what,omitempty"` // what users call the item; "": see Subject
	Lease vnet.LeaseID `json:"lease,omitzero"` // of the item; zero: see OfHost
	Op    plan.Op      `json:"op,omitempty"`   // "": an agent of a former version reported it
	Text  string       `json:"text"`
}

// NewItemError says that a step failed.
func NewItemError(s plan.Step, err error) ItemError {
	return ItemError{Kind: s.Item.Kind(), Key: s.Item.Key(), What: subjectOf(s.Item), Lease: s.Item.LeaseID(), Op: s.Op, Text: err.Error()}
}

// Unread says that something of a host could not be looked at.
func Unread(u plan.Unknown) ItemError {
	e := ItemError{Kind: u.Kind, Lease: u.Lease, Op: plan.Observe, Text: u.Why}
	if (u.Lease != vnet.LeaseID{}) {
		e.Key = plan.Fabric(u.Lease)
	}
	return e
}

// OfHost says that an error concerns every lease on the host. An error that
// does not, and that names no lease, is of an item whose lease is not known.
func (e ItemError) OfHost() bool {
	return e.Lease == vnet.LeaseID{} && (e.Kind == plan.KindUplink || e.Op == plan.Observe)
}

// Item names what the error is of: its kind and key.
func (e ItemError) Item() string { return strings.TrimSpace(string(e.Kind) + " " + e.Key) }

// Subject is what users call what the error is of.
func (e ItemError) Subject() string {
	if e.What != "" || e.Kind == "" {
		return e.What
	}
	if e.Key == "" {
		return nounOf(e.Kind)
	}
	return nounOf(e.Kind) + " of " + e.Key
}

// cannot says in words that an operation failed.
var cannot = map[plan.Op]string{
	plan.Add: "cannot be made", plan.Set: "cannot be set up", plan.Delete: "cannot be removed", plan.Observe: "cannot be read",
}

// String says to users what failed, and why. What the text says of the item
// by its key the subject says in their words.
func (e ItemError) String() string {
	text := e.Text
	if _, cause, found := strings.Cut(text, e.Key+": "); found && e.Key != "" {
		text = cause
	}
	what := strings.TrimSpace(e.Subject() + " " + cannot[e.Op])
	return strings.Join(slices.DeleteFunc([]string{what, text}, func(w string) bool { return w == "" }), ": ")
}

// Errors of a report, by kind and key.
type Errors []ItemError

// Sort orders errors by kind and key.
func (e Errors) Sort() {
	slices.SortFunc(e, func(a, b ItemError) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key)) })
}

// UnmarshalJSON reads a list, or what agents reported before there were
// lists: an object of texts by kind and key, from which no lease can be told.
func (e *Errors) UnmarshalJSON(text []byte) error {
	var former map[string]string
	if json.Unmarshal(text, &former) != nil {
		return json.Unmarshal(text, (*[]ItemError)(e))
	}
	*e = nil
	for _, item := range slices.Sorted(maps.Keys(former)) {
		kind, key, _ := strings.Cut(item, " ")
		*e = append(*e, ItemError{Kind: plan.Kind(kind), Key: key, Text: former[item]})
	}
	return nil
}
