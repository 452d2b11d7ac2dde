package rspec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"sublet/vnet"
)

// harmless are types of links that say no more than that they are links.
var harmless = []string{"", "lan", "vlan", "ethernet"}

// link adds one, or a switch with a link to each of more than two members.
func (r *reader) link(l link) error {
	where := "link " + short(l.ClientID)
	ends, err := r.members.of(r.file, l)
	if err != nil {
		return err
	}
	if len(ends) < 2 || len(ends) == 2 && ends[0] == ends[1] {
		r.note(l.at, true, where, "is left out: a link joins two nodes")
		return nil
	}
	r.tell(l, where)
	name := r.name(l.at, "link", l.ClientID)
	if len(ends) == 2 {
		return r.join(l, name, [2]string{ends[0], ends[1]}, [2]string{l.Refs[0].id(), l.Refs[1].id()})
	}
	r.at[fmt.Sprintf("switches[%d]", len(r.request.Switches))] = l.at
	r.request.Switches = append(r.request.Switches, vnet.VirtualSwitch{Name: name})
	for i, member := range ends {
		if err := r.join(l, "", [2]string{member, name}, [2]string{l.Refs[i].id(), ""}); err != nil {
			return err
		}
	}
	return nil
}

// tell notes what is left out of a link.
func (r *reader) tell(l link, where string) {
	for _, t := range l.Types {
		if !slices.Contains(harmless, t.Name) {
			r.note(l.at, true, where, "link_type %s is left out", short(t.Name))
		}
	}
	var others []other
	for _, o := range l.Others {
		if o.XMLName.Local != "component_manager" { // which every link has that names its ends' aggregates
			others = append(others, o)
		}
	}
	r.leaveOut(l.at, where, others)
}

// join adds a link between ends, of which interfaces are the ids; an empty one
// is any other of the link.
func (r *reader) join(l link, name string, ends, interfaces [2]string) error {
	made := vnet.VirtualLink{Name: name, Ends: ends}
	for d := range made.Bandwidth {
		rate, err := capacity(r.file, l, interfaces[d], interfaces[1-d])
		if err != nil {
			return err
		}
		if rate > 0 {
			made.Bandwidth[d] = vnet.Static(rate)
		}
		if made.Impair[d], err = impairment(r.file, l, interfaces[d], interfaces[1-d]); err != nil {
			return err
		}
	}
	r.at[fmt.Sprintf("links[%d]", len(r.request.Links))] = l.at
	r.request.Links = append(r.request.Links, made)
	return nil
}

// capacity is the largest that a link's properties state from one interface to
// another; 0: none. A property without ends is of both directions.
func capacity(file string, l link, from, to string) (vnet.Rate, error) {
	var most vnet.Rate
	for _, p := range l.Properties {
		if !meets(p.Source, from) || !meets(p.Dest, to) {
			continue
		}
		rate, err := kbit(file, p)
		if err != nil {
			return 0, err
		}
		most = max(most, rate)
	}
	return most, nil
}

// impairment is the longest latency (ms) and the largest packet_loss (a part of
// 1) that a link's properties state from one interface to another.
func impairment(file string, l link, from, to string) (worst vnet.Impairment, err error) {
	for _, p := range l.Properties {
		if !meets(p.Source, from) || !meets(p.Dest, to) {
			continue
		}
		delay, err := milliseconds(file, p)
		if err != nil {
			return worst, err
		}
		loss, err := part(file, p)
		if err != nil {
			return worst, err
		}
		worst.Delay, worst.Loss = max(worst.Delay, delay), max(worst.Loss, loss)
	}
	return worst, nil
}

// milliseconds reads a latency; 0: none is stated.
func milliseconds(file string, p property) (time.Duration, error) {
	if p.Latency == "" {
		return 0, nil
	}
	ms, err := strconv.ParseFloat(p.Latency, 64)
	if err != nil || !(ms >= 0 && ms <= float64(vnet.MaxLatency/time.Millisecond)) {
		return 0, failAt(file, p.at, "latency %s is no number of ms, up to %d", short(p.Latency), vnet.MaxLatency/time.Millisecond)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// part reads a packet_loss; 0: none is stated.
func part(file string, p property) (vnet.Share, error) {
	if p.Loss == "" {
		return 0, nil
	}
	loss, err := strconv.ParseFloat(p.Loss, 64)
	if err != nil || !(loss >= 0 && loss <= 1) {
		return 0, failAt(file, p.at, "packet_loss %s is no number from 0 to 1", short(p.Loss))
	}
	return vnet.Share(math.Round(loss * float64(vnet.WholeShare))), nil
}

func meets(stated, id string) bool { return stated == "" || id == "" || stated == id }
