package rspec

import (
	"fmt"
	"slices"

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
	for _, p := range l.Properties {
		for _, has := range []struct{ word, value string }{{"latency", p.Latency}, {"packet_loss", p.Loss}} {
			if has.value != "" && has.value != "0" {
				r.note(p.at, true, where, "%s %s is left out", has.word, short(has.value))
			}
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

func meets(stated, id string) bool { return stated == "" || id == "" || stated == id }
