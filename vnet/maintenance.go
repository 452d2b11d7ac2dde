package vnet

import (
	"fmt"
	"slices"
	"time"
)

// Maintenance is a time in which the operator works on a host or a link of the
// substrate: nothing new is placed there for it.
type Maintenance struct {
	ID    string    `json:"id"`
	Host  HostID    `json:"host,omitempty"` // or
	Link  string    `json:"link,omitempty"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Note  string    `json:"note,omitempty"`
}

// Window is when.
func (m Maintenance) Window() Window { return Window{Start: m.Start, End: m.End} }

// String says what and when, for people.
func (m Maintenance) String() string {
	what := "host " + string(m.Host)
	if m.Link != "" {
		what = "link " + m.Link
	}
	return fmt.Sprintf("maintenance of %s from %s until %s", what, m.Start.UTC().Format(time.RFC3339), m.End.UTC().Format(time.RFC3339))
}

// Concerns says whether a lease has something where and when there is maintenance.
func (m Maintenance) Concerns(l Lease) bool {
	if l.State == Ended || !l.Window.Overlaps(m.Window()) {
		return false
	}
	if m.Host != "" {
		for _, h := range l.Mapping.Nodes {
			if h == m.Host {
				return true
			}
		}
		return false
	}
	for _, p := range l.Mapping.Links {
		if slices.Contains(p, m.Link) {
			return true
		}
	}
	for _, shares := range l.Mapping.Splits {
		if slices.ContainsFunc(shares, func(s PathShare) bool { return slices.Contains(s.Path, m.Link) }) {
			return true
		}
	}
	return false
}

// Without is the substrate without what is under maintenance at some of a window.
func (s Substrate) Without(list []Maintenance) Substrate {
	gone := make(map[string]bool)
	links := make(map[string]bool)
	for _, m := range list {
		gone[string(m.Host)], links[m.Link] = true, true
	}
	s.Hosts = slices.DeleteFunc(slices.Clone(s.Hosts), func(h SubstrateNode) bool { return gone[string(h.Name)] })
	s.Links = slices.DeleteFunc(slices.Clone(s.Links), func(l SubstrateLink) bool {
		return links[l.Name] || gone[l.Ends[0]] || gone[l.Ends[1]]
	})
	return s
}
