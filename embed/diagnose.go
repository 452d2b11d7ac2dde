package embed

import (
	"fmt"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/graph"
	"sublet/vnet"
)

// diagnosis explains why a search found nothing.
type diagnosis struct {
	*search
	cal *calendar.Calendar
	sub vnet.Substrate
}

// shortage tells how a resource lacks amounts: what is booked and until when,
// what this network has taken already, what is missing. Whose leases have it,
// and how many, is private to their tenants.
func (d diagnosis) shortage(i resource, amounts []int64, who string) string {
	s := d.residual.scarcest(i, amounts)
	capacity, need := d.residual.capacity(i), amounts[s]
	booked := d.cal.Peak(d.residual.key(i), d.problem.spans[s].window)
	own := capacity - booked - d.residual.amounts[int(i)*d.residual.spans+s]
	phrase := fmt.Sprintf("%s offers %s to leases", d.name(i), d.amount(i, capacity))
	if booked > 0 && own+need <= capacity { // else it would not fit on its own
		until := d.until(d.residual.key(i), capacity-own-need, s)
		phrase = fmt.Sprintf("%s is booked to %s of %s%s", d.name(i), d.amount(i, booked), d.amount(i, capacity), until)
	}
	if own > 0 {
		phrase += fmt.Sprintf(", this network has taken %s of it", d.amount(i, own))
	}
	return phrase + fmt.Sprintf(", and %s needs %s", who, d.amount(i, need))
}

// scarcest is the span in which most of amounts is missing.
func (r *residuals) scarcest(i resource, amounts []int64) int {
	worst, missing := 0, int64(0)
	for s, amount := range amounts {
		if m := amount - r.amounts[int(i)*r.spans+s]; amount > 0 && m > missing {
			worst, missing = s, m
		}
	}
	return worst
}

// until tells when, in a span, more than limit of a key is booked.
func (d diagnosis) until(key string, limit int64, s int) string {
	w := d.problem.spans[s].window
	over, ok := d.cal.Over(key, limit, w)
	if !ok {
		return ""
	}
	from := ""
	if over.Start.After(w.Start) {
		from = " from " + over.Start.UTC().Format(time.RFC3339)
	}
	if over.End.IsZero() {
		return from + " with no end"
	}
	return from + " until " + calendar.RoundUp(over.End).Format(time.RFC3339)
}

// name says what a resource is.
func (d diagnosis) name(i resource) string {
	if a := i - d.residual.arc(0); a >= 0 {
		arc := graph.Arc(a)
		return fmt.Sprintf("link %s towards %s", d.sub.Links[arc.Link()].Name, d.graph.Name(d.graph.Head(arc)))
	}
	if in := i - d.residual.inside(0, vnet.Forward); in >= 0 {
		return fmt.Sprintf("host %s between its own nodes", d.sub.Hosts[in/2].Name)
	}
	return fmt.Sprintf("%s of host %s", [perHost]string{"processor", "memory", "room", "forwarding"}[i%perHost], d.sub.Hosts[i/perHost].Name)
}

// amount prints an amount in the resource's unit.
func (d diagnosis) amount(i resource, n int64) string {
	switch {
	case i >= d.residual.inside(0, vnet.Forward), i%perHost == carrying:
		return vnet.Rate(n).String()
	case i%perHost == cpu:
		return cores(n)
	}
	return vnet.Bytes(n).String()
}

// cores prints milli-cores.
func cores(n int64) string {
	if n == int64(vnet.Core) {
		return "1 core"
	}
	return vnet.CPU(n).String() + " cores"
}
