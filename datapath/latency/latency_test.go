package latency

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"sublet/vnet"
)

const ms = time.Millisecond

// answerTo is what the far end makes of a probe, whose clock is another: transit and back
// are how long it is under way, held how long the far end takes.
func answerTo(p packet, transit, held, back time.Duration) packet {
	const other = time.Hour
	p.answer, p.asked = true, p.sent+transit+other
	p.answered = p.asked + held
	p.arrived = p.sent + transit + held + back
	return p
}

// A round trip has the two ways, and nothing of what the far end takes or its clock.
func TestRoundTrip(t *testing.T) {
	var one tunnel
	for i, transit := range []time.Duration{2 * ms, 2 * ms, 18 * ms, 2 * ms} {
		p := one.ask(time.Duration(i)*time.Second, uint64(i))
		one.hear(answerTo(p, transit, 300*ms, 3*ms))
	}
	l := one.known
	if l.RTT() != 5*ms || l.Asked != 4 || l.Unanswered != 0 || l.Number != 4 {
		t.Errorf("%+v with the median %s", l, l.RTT())
	}
	if want := ms + (16*ms-ms)/16; l.Variation != want { // of 0, 16 and 16 ms
		t.Errorf("it varies by %s, not %s", l.Variation, want)
	}
	if n := one.recent(4 * time.Second); n != 2 {
		t.Errorf("%d round trips are recent", n)
	}
	l.Recent = 3
	c, ok := l.Counted(7)
	if got := c.Since(2); !ok || c.At != 7 || len(got) != 2 || got[0] != 21*ms || got[1] != 5*ms {
		t.Errorf("since the second: %v", got)
	}
	if got := c.Since(9); len(got) != 3 {
		t.Errorf("since one that is not yet: %v", got)
	}
}

// Answers count once, with the secret of their probe, and in time.
func TestAnswersThatDoNotCount(t *testing.T) {
	var one tunnel
	p := one.ask(0, 7)
	forged := answerTo(p, ms, 0, ms)
	forged.secret = 8
	one.hear(forged)
	if one.known.Asked != 0 {
		t.Fatal("an answer without the secret counts")
	}
	one.hear(answerTo(p, ms, 0, ms))
	one.hear(answerTo(p, ms, 0, ms))
	if one.known.Asked != 1 || one.known.Number != 1 {
		t.Errorf("an answer that came twice counts so: %+v", one.known)
	}
	late := one.ask(time.Second, 9)
	one.ask(3*time.Second, 10)
	one.hear(answerTo(late, ms, 0, 2500*ms))
	if l := one.known; l.Asked != 2 || l.Unanswered != 1 || l.Number != 1 {
		t.Errorf("a probe without an answer in time: %+v", l)
	}
	one.expire(time.Minute)
	if l := one.known; l.Asked != 3 || l.Unanswered != 2 || l.RTT() != 0 {
		t.Errorf("after a minute of silence: %+v", l)
	}
}

func TestKeepsTheLast(t *testing.T) {
	var one tunnel
	for i := range 3 * kept {
		one.hear(answerTo(one.ask(time.Duration(i)*time.Second, 1), time.Duration(i)*ms, 0, 0))
	}
	if l := one.known; len(l.RTTs) != kept || l.RTTs[0] != 2*kept*ms || l.Number != 3*kept {
		t.Errorf("%+v", l)
	}
}

func TestPackets(t *testing.T) {
	p := packet{answer: true, vni: 0xabcdef, number: 3, secret: 1 << 63, sent: 4, asked: 5, answered: 6}
	b := p.encode()
	got, ok := decode(b, 9)
	if p.arrived = 9; !ok || got != p {
		t.Errorf("%+v, not %+v", got, p)
	}
	b[atArrived] = 8
	if got, _ := decode(b, 9); got.arrived != 8 {
		t.Errorf("what overlay_rx wrote is read as %d", got.arrived)
	}
	for _, bad := range [][]byte{nil, b[1:], append(bytes.Clone(b), 0), bytes.Replace(b, b[:4], []byte("else"), 1)} {
		if _, ok := decode(bad, 9); ok {
			t.Errorf("%x is a probe", bad)
		}
	}
}

// The more tunnels a host has and the less they carry, the more seldom each is asked.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		rate    vnet.Rate
		tunnels int
		want    time.Duration
	}{
		{vnet.Gbit, 1, fastest}, {0, 1, fastest}, {0, 2048, 8 * time.Second}, {vnet.Mbit, 1, 784 * ms}, {100 * vnet.Kbit, 1, slowest}, {vnet.Mbit, 2048, 8 * time.Second},
	} {
		if got := interval(c.rate, c.tunnels); got != c.want {
			t.Errorf("%d tunnels of %s: %s, not %s", c.tunnels, c.rate, got, c.want)
		}
	}
}

// Packets that are of no tunnel between these addresses are neither answered nor heard.
func TestStrangersAreNotHeard(t *testing.T) {
	near, far, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	list := []Tunnel{{VNI: 5, Local: near, Remote: far}}
	p := Prober{Tunnels: func() ([]Tunnel, bool) { return list, true }}
	p.learn(0)
	asked := p.tunnels[5].ask(clock(), 1)
	answer := answerTo(asked, ms, 0, ms)
	for _, r := range []received{
		{answer, other, near}, {answer, far, other}, {packet{answer: true, vni: 6, number: 1, secret: 1, sent: asked.sent}, far, near}, {packet{vni: 5}, other, near},
	} {
		p.take(r)
		if l := p.Of(5); l.Asked != 0 {
			t.Errorf("%+v was heard", r)
		}
	}
	p.take(received{answer, far, near})
	if l := p.Of(5); l.Asked != 1 || l.Number != 1 {
		t.Errorf("%+v", l)
	}
	p.learn(0)
	if p.Of(5).Number != 1 {
		t.Error("what was known of a tunnel is forgotten while it stays")
	}
	list[0].Remote = other
	if p.learn(0); p.Of(5).Number != 0 {
		t.Error("what was known of one host stands for another")
	}
	list = nil
	if p.learn(0); p.Of(5).Number != 0 || len(p.tunnels) != 0 {
		t.Error("a tunnel that is gone is still known")
	}
}
