package measure

import (
	"fmt"
	"strings"
	"time"

	"sublet/vnet"
)

// The tolerances of a verdict (docs/glossary.md, verdict).
const (
	Above     = 1.01  // of the allocated rate: more is over-use
	Below     = 0.99  // of the guaranteed minimum: less is a broken promise
	LossLoad  = 0.9   // of the allocated rate: the load under which loss is measured
	LossLimit = 0.001 // lost/sent at that load, where the load is within the guarantee
)

// Kept is the reason of a good verdict.
const Kept = "kept"

// Phase is a measurement, as faults name it.
type Phase int

// The phases. No traffic at all is a fault of none.
const (
	Any Phase = iota
	Idle
	TCP
	UDP
	UDPLoss
)

// Fault is a promise that was not kept, as the measurement of a phase shows.
type Fault struct {
	Phase Phase
	Why   string
}

// Scope says which measurements were made; the others are not judged.
type Scope struct {
	TCP, UDP, Loss bool
	Window         time.Duration // in which rates were measured; 0: exactly
	Burst          int           // bytes that a limit lets through at once, beside its rate
}

// grain is the rate that a window leaves open, because it begins and ends
// between whole frames: one of the largest at each end.
func (s Scope) grain() float64 {
	if s.Window <= 0 {
		return 0
	}
	const frame = 8 * (EthernetHeader + 1500) // bits
	return 2 * frame / s.Window.Seconds()
}

// Judge decides whether one direction of a link kept its promise and says in
// words what failed, or Kept.
func Judge(l vnet.LinkVerdict, done Scope) (ok bool, why string) {
	faults := Faults(l, done)
	if len(faults) == 0 {
		return true, Kept
	}
	words := make([]string, len(faults))
	for i, f := range faults {
		words[i] = f.Why
	}
	return false, strings.Join(words, "; ")
}

// Faults lists the promises that one direction of a link did not keep. A
// guarantee holds for the worse of TCP and UDP. Best effort promises nothing of
// rates but that some traffic passes.
func Faults(l vnet.LinkVerdict, done Scope) []Fault {
	l, done = forgive(l, done)
	if (done.TCP || done.UDP) && l.TCP == 0 && l.UDP == 0 {
		return []Fault{{Any, "no traffic passed"}}
	}
	faults := judgeLatency(l)
	if l.Max == 0 {
		done = Scope{}
	}
	if done.TCP {
		faults = append(faults, judgeRate(TCP, "TCP", l.TCP, l, done)...)
	}
	flow := l
	if l.Flow > 0 { // UDP was one flow, on one of several paths
		flow.Min = min(l.Min, l.Flow)
	}
	if done.UDP {
		faults = append(faults, judgeRate(UDP, "UDP", l.UDP, flow, done)...)
	}
	if l.Flow > 0 {
		flow.Alloc = l.Flow
	}
	if done.Loss {
		faults = append(faults, judgeLoss(flow)...)
	}
	return faults
}

// judgeLatency holds the idle link against its bound.
func judgeLatency(l vnet.LinkVerdict) []Fault {
	if l.LatencyBound == 0 || l.Latency <= l.LatencyBound {
		return nil
	}
	return []Fault{{Idle, fmt.Sprintf("half the median round trip was %.4g us, over the bound of %.4g us", l.Latency, l.LatencyBound)}}
}

// burst is the rate that a limit's bucket adds in a window, if it is full when this begins
// (RFC 2212: at most rT+b bytes in a time T).
func (s Scope) burst() float64 {
	if s.Window <= 0 {
		return 0
	}
	return float64(8*s.Burst) / s.Window.Seconds()
}

// judgeRate allows the tolerances or, where frames are few, the grain.
func judgeRate(phase Phase, name string, measured vnet.Rate, l vnet.LinkVerdict, done Scope) []Fault {
	rate, most, least, grain := float64(measured), float64(l.Alloc), float64(l.Min), done.grain()
	if rate > max(Above*most, most+grain)+done.burst() {
		return []Fault{{phase, fmt.Sprintf("%s took %s, over the allocated %s", name, mbps(measured), mbps(l.Alloc))}}
	}
	if rate < min(Below*least, least-grain) {
		return []Fault{{phase, fmt.Sprintf("%s got %s, under the guaranteed %s", name, mbps(measured), mbps(l.Min))}}
	}
	return nil
}

// judgeLoss allows no loss where the load is within the guarantee; above the
// guarantee others may have taken the rest, but what is guaranteed arrives.
func judgeLoss(l vnet.LinkVerdict) []Fault {
	load := LossLoad * float64(l.Alloc)
	if float64(l.Min) >= load {
		if l.UDPLoss > LossLimit {
			return []Fault{{UDPLoss, fmt.Sprintf("UDP lost %.3g %% at %g of the allocated rate", 100*l.UDPLoss, LossLoad)}}
		}
		return nil
	}
	if delivered := load * (1 - l.UDPLoss); delivered < Below*float64(l.Min) {
		return []Fault{{UDPLoss, fmt.Sprintf("UDP at %g of the allocated rate delivered %s, under the guaranteed %s",
			LossLoad, mbps(vnet.Rate(delivered)), mbps(l.Min))}}
	}
	return nil
}

func mbps(r vnet.Rate) string { return fmt.Sprintf("%.4g Mbit/s", r.Mbps()) }
