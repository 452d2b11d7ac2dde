package vnet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Mapping is an embedding: where each virtual node runs and which substrate
// path carries each virtual link (from Ends[0] to Ends[1]), for all stages. A
// link is in Links or, carried by several paths, in Splits; never in both.
type Mapping struct {
	Nodes  map[string]HostID      `json:"nodes"`
	Links  map[string]Path        `json:"links"`
	Splits map[string][]PathShare `json:"splits,omitempty"`
	// Outside are the addresses of routers with a way out, in its pool.
	Outside map[string]netip.Addr `json:"outside,omitempty"`
	// VLANs are those that switches with access to an exit have there; 0: frames
	// without a tag.
	VLANs map[string]uint16 `json:"vlans,omitempty"`
	// Joins are the ports at which machines join, by node.
	Joins map[string]uint16 `json:"joins,omitempty"`
	// Places are those that the ends of links have on hosts since they moved, by
	// virtual link; the others have the first.
	Places map[string][2]EndPlace `json:"places,omitempty"`
}

// EndPlace is where a host has what is at an end of a link: the port of a node, and
// tunnels on that side. What it was before a move and what it is then are in
// different places, so that a host can have both.
type EndPlace struct {
	Port   int `json:"port,omitempty"`
	Tunnel int `json:"tunnel,omitempty"`
}

// State of a lease.
type State string

// The life of a lease: booked until its window opens, deploying until every
// host reports it and its nodes reach each other, running, ended. Degraded: it
// can be used, but something of it is not as promised now; Lease.Message says
// what. Failed: a host cannot build it.
const (
	Booked    State = "booked"
	Deploying State = "deploying"
	Running   State = "running"
	Degraded  State = "degraded"
	Ended     State = "ended"
	Failed    State = "failed"
)

// Up says that a lease has been built and can be used.
func (s State) Up() bool { return s == Running || s == Degraded }

// Lease is an admitted request.
type Lease struct {
	Request   Request               `json:"request"` // Tenant and Start filled in
	Owner     uint32                `json:"owner_uid"`
	Serial    uint64                `json:"serial"` // order of admission
	Window    Window                `json:"window"`
	Mapping   Mapping               `json:"mapping"`
	Addresses map[string]netip.Addr `json:"addresses"` // by virtual node
	VNIs      map[string][]VNI      `json:"vnis"`      // by virtual link, one per tunnel on its path
	State     State                 `json:"state"`
	Stage     int                   `json:"stage"`           // running stage, -1 before the first
	Rates     map[string][2]Rate    `json:"rates,omitempty"` // allocated, by link and Direction, of the running stage
	Message   string                `json:"message,omitempty"`
	Verdict   *Verdict              `json:"verdict,omitempty"`
	Account   *Account              `json:"account,omitempty"`
	Move      *Move                 `json:"move,omitempty"`
	Lost      *Loss                 `json:"lost,omitempty"`
	Life      Life                  `json:"life,omitzero"`
	Repairs   *Repairs              `json:"repairs,omitempty"`
	Revision  uint64                `json:"revision,omitempty"` // how often its owner has changed the request
	// Concerns are what its owner should know now. They are said with the lease, and
	// not kept.
	Concerns []Concern `json:"concerns,omitempty"`
	// Impaired is what was asked for by command while the lease runs, by link.
	Impaired map[string]Impaired `json:"impaired,omitempty"`
	// LinkStates are what was asked for by command of whether links are down.
	LinkStates map[string]LinkState `json:"link_states,omitempty"`
	// LinkAddresses are those of the ends of links in whose subnets some are
	// stated, by virtual link: as stated, or chosen.
	LinkAddresses map[string]LinkAddresses `json:"link_addresses,omitempty"`
	// Numbers of links and interfaces of a network whose owner has given it
	// another form; nil: those of the union of its stages.
	Numbers *Numbering `json:"numbers,omitempty"`
	// Undone says why the last change of its form was taken back.
	Undone string `json:"undone,omitempty"`
	// Exposed are the ports that images of nodes say they serve, such as 80/tcp, by
	// node, as hosts report them; the book has none.
	Exposed map[string][]string `json:"exposed,omitempty"`
	// Paused says since when its nodes stand still, or are to; nil: they are not.
	Paused *Pause `json:"paused,omitempty"`
}

