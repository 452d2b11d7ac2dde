// Package controller serves switches of OpenFlow 1.3 and 1.0: it greets them, keeps their
// connections alive, and hands what they send to applications. All of it happens
// in one thread, which serves connections in turn; what waits for a switch is
// bounded.
package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
	"sublet/openflow/poll"
	"sublet/openflow/secure"
)

// Liveness of connections.
const (
	idle    = 5 * time.Second  // after which an echo is asked for
	dead    = 15 * time.Second // after which a switch that said nothing is given up
	tidying = time.Second
)

// Switch is one that is connected.
type Switch struct {
	DatapathID uint64

	// Ports is what a switch of OpenFlow 1.0 said of its ports when it connected; one
	// of 1.3 is asked. It is valid during App.Connected.
	Ports []of13.Port

	// Anew says that another controller may have changed the switch since this one was
	// its master. It is valid during App.Connected.
	Anew bool

	app   App
	conn  *poll.Conn
	xid   uint32
	to    *target // whom the controller connected to
	owner *Controller
	asked bool // an echo was asked for since the last message
	ready bool // it said what it is
	led   bool // app has it
	claim claim
	told  bool // that it refuses something: the log is not for it to fill
}

// Send sends a message to the switch, and gives its transaction.
func (s *Switch) Send(m of13.Message) uint32 {
	s.xid++
	s.conn.Send(s.xid, m)
	return s.xid
}

// Version is the one of OpenFlow that is spoken with the switch.
func (s *Switch) Version() uint8 { return s.conn.Version }

// Close ends the connection; the switch may make another.
func (s *Switch) Close(why error) {
	s.owner.Closed(s.conn, why)
	s.conn.Close()
}

// App is what decides about one switch.
type App interface {
	// Connected comes once, when the switch has said what it is.
	Connected(*Switch)
	// PacketIn is a packet for controllers. m is valid until the call ends.
	PacketIn(s *Switch, m *of13.PacketIn, now time.Time)
}

// Follower is an App that also wants what is no packet.
type Follower interface {
	App
	// Message is any other one. m is valid until the call ends.
	Message(s *Switch, h of13.Header, m of13.Message, now time.Time)
	// Gone comes when a switch that was Connected is connected no longer.
	Gone(s *Switch, now time.Time)
}

// Config of a controller.
type Config struct {
	Listen  netip.AddrPort   // where switches connect; zero: nowhere
	Connect []netip.AddrPort // switches that listen, to which the controller connects, again and again
	App     func() App       // makes one for each switch
	TLS     *secure.Files    // of all connections; nil: they are plain. Files are read for each.
	Log     *slog.Logger

	// Role, if there is one, says what it shall be, and is asked often. Without one it
	// asks switches for no role, and is the equal of all their controllers.
	Role func() Role

	// Tick, if there is one, comes often, and says how long it may be until the next.
	Tick func(now time.Time) time.Duration
}

// target is a switch that listens.
type target struct {
	at   netip.AddrPort
	conn *poll.Conn
	next time.Time // it is tried
	why  string    // it failed last
}

const retry = time.Second

// Controller is a set of connected switches.
type Controller struct {
	config  Config
	loop    *poll.Loop
	address netip.AddrPort
	conns   map[*poll.Conn]*Switch
	targets []*target
	tidied  time.Time
	role    Role              // as it was when it was asked last
	ledAs   map[uint64]uint64 // generations by switch
}

// New listens.
func New(config Config) (*Controller, error) {
	loop, err := poll.New()
	if err != nil {
		return nil, err
	}
	c := &Controller{config: config, loop: loop, conns: make(map[*poll.Conn]*Switch), ledAs: make(map[uint64]uint64)}
	if config.Role != nil {
		c.role = config.Role()
	}
	if config.TLS != nil {
		loop.TLS = config.TLS.AnyNameConfig
	}
	for _, at := range config.Connect {
		c.targets = append(c.targets, &target{at: at})
	}
	if !config.Listen.IsValid() {
		return c, nil
	}
	if c.address, err = loop.Listen(config.Listen); err != nil {
		loop.Close()
		return nil, err
	}
	return c, nil
}

// Address is where it listens.
func (c *Controller) Address() netip.AddrPort { return c.address }

// Run serves until ctx ends, and closes everything then.
func (c *Controller) Run(ctx context.Context) error {
	defer c.loop.Close()
	return c.loop.Run(c, func() bool { return ctx.Err() != nil })
}

// Opened greets a switch and asks what it is.
func (c *Controller) Opened(conn *poll.Conn) {
	s := &Switch{conn: conn, owner: c}
	conn.Data, c.conns[conn] = s, s
	s.Send(&of13.Hello{Bitmap: of10.Versions})
}

