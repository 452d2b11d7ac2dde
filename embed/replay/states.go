package replay

import (
	"encoding/json"
	"errors"
	"strconv"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/vnet"
)

// States embeds the requests that are asked for, each in the state in which it
// arrived in a run whose mappings are given, and changes nothing: decided gets
// its cost, demand times hops, or false when it was refused. So searches can be
// compared decision by decision, though in a run each changes all that come
// after it.
func States(in *Instance, held map[int]Mapping, opt embed.Options, asks func(id int) bool, decided func(id int, cost float64, found bool) error) error {
	embedder, err := embed.New(in.Substrate())
	if err != nil {
		return err
	}
	cal, booked := calendar.New(), map[int][]calendar.Booking{}
	for _, e := range in.Events {
		id := e.Request
		if !e.Arrives {
			if err := cal.Release(booked[id]...); err != nil {
				return err
			}
			delete(booked, id)
			continue
		}
		asked := in.Requests[id].network(id, Options{})
		if asks(id) {
			m, err := embedder.Embed(cal, asked, vnet.Window{Start: epoch}, opt)
			if infeasible := new(embed.Infeasible); err != nil && !errors.As(err, &infeasible) {
				return err
			}
			if err := decided(id, in.Requests[id].cost(m), err == nil); err != nil {
				return err
			}
		}
		if was, in := held[id]; in {
			var err error
			if booked[id], err = embedder.Bookings(asked, vnet.Window{Start: epoch}, was.named()); err != nil {
				return err
			}
			if err := cal.Book(booked[id]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// cost is demand times hops.
func (r Request) cost(m vnet.Mapping) float64 {
	sum := 0.0
	for i, l := range r.Links {
		sum += l.Amount * float64(len(m.Links[strconv.Itoa(i)]))
	}
	return sum
}

// named is the mapping in the words of the program; it takes single paths.
func (m Mapping) named() vnet.Mapping {
	named := vnet.Mapping{Nodes: map[string]vnet.HostID{}, Links: map[string]vnet.Path{}}
	for i, h := range m.Nodes {
		named.Nodes[strconv.Itoa(i)] = vnet.HostID(strconv.Itoa(h))
	}
	for i, l := range m.Links {
		path := vnet.Path{}
		for _, link := range l.paths[0].Path {
			path = append(path, strconv.Itoa(link))
		}
		named.Links[strconv.Itoa(i)] = path
	}
	return named
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Carrier) UnmarshalJSON(text []byte) error {
	var one []int
	if json.Unmarshal(text, &one) == nil {
		l.split, l.paths = false, []Path{{one, 1}}
		return nil
	}
	l.split = true
	return json.Unmarshal(text, &l.paths)
}
