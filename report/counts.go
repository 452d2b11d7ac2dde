package report

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"sublet/vnet"
)

// Counts are what the links of a host have counted at an instant, in the form that
// costs least to ask for every second: who has the list of links does not get it
// again.
type Counts struct {
	At time.Time `json:"at"`
	// Waited is how long some work of the host had waited for a processor; 0: not known.
	Waited time.Duration `json:"waited_ns,omitempty"`
	Set    uint64        `json:"set"`             // of Links: it is another when they are
	Links  []LinkWay     `json:"links,omitempty"` // none: those of the set that was asked from
	Values []LinkSums    `json:"-"`               // of each link in turn
	// Latencies are of the tunnels by which links leave this host, as far as known.
	Latencies []LinkLatency `json:"latencies,omitempty"`
}

// LinkWay is one direction of a link on a host.
type LinkWay struct {
	Lease     vnet.LeaseID   `json:"lease"`
	Link      string         `json:"link"`
	Direction vnet.Direction `json:"direction"`
	Enters    bool           `json:"enters,omitempty"`  // frames enter the link here
	Leaves    bool           `json:"leaves,omitempty"`  // and leave it
	Several   bool           `json:"several,omitempty"` // it goes over several paths
	// Part says that it is a chain (vnet.ChainWay), and what of it was counted: each has
	// values of its own.
	Part ChainPart `json:"part,omitempty"`
	Why  string    `json:"why,omitempty"` // Through: why the chain has less than its rate for want of processor time
}

// ChainPart is what is counted of a chain on a host.
type ChainPart string

// What values are of.
const (
	Begins  ChainPart = "begins"  // where its rate is held: packets and bytes that came, packets above the rate
	Through ChainPart = "through" // packets that functions dropped as they should, that went into programs, that came back
	Ends    ChainPart = "ends"    // packets and bytes that left it
)

// LinkSums are packets and bytes that entered a link on this host, and frames
// that its rate's queue dropped.
type LinkSums [3]uint64

// CountsList makes the list of links of counts.
type CountsList struct {
	links []LinkWay
	known map[LinkWay]int
}

// NewCounts begins a list.
func NewCounts() *CountsList { return &CountsList{known: make(map[LinkWay]int)} }

// Link adds one direction of a link, or a path of it, and returns its number.
func (l *CountsList) Link(w LinkWay) int {
	name := LinkWay{Lease: w.Lease, Link: w.Link, Direction: w.Direction}
	i, again := l.known[name]
	if !again {
		i, l.known[name] = len(l.links), len(l.links)
		l.links = append(l.links, w)
		return i
	}
	have := &l.links[i]
	have.Enters, have.Leaves, have.Several = have.Enters || w.Enters, have.Leaves || w.Leaves, true
	return i
}

// Chain adds a part of a chain, and returns its number.
func (l *CountsList) Chain(w LinkWay) int {
	l.links = append(l.links, w)
	return len(l.links) - 1
}

// And are counts of links with those of others, which have names of their own.
func (c Counts) And(more Counts) Counts {
	switch {
	case len(more.Links) == 0:
		return c
	case len(c.Links) == 0:
		more.At, more.Waited = c.At, c.Waited
		return more
	}
	c.Set = c.Set*31 + more.Set
	c.Links, c.Values = slices.Concat(c.Links, more.Links), slices.Concat(c.Values, more.Values)
	return c
}

// Done are counts without values.
func (l *CountsList) Done() Counts {
	text, _ := json.Marshal(l.links) // of strings, numbers and booleans: cannot fail
	sum := fnv.New64a()
	_, _ = sum.Write(text) // never fails
	return Counts{Set: sum.Sum64(), Links: l.links}
}

// Encode writes counts for who has the links of a set already: a line of JSON, then
// the values as varints.
func (c Counts) Encode(set uint64) []byte {
	if c.Set == set {
		c.Links = nil
	}
	text, _ := json.Marshal(c) // as above
	text = append(text, '\n')
	for _, v := range c.Values {
		for _, n := range v {
			text = binary.AppendUvarint(text, n)
		}
	}
	return text
}

// DecodeCounts reads them for who has these links of a set, and says what is wrong
// with them: agents are not trusted to count right.
func DecodeCounts(text []byte, set uint64, links []LinkWay) (c Counts, err error) {
	head, rest, _ := bytes.Cut(text, []byte{'\n'})
	if err := json.Unmarshal(head, &c); err != nil {
		return c, err
	}
	if c.Links == nil && c.Set == set {
		c.Links = links
	}
	c.Values = make([]LinkSums, len(c.Links))
	for i := range c.Values {
		for j := range c.Values[i] {
			n, size := binary.Uvarint(rest)
			if size <= 0 {
				return c, fmt.Errorf("there are %d links, and values of %d", len(c.Links), i)
			}
			c.Values[i][j], rest = n, rest[size:]
		}
	}
	if len(rest) > 0 {
		return c, fmt.Errorf("there are %d bytes too many for %d links", len(rest), len(c.Links))
	}
	return c, c.check()
}

func (c Counts) check() error {
	for _, l := range c.Links {
		if l.Direction != vnet.Forward && l.Direction != vnet.Reverse {
			return errors.New("a link has a direction that is not 0 or 1")
		}
	}
	for _, l := range c.Latencies {
		if l.At < 0 || l.At >= len(c.Links) {
			return fmt.Errorf("there is a latency of link %d of %d", l.At, len(c.Links))
		}
	}
	return nil
}
