package vnet

import (
	"maps"
	"slices"
	"time"
)

// Paused is the state of a lease whose nodes stand still: their processes and
// machines have been frozen, until its owner has it resume.
const Paused State = "paused"

// Pause says that a lease is paused, or is being paused.
type Pause struct {
	Since time.Time `json:"since"`
	// GaveBack says that others may use its rates: nothing is booked for its links
	// while it lasts.
	GaveBack bool `json:"gave_back,omitempty"`
}

// Holds says that a lease is there for its owner, who pays for it: it can be used,
// or is paused.
func (s State) Holds() bool { return s.Up() || s == Paused }

// Held is what a lease holds of what its request asks for: all but the rates of a
// network that gave them back.
func (l Lease) Held() Request { return l.Paused.Of(l.Request) }

// Of is what a network holds of a request while it is paused so; nil: it is not.
func (p *Pause) Of(r Request) Request {
	if p == nil || !p.GaveBack {
		return r
	}
	return r.withoutRates()
}

// withoutRates is a request whose links are best effort in all stages.
func (r Request) withoutRates() Request {
	r.Links = bestEffort(r.Links)
	r.Stages = slices.Clone(r.Stages)
	for i := range r.Stages {
		s := &r.Stages[i]
		s.Add.Links = bestEffort(s.Add.Links)
		s.Links = maps.Clone(s.Links)
		for name := range s.Links {
			s.Links[name] = [2]Bandwidth{}
		}
	}
	return r
}

func bestEffort(links []VirtualLink) []VirtualLink {
	links = slices.Clone(links)
	for i := range links {
		links[i].Bandwidth = [2]Bandwidth{}
	}
	return links
}