// Closed forgets a switch.
func (c *Controller) Closed(conn *poll.Conn, why error) {
	s := c.conns[conn]
	if s == nil {
		return // it was closed here
	}
	delete(c.conns, conn)
	if s.to != nil {
		c.failed(s.to, why, s.ready)
	}
	if !s.ready {
		return
	}
	c.config.Log.Info("switch gone", "dpid", name(s.DatapathID), "why", why)
	c.leave(s)
}

// failed lets a switch that listens be tried again. Why it fails is told once.
func (c *Controller) failed(t *target, why error, was bool) {
	t.conn, t.next = nil, time.Now().Add(retry)
	if text := fmt.Sprint(why); !was && text != t.why {
		t.why = text
		c.config.Log.Warn("no connection to a switch, which is tried again", "at", t.at, "why", why)
	}
}

// connect connects to the switches that listen and have no connection.
func (c *Controller) connect(now time.Time) {
	for _, t := range c.targets {
		if t.conn != nil || now.Before(t.next) {
			continue
		}
		conn, err := c.loop.Connect(t.at, nil)
		if err != nil {
			c.failed(t, err, false)
			continue
		}
		t.conn = conn
		c.Opened(conn)
		c.conns[conn].to = t
	}
}

// Message handles what is the same for all applications.
func (c *Controller) Message(conn *poll.Conn, h of13.Header, m of13.Message) {
	s := conn.Data.(*Switch)
	s.asked = false
	switch m := m.(type) {
	case *of13.PacketIn:
		if s.led {
			s.app.PacketIn(s, m, c.loop.Now())
		}
	case *of13.Echo:
		if !m.Reply {
			conn.Send(h.XID, &of13.Echo{Reply: true, Data: m.Data})
		}
	case *of13.Hello:
		c.greet(s, h, m)
	case *of13.Role:
		c.granted(s, h, m)
	case *of10.FeaturesReply:
		s.Ports = m.Ports
		c.connected(s, &m.FeaturesReply)
	case *of13.FeaturesReply:
		c.connected(s, m)
	default:
		if e, ok := m.(*of13.ErrorMessage); ok {
			if c.denied(s, h, e) {
				return
			}
			c.refused(s, e)
		}
		if f, ok := s.app.(Follower); ok && s.led {
			f.Message(s, h, m, c.loop.Now())
		}
	}
}

func (c *Controller) refused(s *Switch, m *of13.ErrorMessage) {
	if s.told {
		return
	}
	s.told = true
	c.config.Log.Warn("the switch refuses, more of which is not told", "dpid", name(s.DatapathID), "error", of13.Error(uint32(m.Kind)<<16|uint32(m.Code)))
}

// greet settles the version, and asks what the switch is.
func (c *Controller) greet(s *Switch, h of13.Header, m *of13.Hello) {
	version, ok := of10.Negotiate(h.Version, m.Bitmap)
	if s.conn.Version != 0 {
		return // it was greeted
	}
	if !ok {
		s.conn.Send(h.XID, &of13.ErrorMessage{Kind: of13.HelloFailedIncompatible.Type(), Code: of13.HelloFailedIncompatible.Code(), Data: []byte("only OpenFlow 1.0 and 1.3 are spoken here")})
		c.Closed(s.conn, of13.HelloFailedIncompatible)
		s.conn.Close()
		return
	}
	s.conn.Version = version
	s.Send(&of13.Plain{Kind: of13.TypeFeaturesRequest})
}

func (c *Controller) connected(s *Switch, m *of13.FeaturesReply) {
	if s.ready {
		return
	}
	s.ready, s.DatapathID = true, m.DatapathID
	c.config.Log.Info("switch", "dpid", name(s.DatapathID), "tables", m.Tables)
	if c.config.Role == nil {
		c.lead(s)
		return
	}
	c.ask(s)
}

// Tick asks silent switches whether they are there.
func (c *Controller) Tick(now time.Time) time.Duration {
	wait := tidying
	c.rerole()
	if c.config.Tick != nil {
		wait = min(wait, c.config.Tick(now))
	}
	if now.Sub(c.tidied) < tidying {
		return min(wait, tidying-now.Sub(c.tidied))
	}
	c.tidied = now
	c.connect(now)
	for conn, s := range c.conns {
		switch silent := now.Sub(conn.Seen); {
		case silent > dead:
			c.Closed(conn, fmt.Errorf("nothing came for %s", dead))
			conn.Close()
		case silent > idle && !s.asked:
			s.asked = true
			s.Send(&of13.Echo{})
		}
	}
	return wait
}
