package vxdl

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"time"

	"sublet/vnet"
)

// Format writes a filled and valid request as VXDL 2.0. The notes say what the
// language cannot carry, and what only Sublet's own reader will understand;
// without such notes, Parse gives r back.
func Format(r vnet.Request) ([]byte, []Note) {
	w := &writer{request: r}
	w.text.WriteString(xml.Header)
	w.inside(`description xmlns="`+Namespace+`"`, func() {
		w.inside("virtualInfrastructure", w.infrastructure)
	})
	w.lostFreedom()
	w.lostStages()
	w.lostWishes()
	return w.text.Bytes(), w.notes
}

// lostWishes tells of wishes for the embedding and of chains, which VXDL has no words for.
func (w *writer) lostWishes() {
	where := "network " + string(w.request.Network)
	if w.request.Apart() {
		w.lose(where, "colocate forbidden is not written: nodes may share a host")
	}
	if o := w.request.Objective; o != "" && o != vnet.RevenueOverCost {
		w.lose(where, "objective %s is not written", o)
	}
	if w.request.IPv6 {
		w.lose(where, "ipv6 is not written: VXDL has no words for addresses")
	}
	for _, class := range w.request.Classes {
		w.lose(where, "class %s is not written: VXDL has no words for classes of traffic", class.Name)
	}
	for _, chain := range w.request.Chains {
		w.lose(where, "chain %s is not written: VXDL has no words for chains", chain.Name)
	}
}

type writer struct {
	printer
	request vnet.Request
	notes   []Note
}

func (w *writer) note(where, format string, args ...any) {
	w.notes = append(w.notes, Note{Where: where, Text: fmt.Sprintf(format, args...)})
}

// lose notes what is not written.
func (w *writer) lose(where, format string, args ...any) {
	w.note(where, format, args...)
	w.notes[len(w.notes)-1].Lost = true
}

func (w *writer) infrastructure() {
	r := w.request
	w.leaf("id", string(r.Network))
	if !r.Start.IsZero() {
		w.leaf("startDate", r.Start.UTC().Format(time.RFC3339Nano))
	}
	if r.For > 0 {
		w.leaf("totalTime", formatDuration(r.For))
	} else {
		w.note("network "+string(r.Network), "no totalTime is written: the lease is open-ended")
	}
	w.optional("owner", string(r.Tenant))
	for _, n := range r.Nodes {
		w.node(n)
	}
	for _, s := range r.Switches {
		if s.Access != "" {
			w.access(s)
		}
	}
	for _, n := range r.Routers {
		w.router(n)
	}
	for _, s := range r.Switches {
		if s.Access == "" {
			w.lose("switch "+s.Name, "is not written: VXDL 2.0 has no switches")
		}
	}
	for _, l := range r.Links {
		if w.atSwitch(l) {
			w.lose("link "+l.Name, "is not written: it ends at a switch")
			continue
		}
		w.link(l)
	}
	if len(r.Stages) > 0 {
		w.inside("timeline", w.timeline)
	}
}

// atSwitch says that a link ends at a switch that is not written.
func (w *writer) atSwitch(l vnet.VirtualLink) bool {
	a, at := w.request.Switch(l.Ends[0])
	b, also := w.request.Switch(l.Ends[1])
	return at && a.Access == "" || also && b.Access == ""
}

func (w *writer) timeline() {
	for _, s := range w.request.Stages {
		if s.OnCommand {
			continue
		}
		w.inside("event", func() {
			w.leaf("id", s.Name)
			w.leaf("delay", formatSeconds(s.After))
		})
	}
}

// lostFreedom notes what the language has no words for.
func (w *writer) lostFreedom() {
	r, where := w.request, "network "+string(w.request.Network)
	if !r.Before.IsZero() {
		w.lose(where, "the latest start is not written: VXDL 2.0 has one start")
	}
	if r.Movable {
		w.lose(where, "that its links may be moved is not written: VXDL 2.0 has no word for it")
	}
	if len(r.Labels) > 0 {
		w.lose(where, "labels of the network are not written: VXDL 2.0 has no word for them")
	}
	if len(r.Negotiable) > 0 {
		w.lose(where, "what is negotiable is not written: VXDL 2.0 has no word for it")
	}
}

// lostStages notes what stages do beyond rates.
func (w *writer) lostStages() {
	for _, s := range w.request.Stages {
		where := "stage " + s.Name
		if s.OnCommand {
			w.lose(where, "is not written: VXDL 2.0 has no stages on command")
			continue
		}
		for _, n := range s.Add.Placed() {
			w.lose(where, "%s is not added: VXDL 2.0 has one topology for all time", n.Name)
		}
		for _, l := range s.Add.Links {
			w.lose(where, "link %s is not added: VXDL 2.0 has one topology for all time", l.Name)
		}
		for _, name := range s.Remove {
			w.lose(where, "%s is not removed: VXDL 2.0 has one topology for all time", name)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Impair)) {
			w.lose("stage "+s.Name, "the impairment of link %s is not written: VXDL 2.0 has none", name)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Down)) {
			w.lose(where, "whether link %s is down is not written: VXDL 2.0 has no such word", name)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Links)) {
			if _, ok := w.request.Link(name); !ok {
				w.lose(where, "the rate of link %s is not written: the link is not there at the start", name)
			}
		}
	}
}
