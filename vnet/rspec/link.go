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
		ids := [2]string{l.Refs[0].id(), l.Refs[1].id()}
		var impair [2]vnet.Impairment
		for d := range impair {
			if impair[d], err = impairment(r.file, l, ids[d], ids[1-d]); err != nil {
				return err
			}
		}
		return r.join(l, name, [2]string{ends[0], ends[1]}, ids, impair)
	}
	r.at[fmt.Sprintf("switches[%d]", len(r.request.Switches))] = l.at
	r.request.Switches = append(r.request.Switches, vnet.VirtualSwitch{Name: name})
	members := make(map[string]bool)
	for _, ref := range l.Refs {
		members[ref.id()] = true
	}
	for i, member := range ends {
		id := l.Refs[i].id()
		impair, agree, err := sending(r.file, l, id, members)
		if err != nil {
			return err
		}
		if !agree {
			r.note(l.at, true, where, "latency and packet_loss from %s are left out: they are not the same to all others, state them so", short(id))
		}
		if err := r.join(l, "", [2]string{member, name}, [2]string{id, ""}, [2]vnet.Impairment{impair}); err != nil {
			return err
		}
	}
	return nil
}

// sending is the impairment of all that a member of a LAN sends, which its link
// to the switch has: that of its way to each other member. agree is false where
// these differ, which no link can have.
func sending(file string, l link, from string, members map[string]bool) (same vnet.Impairment, agree bool, err error) {
	to := make(map[string]vnet.Impairment) // by member, "": to all
	for _, p := range l.Properties {
		if meets(p.Source, from) && (p.Dest == "" || p.Dest != from && members[p.Dest]) {
			one, err := impairmentOf(file, p)
			if err != nil {
				return same, false, err
			}
			to[p.Dest] = worse(to[p.Dest], one)
		}
	}
	all := to[""]
	delete(to, "")
	same, agree = all, true
	for _, one := range to {
		same = worse(same, one)
	}
	if len(to) < len(members)-1 {
		agree = same == all // of the others nothing else is said
	}
	for _, one := range to {
		agree = agree && worse(all, one) == same
	}
	if !agree {
		return vnet.Impairment{}, false, nil
	}
	return same, true, nil
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
func (r *reader) join(l link, name string, ends, interfaces [2]string, impair [2]vnet.Impairment) error {
	made := vnet.VirtualLink{Name: name, Ends: ends, Impair: impair}
	for d := range made.Bandwidth {
		rate, err := capacity(r.file, l, interfaces[d], interfaces[1-d])
		if err != nil {
			return err
		}
		if rate > 0 {
			made.Bandwidth[d] = vnet.Static(rate)
		}
	}
	for d, id := range interfaces {
		made.Addresses[d] = r.addresses[id]
		delete(r.addresses, id)
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
		one, err := impairmentOf(file, p)
		if err != nil {
			return worst, err
		}
		worst = worse(worst, one)
	}
	return worst, nil
}

func impairmentOf(file string, p property) (one vnet.Impairment, err error) {
	if one.Delay, err = milliseconds(file, p); err == nil {
		one.Loss, err = part(file, p)
	}
	return one, err
}

// worse has the longer delay and the larger loss of two.
func worse(a, b vnet.Impairment) vnet.Impairment {
	return vnet.Impairment{Delay: max(a.Delay, b.Delay), Loss: max(a.Loss, b.Loss)}
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
