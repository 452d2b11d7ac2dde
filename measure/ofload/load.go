// Package ofload measures a controller of OpenFlow 1.3 or 1.0: it plays switches, each with
// a connection of its own, that hand over packets, and times the answers, as
// Cbench does for OpenFlow 1.0 (Sherwood and Yap, Cbench; Tootoonchian et al., On
// Controller Performance in Software-Defined Networks, Hot-ICE 2012).
//
// An answer is the first flow-mod or packet-out for a packet, told by its buffer
// number; where that has none, by the number in the packet's payload, and a
// flow-mod that has neither is no answer: the packet-out that follows it is.
package ofload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"sublet/openflow/of13"
	"sublet/openflow/poll"
)

// Config of a run.
type Config struct {
	Connect     netip.AddrPort
	Switches    int           // played, 1 to MostSwitches
	Outstanding int           // packets of a switch that may wait for answers, 1 to MostOutstanding
	Rate        float64       // packets a second in all, whether answers come or not; 0: as fast as answers come
	Hosts       int           // addresses behind each switch; 0: every packet has new ones
	Warmup      time.Duration // not counted
	Duration    time.Duration
	Newcomer    bool  // another switch joins after half of the duration
	Malformed   bool  // another connection sends what no switch would
	Version     uint8 // of10.Version or of13.Version
	Seed        uint64
}

// Bounds of Config.
const (
	MostSwitches    = 4096
	MostOutstanding = 65536
)

// joinTimeout bounds how long all switches may take to be greeted.
const joinTimeout = 30 * time.Second

// settled is how long a controller may take, after it knows a switch, until that
// sends packets: controllers install their first entries then.
const settled = 300 * time.Millisecond

// Result of a run. Latencies are from when a packet was due to its answer.
type Result struct {
	Switches    int     `json:"switches"`
	Outstanding int     `json:"outstanding"`
	Offered     float64 `json:"offered_per_s,omitempty"` // of an open loop
	Seconds     float64 `json:"duration_s"`
	Sent        uint64  `json:"sent"`
	Responses   uint64  `json:"responses"`
	PerSecond   float64 `json:"responses_per_s"`
	FlowMods    uint64  `json:"flow_mods"`
	PacketOuts  uint64  `json:"packet_outs"`
	Unanswered  uint64  `json:"unanswered"` // of those sent, when the run ended
	Errors      uint64  `json:"errors"`     // error messages of the controller
	Lost        int     `json:"connections_lost"`
	Latency     Latency `json:"latency_us"`
	Jain        float64 `json:"jain"` // fairness of responses over switches
	Least       uint64  `json:"least_of_a_switch"`
	Most        uint64  `json:"most_of_a_switch"`
	// Newcomer is how the switch that came late fared.
	Newcomer *Newcomer `json:"newcomer,omitempty"`
	// Malformed counts connections that ended while they sent nonsense.
	Malformed *int `json:"malformed_connections_closed,omitempty"`
}

// Latency in microseconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// Newcomer says when a late switch was greeted and first answered, after it
// connected, and its responses beside those of the others since it was greeted.
type Newcomer struct {
	GreetedMS float64 `json:"greeted_ms"`
	FirstMS   float64 `json:"first_response_ms"` // after its first packet; -1: never
	Share     float64 `json:"share"`             // of the mean of the others; 1: served equally
}

// pending is a packet that waits for its answer.
type pending struct {
	due  time.Time
	live bool
}

// peer is a switch that is played.
type peer struct {
	conn     *poll.Conn
	dpid     uint64
	joined   time.Time // connected
	greeted  time.Time // its features were asked for
	first    time.Time // its first answer after the warm-up
	began    time.Time // its first packet
	slots    []pending // by the low bits of a packet's number
	free     []uint32
	sequence uint32 // of the next packet's addresses
	answered uint64 // while it counts
	since    uint64 // answered since the newcomer was served
}

// generator plays all switches, in one thread.
type generator struct {
	config  Config
	loop    *poll.Loop
	peers   []*peer
	random  *rand.Rand
	frame   []byte
	in      of13.PacketIn
	fields  [1]of13.Field
	result  Result
	latency histogram

	state    state
	begin    time.Time // of the present state
	end      time.Time
	due      time.Time // of the next packet of an open loop
	turn     int       // whose it is
	late     *peer
	nonsense *poll.Conn
	closed   int
	failed   error
}

// state of a run.
type state int

const (
	joining state = iota
	settling
	warming
	counting
	over
)

// Run plays one load. It fails if the controller does not greet all switches.
func Run(ctx context.Context, config Config) (Result, error) {
	loop, err := poll.New()
	if err != nil {
		return Result{}, err
	}
	defer loop.Close()
	g := &generator{config: config, loop: loop, random: rand.New(rand.NewPCG(config.Seed, 1)), frame: make([]byte, 64), begin: time.Now()}
	g.result = Result{Switches: config.Switches, Outstanding: config.Outstanding, Offered: config.Rate}
	for range config.Switches {
		if err := g.join(); err != nil {
			return g.result, fmt.Errorf("connect switch %d to the controller: %w", len(g.peers)+1, err)
		}
	}
	if err := loop.Run(g, func() bool { return g.state == over || ctx.Err() != nil }); err != nil {
		return g.result, err
	}
	if err := errors.Join(g.failed, ctx.Err()); err != nil {
		return g.result, err
	}
	g.conclude()
	return g.result, nil
}

// join connects another switch.
func (g *generator) join() error {
	p := &peer{dpid: uint64(len(g.peers) + 1), joined: time.Now(), slots: make([]pending, g.config.Outstanding)}
	for slot := range p.slots {
		p.free = append(p.free, uint32(slot))
	}
	conn, err := g.loop.Dial(g.config.Connect, p)
	if err != nil {
		return err
	}
	p.conn = conn
	g.peers = append(g.peers, p)
	conn.Version = g.config.Version
	conn.Send(0, g.hello())
	return nil
}

// hello names one version, so that the controller cannot choose.
func (g *generator) hello() *of13.Hello { return &of13.Hello{Bitmap: 1 << g.config.Version} }

// Opened is of connections that come in: none do.
func (g *generator) Opened(*poll.Conn) {}

// Closed notes a connection that the controller ended.
func (g *generator) Closed(c *poll.Conn, why error) {
	if c == g.nonsense {
		g.closed++
		g.nonsense = nil
		return
	}
	g.result.Lost++
	if g.state == joining {
		g.failed = fmt.Errorf("the controller closed a connection before all switches were greeted: %w", why)
		g.state = over
	}
}
