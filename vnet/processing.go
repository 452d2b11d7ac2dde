package vnet

import (
	"fmt"
	"math"
	"slices"
)

// Processing is what packets cost a function whose processor time follows the load,
// in seconds of a core: Fixed for each packet and PerByte for each of its bytes, as
// `sublet profile` measures them. Both zero: nobody measured it.
type Processing struct {
	Fixed   float64 `json:"fixed_s,omitempty"`
	PerByte float64 `json:"per_byte_s,omitempty"`
	Packet  int     `json:"packet_bytes,omitempty"` // mean size that is booked for; 0: DefaultPacket
}

// Bounds of functions whose processor time follows the load.
const (
	DefaultPacket = 512    // bytes
	MaxPacket     = 65_535 // bytes
	maxPacketCost = 1.0    // seconds of a core that a packet costs
	functionCore  = Core   // most that a function uses: packets of one flow stay in order on one core
	spareTime     = 0.05   // of what a rate costs, booked in addition
)

// Known says whether anything was measured.
func (p Processing) Known() bool { return p.Fixed > 0 || p.PerByte > 0 }

// need is what rates cost together, in cores.
func (p Processing) need(rate Rate) float64 {
	size := float64(p.Packet)
	if size == 0 {
		size = DefaultPacket
	}
	return float64(rate) / 8 / size * (p.Fixed + p.PerByte*size)
}

// book is what is booked for rates: their cost with some to spare, or a core where
// the cost is not known. What no chain leads through costs nothing yet.
func (p Processing) book(rate Rate) CPU {
	switch {
	case rate == 0:
		return MinCPU
	case !p.Known():
		return functionCore
	}
	return max(MinCPU, min(functionCore, CPU(math.Ceil(p.need(rate)*(1+spareTime)*float64(Core)))))
}

// through is the sum of the rates of chains through a function.
func (r Request) through(function string) (sum Rate) {
	for _, c := range r.Chains {
		if slices.Contains(c.Via, function) {
			sum += c.Load()
		}
	}
	return sum
}

// bookFunctions books processors for the functions whose time follows the load.
func (r *Request) bookFunctions() {
	for i, n := range r.Nodes {
		if n.Function == nil || n.Function.Auto == nil {
			continue
		}
		if want := n.Function.Auto.book(r.mostThrough(n.Name)); n.CPU != want {
			r.Nodes = slices.Clone(r.Nodes) // a caller may share them
			r.Nodes[i].CPU = want
		}
	}
}

// checkProcessing checks a function whose time follows the load.
func (r Request) checkProcessing(path string, n VirtualNode) error {
	p := n.Function.Auto
	if p == nil {
		return nil
	}
	for _, c := range r.Chains {
		if c.Rate == 0 && slices.Contains(c.Via, n.Name) {
			return fieldf(path+".cpu", "chain %s leads through %s without a rate, which processor time could follow: state its rate, or cores in place of auto", c.Name, n.Name)
		}
	}
	if want := p.book(r.mostThrough(n.Name)); n.CPU != want {
		return fieldf(path+".cpu", "%s cores is not what its profile takes: state %s", n.CPU, want)
	}
	return nil
}

// Overloaded are functions whose chains take more than a core by their profiles: why, and
// the links of these chains. No substrate has such a core.
func (r Request) Overloaded() (reasons, links []string) {
	for _, n := range r.Nodes {
		if n.Function == nil || n.Function.Auto == nil || !n.Function.Auto.Known() {
			continue
		}
		rate := r.mostThrough(n.Name)
		need := n.Function.Auto.need(rate)
		if need*(1+spareTime) <= float64(functionCore)/float64(Core) {
			continue
		}
		reasons = append(reasons, fmt.Sprintf("%s through %s takes %.2f cores by its profile, and a function has one, less a twentieth to spare: lower the rates of chains, or split them over two functions", rate, n.Name, need))
		for _, c := range r.Chains {
			if !slices.Contains(c.Via, n.Name) {
				continue
			}
			for _, l := range r.ChainLinks(c.Name) {
				if !slices.Contains(links, l.Name) {
					links = append(links, l.Name)
				}
			}
		}
	}
	return reasons, links
}

// check checks a profile by itself.
func (p Processing) check(path string) error {
	switch {
	case !(p.Fixed >= 0 && p.Fixed <= maxPacketCost):
		return fieldf(path+".fixed_s", "%g is not between 0 and %g seconds: state what sublet profile says", p.Fixed, maxPacketCost)
	case !(p.PerByte >= 0 && p.PerByte <= maxPacketCost):
		return fieldf(path+".per_byte_s", "%g is not between 0 and %g seconds: state what sublet profile says", p.PerByte, maxPacketCost)
	case p.Packet < 0 || p.Packet > MaxPacket:
		return fieldf(path+".packet_bytes", "%d is not between 1 and %d bytes", p.Packet, MaxPacket)
	}
	return nil
}