// Impaired is an impairment that holds from a stage on, until one that states
// another for the link.
type Impaired struct {
	Stage  int           `json:"stage"`
	Impair [2]Impairment `json:"impair"` // by Direction
}

// Concern is what somebody should know of a lease now, such as that a promise is
// broken.
type Concern struct {
	Kind string `json:"kind"` // failed, degraded, promise, move, maintenance, end
	Why  string `json:"why"`
}

// LinkState says from a stage on whether a link is down, until one that states
// it for the link.
type LinkState struct {
	Stage int  `json:"stage"`
	Down  bool `json:"down"`
}

// Repairs are what agents made as planned again: what an accident took away or
// the tenant had changed inside their nodes.
type Repairs struct {
	Count uint64    `json:"count"` // steps, since admission
	Last  string    `json:"last"`  // of them, in words
	Time  time.Time `json:"time"`
}

// Move is a lease on its way to the embedding in Lease.Mapping from another.
type Move struct {
	Phase  MovePhase        `json:"phase"`
	From   Mapping          `json:"from"`
	VNIs   map[string][]VNI `json:"vnis,omitempty"`       // former ones, of the links that change
	Leaves []HostID         `json:"leaves,omitempty"`     // hosts that will have nothing of it
	For    uint64           `json:"for_serial,omitempty"` // the lease it makes room for
	Since  time.Time        `json:"since"`
	Form   *Form            `json:"form,omitempty"` // what else it was, if its owner gave it another form
	// Copied are the nodes whose kept files have come to their new hosts.
	Copied []string `json:"copied,omitempty"`
	// Live says that these are machines, which run while they are copied.
	Live bool `json:"live,omitempty"`
}

// Carries says whether what a node keeps is being taken to another host, so that
// nothing runs in it.
func (m *Move) Carries(node VirtualNode, to Mapping) bool {
	return m != nil && m.Phase == MoveCopies && !m.Live && node.Keeps() && m.From.Nodes[node.Name] != to.Nodes[node.Name]
}

// Form is what a lease was before its owner gave it another one, as far as a move
// does not say it.
type Form struct {
	Request       Request                  `json:"request"`
	Window        Window                   `json:"window"`
	Addresses     map[string]netip.Addr    `json:"addresses"`
	LinkAddresses map[string]LinkAddresses `json:"link_addresses,omitempty"`
	Numbers       *Numbering               `json:"numbers,omitempty"`
	Account       *Account                 `json:"account,omitempty"`
	Impaired      map[string]Impaired      `json:"impaired,omitempty"`
	LinkStates    map[string]LinkState     `json:"link_states,omitempty"`
}

// MovePhase is how far a move has come.
type MovePhase string

// A move prepares everything of the new paths that does not touch the old
// ones, then switches the links' ends, then leaves the old paths. Until it
// leaves it can be taken back.
const (
	MovePrepares MovePhase = "prepares"
	MoveSwitches MovePhase = "switches"
	MoveLeaves   MovePhase = "leaves"
	// MoveCopies is of one with nodes that go to other hosts with what they keep: they
	// are stopped, unless it is live, and their files are copied. It can be taken back.
	MoveCopies MovePhase = "copies"
	// MoveBuilds is of a network that gets another form: what is new is built.
	// It can be taken back.
	MoveBuilds MovePhase = "builds"
	// MoveDrains is of one with chains, after it has switched: what is on its way
	// by the former chains arrives.
	MoveDrains MovePhase = "drains"
)

// Loss says why a lease cannot be carried as the substrate is now.
type Loss struct {
	Reasons []string `json:"reasons"`
	// Booked says that what it had is still booked for it, for when what is
	// down comes back.
	Booked bool `json:"booked,omitempty"`
}

// ID names the lease.
func (l Lease) ID() LeaseID { return LeaseID{Tenant: l.Request.Tenant, Network: l.Request.Network} }

