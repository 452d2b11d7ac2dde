package probe

import (
	"net/netip"
	"strings"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

// openLoad bounds the load of links to which nobody stated a maximum, best
// effort among them: what they could take of a host's processors, the links
// with a promise to keep would lack. A guaranteed minimum is offered twice.
const openLoad = 500 * vnet.Mbit

// trial is one target while it is measured.
type trial struct {
	Target
	id, pair int
	ports    ports
	pace     float64       // part of load that TCP is paced to; 0: none
	sent     uint64        // datagrams, in the last load
	late     time.Duration // that a probe waited for a processor, in the last phase
	queued   time.Duration // that threads of both probes waited for one, for each ping of the last phase
	last     float64       // what the last phase alone showed: a rate in bit/s, a round trip in us
	taken    bool          // the port that was stated is another program's
	doubts   map[measure.Phase]string
	frames   vnet.Rate // TCP's, in the last window; with those of acknowledgements of the pair
	payload  vnet.Rate // likewise
	acks     vnet.Rate // of its data, likewise
	pings    vnet.Rate // frames of pings that were answered, likewise
	arrived  arrived
	fault    string   // why it can no longer be measured
	notes    []string // what went wrong on the way
	link     vnet.LinkVerdict
}

func newTrials(targets []Target) []*trial {
	trials := make([]*trial, len(targets))
	for i, t := range targets {
		trials[i] = &trial{Target: t, id: i, pair: opposite(targets, i), doubts: make(map[measure.Phase]string), link: vnet.LinkVerdict{
			Name: t.Link, From: t.From, To: t.To, Min: t.Min, Max: t.Max, Alloc: t.Alloc, Flow: t.Flow,
			LatencyBound: t.latencyBound(), Impair: t.Impair,
		}}
	}
	return trials
}

// latencyBound is what may be measured, in us, with what was asked for on top of
// what was promised; 0: nothing was.
func (t *Target) latencyBound() float64 {
	if t.Latency == 0 {
		return 0
	}
	return float64(t.Latency+measure.ImpairedLatency(t.Impair)) / float64(time.Microsecond)
}

// fail notes why a trial ends; the first reason is the one that counts.
func (t *trial) fail(why string) {
	if t.fault == "" {
		t.fault = why
	}
}

// note keeps what went wrong, once.
func (t *trial) note(why string) {
	for _, n := range t.notes {
		if n == why {
			return
		}
	}
	t.notes = append(t.notes, why)
}

// noteError notes what a probe reported.
func (t *trial) noteError(err string) {
	if err != "" {
		t.note(err)
	}
}

// failOn ends a trial for what a probe reported.
func (t *trial) failOn(err string) {
	if err != "" {
		t.fail(err)
	}
}

// takeTCP takes the figures of either end, measured in a window.
func (t *trial) takeTCP(f figure, window time.Duration) {
	t.noteError(f.Err)
	if f.TCP != nil {
		t.frames, t.payload = f.TCP.Rates()
	}
	if f.Acks != 0 {
		t.acks = f.Acks
	}
	if f.RTT != nil {
		t.link.RTTLoad50, t.link.RTTLoad99 = f.RTT.P50, f.RTT.P99
		t.pings = measure.Rate(float64(f.RTT.Received*pingFrame), window)
	}
}

// judgeTCP makes of one window's figures the link's, if they are the best of
// all windows so far. With the data other frames of the check went the same
// way, at one end or at the other: where they took the data's place at the far
// end, they count up to the rate that was asked for.
func (t *trial) judgeTCP(near, far vnet.Rate) {
	frames := t.frames + near
	frames = max(frames, min(t.frames+far, t.load()))
	t.last = float64(frames)
	if t.better(frames, t.link.TCP) {
		t.link.TCP, t.link.TCPPayload = frames, t.payload
	}
}

// better says whether a rate is nearer to what was asked for than another.
// What nothing limits is the better the higher.
func (t *trial) better(rate, than vnet.Rate) bool {
	if asked := t.load(); than > asked && t.Alloc > 0 && !t.Open {
		return max(rate, asked) < than
	}
	return rate > than
}

// load is the rate that load is measured by: the allocated one, but bounded
// where there is no maximum; without an allocation, what TCP could take.
func (t *trial) load() vnet.Rate {
	switch {
	case t.Open:
		return min(t.Alloc, max(openLoad, 2*t.Min))
	case t.Alloc > 0:
		return t.Alloc
	case t.link.TCP > 0:
		return min(t.link.TCP, openLoad)
	}
	return openLoad
}

// datagrams is the rate that UDP, one flow, is measured by.
func (t *trial) datagrams() vnet.Rate {
	if t.Flow > 0 {
		return min(t.Flow, t.load())
	}
	return t.load()
}

// streams is how many connections TCP has, of so many usually: on a slow link
// one, over several paths so many more that each of them gets some.
func (t *trial) streams(usual int) int {
	switch {
	case t.Alloc > 0 && t.Alloc < slow:
		return 1
	case t.Flow == 0:
		return usual
	}
	return int(min(max(vnet.Rate(usual), 8*(t.Alloc/t.Flow+1)), mostStreams))
}

// mostStreams bounds the connections of a direction.
const mostStreams = 64

// pacing is the part of load that TCP is paced to; 0: the link's own shaper
// holds it back.
func (t *trial) pacing() float64 {
	if t.pace == 0 && (t.Open || t.Alloc == 0) {
		return 1
	}
	return t.pace
}

// inlet and outlet are the flow as its receiver and its sender know it.
func (t *trial) inlet(streams int) flow {
	f := flow{ID: t.id, Pair: t.pair, Interface: t.ToIf, Local: t.ToAddr, Peer: t.FromAddr, MTU: t.MTU, Streams: streams, Ports: ports{UDP: t.Port, TCP: t.Port}, Frames: t.Frames}
	if t.Translated {
		f.Peer = netip.Addr{}
	}
	return f
}

func (t *trial) outlet(streams int) flow {
	return flow{ID: t.id, Pair: t.pair, Interface: t.FromIf, Local: t.FromAddr, Peer: t.ToAddr, MTU: t.MTU, Streams: streams, Ports: t.ports, Frames: t.Frames, DSCP: t.DSCP, VLAN: t.VLAN}
}

// pingShare bounds the pings' part of the load they measure under, so that
// they do not show in its rate.
const pingShare = 0.0005

// loadInterval is the interval of pings under load: 5 ms to 0.2 s.
func (t *trial) loadInterval() time.Duration {
	return min(max(timeOf(8*pingFrame/pingShare, t.load()), 5*time.Millisecond), 200*time.Millisecond)
}

// verdict judges what was measured.
func (t *trial) verdict(done measure.Scope) vnet.LinkVerdict {
	v := t.link
	done.Loss = done.Loss && !t.Open // not offered by its allocation
	v.OK, v.Why = measure.Judge(v, done)
	v.Outcome = t.outcome(measure.Faults(v, done))
	if !measure.Measurable(t.Impair) {
		v.Why = "not measured: its impairment leaves nothing to measure"
	}
	if t.fault != "" {
		v.OK, v.Why, v.Outcome = false, t.fault, vnet.Broken
	}
	if !v.OK && len(t.notes) > 0 {
		v.Why += " (" + strings.Join(t.notes, "; ") + ")"
	}
	return v
}

// outcome of what failed: not measured, if all of it is in doubt.
func (t *trial) outcome(faults []measure.Fault) vnet.Outcome {
	if !measure.Measurable(t.Impair) {
		return vnet.NotMeasured
	}
	if len(faults) == 0 {
		return vnet.Kept
	}
	for _, f := range faults {
		if t.doubts[f.Phase] == "" {
			return vnet.Broken
		}
	}
	return vnet.NotMeasured
}
