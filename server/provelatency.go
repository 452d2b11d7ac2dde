package server

import (
	"cmp"
	"time"

	"sublet/measure"
	"sublet/report"
	"sublet/vnet"
)

// provedLatency is the proof of a link's latency, as probes find it from the host where
// a direction begins.
type provedLatency struct {
	hops    map[vnet.HostID]*latencyOfHop // of hosts that it leaves by a tunnel
	prover  measure.LatencyProver
	minutes measure.Minutes
	promise
}

// latencyOfHop is what a host found since the link was judged last.
type latencyOfHop struct {
	number uint64 // of the last probe that was taken in
	rtts   []time.Duration
}

// mostRTTs of a hop wait to be judged.
const mostRTTs = 16

// heard takes in what a host found.
func (l *provedLatency) heard(host vnet.HostID, found report.LinkLatency) {
	hop := l.hops[host]
	if hop == nil {
		if l.hops == nil {
			l.hops = make(map[vnet.HostID]*latencyOfHop)
		}
		hop = new(latencyOfHop)
		l.hops[host] = hop
	}
	hop.rtts = append(hop.rtts, found.Since(hop.number)...)
	hop.rtts, hop.number = hop.rtts[max(0, len(hop.rtts)-mostRTTs):], found.Number
}

// take hands over what was found of a link that goes by so many tunnels: where there
// are several, they add up. Nothing, if one of them is missing.
func (l *provedLatency) take(tunnels int) (rtts []time.Duration) {
	fresh := 0
	for _, hop := range l.hops {
		if n := len(hop.rtts); n > 0 {
			if fresh++; fresh == 1 {
				rtts = append(rtts, hop.rtts...)
				continue
			}
			rtts = rtts[max(0, len(rtts)-n):]
			for i := range rtts {
				rtts[len(rtts)-1-i] += hop.rtts[n-1-i]
			}
		}
	}
	if fresh != tunnels {
		return nil
	}
	for _, hop := range l.hops {
		hop.rtts = nil
	}
	return rtts
}

// judgeLatency judges one direction of a link that has a bound.
func (p *proving) judgeLatency(s *Server, l *provedWay, about *subject, now time.Time) {
	link, tunnels := about.links[l.of.link], about.tunnels(l.of.link)
	second := measure.LatencySecond{Bound: link.Latency, RTTs: l.latency.take(tunnels)}
	second.Trouble, second.Untested = about.trouble(l.of.link, s.now()), p.untested(l, about, now)
	second.Busy = p.busy(l)
	if second.Untested == "" {
		p.found(s, about.Mapping.Links[l.of.link], second.RTTs, now, second.Busy)
	}
	second.Trouble = cmp.Or(second.Trouble, p.slower(about.Mapping.Links[l.of.link]))
	if second.Trouble != "" && second.Busy != "" {
		second.Trouble += "; "
	}
	second.Trouble += second.Busy
	if link.Latency == 0 {
		l.latency.prover, l.latency.promise = measure.LatencyProver{}, promise{}
		return
	}
	if tunnels == 0 {
		second.Untested = "both ends are on one host: nothing is measured there"
	}
	outcome, part, cause := l.latency.prover.Add(second)
	for _, run := range l.latency.minutes.Add(now, outcome, part, cause) {
		s.journal.run(l.of.lease, about.Serial, len(about.links), run)
	}
	if second.Untested == "" {
		l.latency.minutes.Measured(second.RTTs)
	}
	l.latency.outcome = outcome
	l.latency.tell(s, l.of.lease, directionText(*link, l.of.direction)+" latency", outcome, cause)
}

// tunnels is how many there are between the ends of a link; those of its chain are none.
func (a *subject) tunnels(link string) int {
	n := len(a.VNIs[link])
	if a.links[link].Chain != "" && n > 0 {
		n--
	}
	return n
}

// untested is why round trips tell nothing of the promise: a probe waits in the queue
// of the link's own frames, there or back. Half of a second's probes can wait only if
// the link is filled for half of it.
func (p *proving) untested(l *provedWay, about *subject, now time.Time) string {
	for _, d := range vnet.Directions {
		of, rate := p.directions[ofLink{l.of.lease, l.of.link, d}], about.Rates[l.of.link][d]
		switch {
		case rate == 0:
			return "the link is best effort: what others send delays it"
		case of == nil || of.ends[0].at.IsZero() || now.Sub(of.ends[0].at).Abs() >= fresh:
			return "a host does not tell what it counts"
		case of.ends[0].Rate >= rate/2 || of.ends[0].Dropped > 0:
			return "the link's own frames wait in its queue"
		}
	}
	return ""
}