// Digest names what a check of the lease is about: which lease it is, its
// stage, where it is, what its links may use and, once its owner has changed
// the request, what was asked of them.
func (l Lease) Digest() string {
	about := []any{l.Serial, l.Stage, l.Mapping, l.Addresses, l.Rates}
	if l.Revision > 0 {
		for _, link := range l.Request.At(l.Stage).Links {
			about = append(about, link.Bandwidth, link.Impair)
			if link.Down {
				about = append(about, link.Name)
			}
		}
	}
	if len(l.Impaired) > 0 {
		about = append(about, l.Impaired)
	}
	if len(l.LinkStates) > 0 {
		about = append(about, l.LinkStates)
	}
	if len(l.LinkAddresses) > 0 {
		about = append(about, l.LinkAddresses)
	}
	text, err := json.Marshal(about)
	if err != nil { // of such types there is always a JSON
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Topology is the one of the running stage, with the impairments and failures
// of commands, and without rates that were given back.
func (l Lease) Topology() Topology {
	top := l.Held().At(l.Stage)
	if len(l.Impaired)+len(l.LinkStates) == 0 {
		return top
	}
	top.Links = slices.Clone(top.Links)
	for i, link := range top.Links {
		is, ok := l.Impaired[link.Name]
		if ok && !l.Request.restated(link.Name, is.Stage, l.Stage, func(s Stage) bool { _, is := s.Impair[link.Name]; return is }) {
			top.Links[i].Impair = is.Impair
		}
		state, ok := l.LinkStates[link.Name]
		if ok && !l.Request.restated(link.Name, state.Stage, l.Stage, func(s Stage) bool { _, is := s.Down[link.Name]; return is }) {
			top.Links[i].Down = state.Down
		}
	}
	return top
}

// restated says whether a stage after one, up to another, states something of a
// link, or brings it anew.
func (r Request) restated(link string, after, upTo int, states func(Stage) bool) bool {
	for i := after + 1; i <= upTo && i < len(r.Stages); i++ {
		if _, anew := r.Stages[i].Add.Link(link); anew || states(r.Stages[i]) {
			return true
		}
	}
	return false
}

// Change is one way in which an offer differs from the request, in words.
type Change struct {
	What string `json:"what"` // start, min, site, ...
	From string `json:"from"`
	To   string `json:"to"`
}

// String is a change that was made: of a whole that came or went, or of a value.
func (c Change) String() string {
	if c.From == There || c.From == None && strings.HasPrefix(c.To, There) {
		return c.What + " is " + c.Value()
	}
	return c.What + " " + c.Value()
}

// Value is what something is, and what it was before if both are values.
func (c Change) Value() string {
	fields, there := strings.CutPrefix(c.To, There)
	switch {
	case there && c.From == None:
		return "new" + fields
	case c.From == There && c.To == None:
		return "gone"
	}
	return c.To + " instead of " + c.From
}

// A thing as a whole is there, or none is.
const (
	There = "there"
	None  = "none"
)

// Offer is a request near one that was refused. It would be admitted if it
// were asked for at once.
type Offer struct {
	Axes    []Axis   `json:"axes"` // along which it differs; several when no single one suffices
	Request Request  `json:"request"`
	Changes []Change `json:"changes"`
	Account *Account `json:"account,omitempty"` // what it would cost
}

// Words says what an owner can have in place of a lease.
func (o Offer) Words() string {
	if len(o.Changes) == 0 {
		return "instead: the same elsewhere, released and asked for anew"
	}
	words := make([]string, len(o.Changes))
	for i, c := range o.Changes {
		words[i] = fmt.Sprintf("%s %s instead of %s", c.What, c.To, c.From)
	}
	return "instead: " + strings.Join(words, ", ")
}

// Rejection is a refusal by admission: what binds, and what would be admitted
// instead.
type Rejection struct {
	Reasons []string `json:"reasons"`         // binding constraints, in words
	Offer   *Request `json:"offer,omitempty"` // the nearest of Offers; nil: there are none
	Changes []Change `json:"changes,omitempty"`
	Offers  []Offer  `json:"offers,omitempty"` // the best along each axis, nearest first
	Never   string   `json:"never,omitempty"`  // without an offer: why there is none
	// Undecided: the time that an answer may take was over before all was
	// tried. There may be a place, and better offers.
	Undecided bool `json:"undecided,omitempty"`
	// Bound is what kind of thing refused it, for who counts refusals.
	Bound Bound `json:"-"`
}

// Bound is a kind of thing that refuses requests.
type Bound string

// The kinds. What is none of them is "".
const (
	BoundQuota Bound = "quota"
	BoundHost  Bound = "host"
	BoundLink  Bound = "link"
)

func (r *Rejection) Error() string { return "refused: " + strings.Join(r.Reasons, "; ") }

// Verdict is the outcome of a check, which the server makes and stores with
// its lease.
type Verdict struct {
	Network VNetID        `json:"network"`
	Serial  uint64        `json:"serial"`  // of the lease
	Digest  string        `json:"digest"`  // Lease.Digest when the check began
	OK      bool          `json:"ok"`      // Outcome is Kept
	Outcome Outcome       `json:"verdict"` // empty in verdicts of former versions: see Says
	Time    time.Time     `json:"time"`
	Links   []LinkVerdict `json:"links"`
	// Chains are those of functions.
	Chains []ChainVerdict `json:"chains,omitempty"`
	// Stale says that the lease's rates or mapping are not those that were
	// measured.
	Stale bool `json:"stale,omitempty"`
	// Unreached says who did not answer whom before anything was measured.
	Unreached []string `json:"unreached,omitempty"`
}

// ChainVerdict is what was promised and measured of a chain of functions. Rates are
// of Ethernet frames.
type ChainVerdict struct {
	Name     string     `json:"name"`
	Rate     Rate       `json:"rate_bps"` // 0: best effort
	Measured Rate       `json:"measured_bps"`
	Hops     []ChainHop `json:"hops"`

	// As of links.
	OK      bool    `json:"ok"`
	Outcome Outcome `json:"verdict"`
	Why     string  `json:"why"`
}

// ChainHop is what came to a hop of a chain while it was measured, and what was
// dropped there, by cause.
type ChainHop struct {
	Hop     string            `json:"hop"`            // as sublet chains calls it
	Back    bool              `json:"back,omitempty"` // on the way back
	Packets uint64            `json:"packets"`
	Bytes   uint64            `json:"bytes"`
	Drops   map[string]uint64 `json:"drops,omitempty"`
	// Latency is what a function added to packets in the mean; 0: it was taken of none.
	Latency time.Duration `json:"latency_ns,omitempty"`
}

// LinkVerdict is what was promised and measured on one direction of a link.
// Rates named *_bps are Ethernet frame rates (14-byte header included);
// *_payload_bps count what the application got.
type LinkVerdict struct {
	Name  string `json:"name"`
	From  string `json:"from"`
	To    string `json:"to"`
	Min   Rate   `json:"min_bps"`
	Max   Rate   `json:"max_bps"` // 0: best effort; with no stated maximum, the substrate's
	Alloc Rate   `json:"alloc_bps"`
	// Flow is what a single flow gets at least of a link over several paths,
	// and what UDP, one flow, is measured by; 0: Alloc.
	Flow Rate `json:"flow_bps,omitempty"`

	TCP        Rate    `json:"tcp_bps"`
	TCPPayload Rate    `json:"tcp_payload_bps"`
	UDP        Rate    `json:"udp_bps"`
	UDPPayload Rate    `json:"udp_payload_bps"`
	UDPLoss    float64 `json:"udp_loss"` // at 0.9 of the allocated rate, lost/sent

	// Latency is half the median round trip of the idle link, LatencyBound what
	// was promised; 0: nothing was. The median, since what is promised is the
	// way: higher percentiles of an idle link say when a probe got a processor.
	Latency      float64 `json:"latency_us"`
	LatencyBound float64 `json:"latency_bound_us,omitempty"`

	// Impair is what was asked for to be made worse in this direction, and in
	// the other: it is no broken promise, and is within LatencyBound.
	Impair [2]Impairment `json:"impair,omitzero"`

	RTT50     float64 `json:"rtt_us_p50"` // idle
	RTT99     float64 `json:"rtt_us_p99"`
	RTTLoad50 float64 `json:"rtt_load_us_p50"` // while every link is loaded
	RTTLoad99 float64 `json:"rtt_load_us_p99"`

	// OK says that nothing speaks against the link: it is kept, or nobody could
	// fill it.
	OK      bool    `json:"ok"`
	Outcome Outcome `json:"verdict"`
	Why     string  `json:"why"`
}

// Outcome of a check, of a network or of one direction of a link.
type Outcome string

// The outcomes. What fell short for want of a processor where it was measured
// is not measured, and neither kept nor broken.
const (
	Kept        Outcome = "kept"
	Broken      Outcome = "broken"
	NotMeasured Outcome = "not measured"
	LinkDown    Outcome = "down" // of a link that is down as asked for: nothing is promised
)

// Says is the verdict's outcome, also of one that a former version made.
func (v Verdict) Says() Outcome {
	switch {
	case v.Outcome != "":
		return v.Outcome
	case v.OK:
		return Kept
	}
	return Broken
}
