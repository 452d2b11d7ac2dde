package embed

import (
	"math"

	"sublet/embed/calendar"
	"sublet/embed/graph"
	"sublet/embed/rate"
	"sublet/vnet"
)

// A resource is one amount of the substrate: four of each host, then both
// directions inside each host, then every arc; and last, where all hosts are one
// machine, what that forwards (vnet.Substrate.Forwards).
type resource int

// Resources of a host.
const (
	cpu resource = iota
	memory
	guests   // networks on the host; see WholeHost
	carrying // minima of its nodes' links, both directions; see processing
	perHost
)

// summed are those that the nodes on a host take each their own part of.
var summed = [...]resource{cpu, memory, carrying}

// WholeHost is a host's capacity of guests: a network with an exclusive node
// takes all of it, any other takes one.
const WholeHost = 1 << 30

// processing is a host's capacity of carrying: a link's minima count at both of
// its ends, so twice where both are on the host, whose processors were found to
// forward that much in all; what they send into a tunnel, or take out of one, is
// half of its way. Nobody has measured: no bound.
func processing(h vnet.SubstrateNode) int64 {
	if h.Measured == 0 {
		return math.MaxInt64 / 2
	}
	return 2 * int64(h.Measured)
}

// residuals is a substrate's amounts, and what the calendar leaves of them in
// each span.
type residuals struct {
	*inventory
	spans   int
	amounts []int64 // by resource and span
}

// inventory is a substrate's resources with their keys in the calendar and
// their capacities. To put the keys together for each request would take
// longer than to embed it.
type inventory struct {
	sub        vnet.Substrate
	keys       []string
	capacities []int64
}

func inventoryOf(sub vnet.Substrate) *inventory {
	v := &inventory{sub: sub}
	for i := resource(0); i < v.count(); i++ {
		v.keys, v.capacities = append(v.keys, v.named(i)), append(v.capacities, v.offered(i))
	}
	return v
}

// residualOf reads what is left of everything during each span.
func residualOf(of *inventory, cal *calendar.Calendar, spans []span) *residuals {
	r := &residuals{inventory: of, spans: len(spans)}
	r.amounts = make([]int64, 0, len(r.keys)*len(spans))
	for i, key := range r.keys {
		for _, s := range spans {
			left := r.capacities[i]
			if !s.past {
				left = cal.Residual(key, left, s.window)
			}
			r.amounts = append(r.amounts, left)
		}
	}
	return r
}

// of is a resource of a host.
func (r *inventory) of(host int, kind resource) resource { return resource(host)*perHost + kind }

// inside is the carrying between two nodes of a host.
func (r *inventory) inside(host int, dir vnet.Direction) resource {
	return resource(len(r.sub.Hosts))*perHost + resource(2*host+int(dir))
}

// arc is a direction of a substrate link.
func (r *inventory) arc(a graph.Arc) resource {
	return r.inside(len(r.sub.Hosts), vnet.Forward) + resource(a)
}

// machine is what all hosts carry together, if they are one machine. It counts
// as carrying does, of which it is the sum.
func (r *inventory) machine() resource { return r.arc(graph.ArcOf(len(r.sub.Links), vnet.Forward)) }

// count is the number of resources.
func (r *inventory) count() resource {
	if r.sub.Forwards != 0 {
		return r.machine() + 1
	}
	return r.machine()
}

// machineKey names it in the calendar.
const machineKey = "machine"

// element names the resource that carries frames; false: it carries none.
func (r *inventory) element(i resource) (rate.Element, bool) {
	first := r.inside(0, vnet.Forward)
	if i < first || i == r.machine() {
		return rate.Element{}, false
	}
	if a := i - r.arc(0); a >= 0 {
		arc := graph.Arc(a)
		return rate.Element{Link: r.sub.Links[arc.Link()].Name, Dir: arc.Dir()}, true
	}
	return rate.Inside(r.sub.Hosts[(i-first)/2].Name, vnet.Direction(i-first)%2), true
}

// key names a resource in the calendar.
func (r *inventory) key(i resource) string { return r.keys[i] }

// capacity of a resource, for leases.
func (r *inventory) capacity(i resource) int64 { return r.capacities[i] }

// named puts a resource's key together.
func (r *inventory) named(i resource) string {
	if i == r.machine() {
		return machineKey
	}
	if e, ok := r.element(i); ok {
		return e.String()
	}
	return hostKeys[i%perHost] + string(r.sub.Hosts[i/perHost].Name)
}

var hostKeys = [perHost]string{"cpu:", "memory:", "guests:", "carrying:"}

// HostKeys are the keys of a host's processor time, memory and guests in a
// calendar; WholeHost guests or more: one network has it for itself.
func HostKeys(host vnet.HostID) (cpuKey, memoryKey, guestsKey string) {
	return hostKeys[cpu] + string(host), hostKeys[memory] + string(host), hostKeys[guests] + string(host)
}

// offered is what a resource offers to leases.
func (r *inventory) offered(i resource) int64 {
	if i == r.machine() {
		return 2 * int64(r.sub.Forwards)
	}
	if a := i - r.arc(0); a >= 0 {
		return int64(r.sub.Links[graph.Arc(a).Link()].Leasable())
	}
	if in := i - r.inside(0, vnet.Forward); in >= 0 {
		return int64(r.sub.Hosts[in/2].Carries())
	}
	host := r.sub.Hosts[i/perHost]
	return [perHost]int64{int64(host.CPU), int64(host.Memory), WholeHost, processing(host)}[i%perHost]
}

// fits says whether amounts are left, by span, of a resource and those behind
// it. Asking for nothing always fits.
func (r *residuals) fits(i resource, amounts []int64) bool {
	left := r.amounts[int(i)*r.spans:]
	for s, amount := range amounts {
		if amount > 0 && left[s] < amount {
			return false
		}
	}
	return true
}

// take lowers what is left of the same; a sign of -1 gives back.
func (r *residuals) take(i resource, amounts []int64, sign int64) {
	left := r.amounts[int(i)*r.spans:]
	for s, amount := range amounts {
		left[s] -= sign * amount
	}
}

// least is the smallest amount left in any span.
func (r *residuals) least(i resource) int64 {
	left := r.amounts[int(i)*r.spans:]
	least := left[0]
	for _, l := range left[1:r.spans] {
		least = min(least, l)
	}
	return least
}

// byKey lists the capacities by key.
func (r *inventory) byKey() map[string]int64 {
	capacities := make(map[string]int64, len(r.keys))
	for i, key := range r.keys {
		capacities[key] = r.capacities[i]
	}
	return capacities
}
