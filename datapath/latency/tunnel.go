package latency

import (
	"slices"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// How often a tunnel is asked. The less it carries, the more seldom: probes and
// answers take mostOfRate of it, unless that were one in slowest.
const (
	fastest    = 500 * time.Millisecond
	slowest    = 4 * time.Second
	mostOfRate = 0.002
	mostProbes = 256         // a second, of all tunnels of a host
	timeout    = time.Second // after which a probe is lost
	kept       = 8           // round trips of a tunnel
	oldest     = 3 * slowest // of those, after which they tell nothing of now
)

// interval is the time between two probes of a tunnel, of so many on this host.
func interval(rate vnet.Rate, tunnels int) time.Duration {
	each := fastest
	if rate > 0 {
		bits := 8 * 2 * wireBytes // as many come from there, and are answered
		each = max(each, time.Duration(float64(bits)/(mostOfRate*float64(rate))*float64(time.Second)))
	}
	return max(min(each, slowest), time.Duration(tunnels)*time.Second/mostProbes)
}

// tunnel is what is known of one.
type tunnel struct {
	Tunnel
	next    time.Duration // when it is asked again
	sent    uint32        // number of the last probe
	waiting []packet      // probes without an answer yet, oldest first
	known   report.Latency
	heard   [kept]time.Duration // when the last answers came, the newest last
	transit time.Duration       // of the last one: how much later it was there by the clocks of both
	number  uint32              // of the last one
}

// ask makes the next probe.
func (t *tunnel) ask(now time.Duration, secret uint64) packet {
	t.expire(now)
	t.sent++
	p := packet{vni: t.VNI, number: t.sent, secret: secret, sent: now}
	t.waiting = append(t.waiting, p)
	return p
}

// expire gives up what was not answered in time.
func (t *tunnel) expire(now time.Duration) {
	n := 0
	for n < len(t.waiting) && now-t.waiting[n].sent > timeout {
		n++
	}
	t.waiting = slices.Delete(t.waiting, 0, n)
	t.known.Asked, t.known.Unanswered = t.known.Asked+uint64(n), t.known.Unanswered+uint64(n)
	if now-t.heard[kept-1] > oldest {
		t.known.RTTs = nil
	}
}

// hear takes an answer in, once.
func (t *tunnel) hear(p packet) {
	i := slices.IndexFunc(t.waiting, func(w packet) bool {
		return w.number == p.number && w.secret == p.secret && w.sent == p.sent
	})
	if i < 0 {
		return
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	t.known.Asked++
	rtt := p.arrived - p.sent - (p.answered - p.asked)
	if rtt < 0 || p.arrived-p.sent > timeout {
		t.known.Unanswered++
		return
	}
	transit := p.asked - p.sent
	if t.number+1 == p.number && t.number > 0 {
		t.known.Variation += ((transit - t.transit).Abs() - t.known.Variation) / 16
	}
	t.transit, t.number = transit, p.number
	copy(t.heard[:], t.heard[1:])
	t.heard[kept-1] = p.arrived
	t.known.Number++
	t.known.RTTs = append(t.known.RTTs[max(0, len(t.known.RTTs)-kept+1):len(t.known.RTTs):len(t.known.RTTs)], rtt)
}

// news is for how long an answer is told to who asks every second.
const news = 2500 * time.Millisecond

// recent is how many of the round trips came of late.
func (t *tunnel) recent(now time.Duration) (n int) {
	for n < len(t.known.RTTs) && now-t.heard[kept-1-n] < news {
		n++
	}
	return n
}
