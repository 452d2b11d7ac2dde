package vnet

import (
	"fmt"
	"strings"
	"time"
)

// Load is what is booked over time of one direction of a substrate link. Whose
// leases they are it does not say.
type Load struct {
	Link     string     `json:"link"`
	From     string     `json:"from"`
	To       string     `json:"to"`
	Leasable Rate       `json:"leasable_bps"`
	Down     bool       `json:"down,omitempty"`
	Steps    []LoadStep `json:"steps"` // in order; the first holds from the beginning of what was asked for
}

// LoadStep is what is booked from an instant on.
type LoadStep struct {
	At     time.Time `json:"at"`
	Booked Rate      `json:"booked_bps"` // sum of guaranteed minima
	Leases int       `json:"leases"`     // that have a minimum there; 0 where the caller is not told
}

// Peak is the most booked at any instant of a window.
func (l Load) Peak(w Window) LoadStep {
	var peak LoadStep
	for i, s := range l.Steps {
		lasts := Window{Start: s.At}
		if i+1 < len(l.Steps) {
			lasts.End = l.Steps[i+1].At
		}
		if lasts.Overlaps(w) && s.Booked >= peak.Booked {
			peak = s
		}
	}
	return peak
}

// HostLoad is what is booked over time of a host.
type HostLoad struct {
	Host   HostID     `json:"host"`
	CPU    CPU        `json:"cpu_milli"`    // that may be leased
	Memory Bytes      `json:"memory_bytes"` // likewise
	Down   bool       `json:"down,omitempty"`
	Steps  []HostStep `json:"steps"` // in order; the first holds from the beginning of what was asked for
}

// HostStep is what is booked of a host from an instant on.
type HostStep struct {
	At        time.Time `json:"at"`
	CPU       CPU       `json:"cpu_milli"`
	Memory    Bytes     `json:"memory_bytes"`
	Exclusive bool      `json:"exclusive,omitempty"` // one network has the host for itself
}

// Peak is the most booked of each at any instant of a window.
func (l HostLoad) Peak(w Window) (peak HostStep) {
	for i, s := range l.Steps {
		lasts := Window{Start: s.At}
		if i+1 < len(l.Steps) {
			lasts.End = l.Steps[i+1].At
		}
		if lasts.Overlaps(w) {
			peak.CPU, peak.Memory = max(peak.CPU, s.CPU), max(peak.Memory, s.Memory)
			peak.Exclusive = peak.Exclusive || s.Exclusive
		}
	}
	return peak
}

// Quote is how a request would be admitted if it were asked for now.
type Quote struct {
	Window  Window   `json:"window"`
	Mapping Mapping  `json:"mapping"`
	Account *Account `json:"account"`
	// Moves are leases that would be moved to make room.
	Moves []Disturbance `json:"moves,omitempty"`
}

// Disturbance is what making room for another lease does to one.
type Disturbance struct {
	Lease LeaseID  `json:"lease,omitzero"`  // shown to its owner and the operator
	Links []string `json:"links,omitempty"` // those that move; shown likewise
	Moved int      `json:"moved"`           // how many links move
	// Nodes are the routers, switches and nodes that go to other hosts; shown likewise.
	Nodes   []Relocation `json:"nodes,omitempty"`
	Running bool         `json:"running"` // what is only booked notices nothing, but for:
	// Start is when one that has not begun begins instead; zero: as booked.
	Start time.Time `json:"start,omitzero"`
	// Interruption is how long each of the links carries nothing, predicted.
	Interruption time.Duration `json:"interruption_ns"`
}

// Relocation is what goes to another host.
type Relocation struct {
	Node string `json:"node"`
	From HostID `json:"from"`
	To   HostID `json:"to"`
}

// Relocations are what of a topology is elsewhere in another mapping.
func Relocations(t Topology, from, to Mapping) (list []Relocation) {
	for _, n := range t.Placed() {
		if was, is := from.Nodes[n.Name], to.Nodes[n.Name]; was != is && was != "" && is != "" {
			list = append(list, Relocation{Node: n.Name, From: was, To: is})
		}
	}
	return list
}

// NodesWords says what goes to other hosts; "": nothing that is shown.
func (d Disturbance) NodesWords() string {
	var list []string
	for _, n := range d.Nodes {
		list = append(list, fmt.Sprintf("%s goes from %s to %s", n.Node, n.From, n.To))
	}
	return strings.Join(list, ", ")
}

// Words says it, for who knows the lease.
func (d Disturbance) Words() string {
	switch {
	case !d.Start.IsZero():
		return "it begins at " + d.Start.UTC().Format(time.RFC3339) + " instead"
	case !d.Running:
		return "it has not begun, and is placed anew"
	case len(d.Nodes) > 0:
		return d.NodesWords()
	case d.Moved == 1:
		return fmt.Sprintf("its link %s takes another path, interrupted for up to %s", strings.Join(d.Links, ""), d.Interruption)
	case d.Moved > 0:
		return fmt.Sprintf("%d of its links (%s) take other paths, interrupted for up to %s", d.Moved, strings.Join(d.Links, ", "), d.Interruption)
	}
	return "what it has there goes elsewhere"
}
