package embed

import (
	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/vnet"
)

// embedOn embeds with an embedder made for this one request.
func embedOn(sub vnet.Substrate, cal *calendar.Calendar, request vnet.Request, window vnet.Window) (vnet.Mapping, error) {
	e, err := New(sub)
	if err != nil {
		return vnet.Mapping{}, err
	}
	return e.Embed(cal, request, window, Options{})
}

// bookingsOn lists a mapping's bookings with an embedder made for them.
func bookingsOn(sub vnet.Substrate, request vnet.Request, window vnet.Window, mapping vnet.Mapping) ([]calendar.Booking, error) {
	e, err := New(sub)
	if err != nil {
		return nil, err
	}
	return e.Bookings(request, window, mapping)
}

// demandsOn lists the demands of a topology on a substrate.
func demandsOn(sub vnet.Substrate, topology vnet.Topology, mapping vnet.Mapping) ([]rate.Demand, error) {
	e, err := New(sub)
	if err != nil {
		return nil, err
	}
	return demandsOf(e.graph, sub, Tenancy{topology, mapping})
}

// ratesOn allocates among leases that all enter at once; by lease, then by link.
func ratesOn(sub vnet.Substrate, running []Tenancy) ([]map[string][2]vnet.Rate, error) {
	e, err := New(sub)
	if err != nil {
		return nil, err
	}
	a, claims := e.Allocation(), make([]*Claim, len(running))
	for i, t := range running {
		if claims[i], err = a.Enter(t); err != nil {
			return nil, err
		}
	}
	if err := a.Settle(); err != nil {
		return nil, err
	}
	rates := make([]map[string][2]vnet.Rate, len(running))
	for i, c := range claims {
		rates[i] = c.Rates()
	}
	return rates, nil
}
