package slice

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
)

const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 8 * time.Second
)

// Proxy stands between a switch and the controllers of its slices.
type Proxy struct {
	config Config
	guards []*guard
}

// New checks a configuration.
func New(config Config) (*Proxy, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	p := &Proxy{config: config}
	for i := range config.Slices {
		g, err := newGuard(config.Slices[i].Match)
		if err != nil {
			return nil, fmt.Errorf("slice %s: match: %w", config.Slices[i].Name, err)
		}
		p.guards = append(p.guards, g)
	}
	return p, nil
}

// Run serves until ctx is done, or until it cannot listen.
func (p *Proxy) Run(ctx context.Context) error {
	if p.config.Switch.Passive {
		return p.listen(ctx)
	}
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, lastRetry) {
		began := time.Now()
		dialer := net.Dialer{Timeout: lastRetry}
		conn, err := dialer.DialContext(ctx, "tcp", p.config.Switch.Address)
		if err == nil {
			err = p.serve(ctx, conn)
		}
		if ctx.Err() == nil {
			p.config.Log(fmt.Errorf("switch %s: %w", p.config.Switch, err))
		}
		if time.Since(began) > lastRetry {
			wait = firstRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

// listen serves the switch that connects, one at a time.
func (p *Proxy) listen(ctx context.Context) error {
	l, err := net.Listen("tcp", p.config.Switch.Address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.serve(ctx, conn); ctx.Err() == nil {
			p.config.Log(fmt.Errorf("switch %s: %w", conn.RemoteAddr(), err))
		}
	}
}

// serve makes slices of a switch until its connection ends.
func (p *Proxy) serve(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	wake := make(chan struct{}, 1)
	up := newUpstream(conn, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	defer conn.Close()
	running.Go(up.read)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	members, err := p.begin(up)
	if err != nil {
		return err
	}
	for _, m := range members {
		m.hub = channel.NewHub(up.wake)
		m.hub.Least = of13.Version
		defer m.hub.Close()
		for _, t := range m.Controllers {
			running.Go(func() {
				if err := m.hub.Run(ctx, t, nil, p.said(m.Name)); err != nil {
					p.said(m.Name)(err)
				}
			})
		}
	}
	return drive(ctx, up, members, wake)
}

func (p *Proxy) said(name string) func(error) {
	return func(err error) { p.config.Log(fmt.Errorf("slice %s: %w", name, err)) }
}

// begin empties the switch, and leads the packets of each slice to its tables.
func (p *Proxy) begin(up *upstream) (members []*member, err error) {
	features, err := up.greet()
	if err != nil {
		return nil, err
	}
	first, groups, meters := 1, newPool(), newPool()
	entries := emptied()
	for i := range p.config.Slices {
		s := &p.config.Slices[i]
		v := &view{
			Slice: s, first: uint8(first), groups: newNumbers(groups, uint8(first), s.Groups), meters: newNumbers(meters, uint8(first), s.Meters),
			ports: make(map[uint32]of13.Port), alone: p.alone(i), guard: p.guards[i],
		}
		members = append(members, &member{view: v, up: up, features: features, miss: 128})
		entries = append(entries, v.leading()...)
		first += s.Tables
	}
	if int(features.Tables) < first {
		return nil, fmt.Errorf("it has %d tables, and slices need %d: give them fewer", features.Tables, first)
	}
	parts, err := askMultipart(up, &of13.MultipartRequest{Kind: of13.MultipartPortDesc})
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		for _, port := range part.PortDescs {
			for _, m := range members {
				if m.has(port.Number) {
					m.ports[port.Number] = port
				}
			}
		}
	}
	_ = up.change(&of13.MeterMod{Command: of13.CommandDelete, Meter: of13.MeterAll}) // a switch without meters refuses it
	return members, up.change(entries...)
}

// emptied are messages that leave nothing of before.
func emptied() []of13.Message {
	return []of13.Message{
		&of13.Config{Kind: of13.TypeSetConfig, MissSendBytes: of13.NoMaxLen},
		&of13.FlowMod{Command: of13.FlowDelete, Table: of13.TableAll, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny},
		&of13.GroupMod{Command: of13.CommandDelete, Group: of13.GroupAll},
	}
}

// leading are the entries of table 0 that lead a slice's packets to its tables.
func (v *view) leading() (list []of13.Message) {
	entry := func(priority uint16, fields []of13.Field) of13.Message {
		return &of13.FlowMod{
			Priority: priority, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
			Match: of13.Match{Fields: fields}, Instructions: []of13.Instruction{{Type: of13.InstructionGoto, Table: v.first}},
		}
	}
	switch {
	case v.Default:
		return []of13.Message{entry(0, nil)}
	case len(v.Ports) == 0:
		return []of13.Message{entry(1, v.Match)}
	}
	for _, p := range v.Ports {
		list = append(list, entry(1, append([]of13.Field{of13.Exact(of13.InPort, uint64(p))}, v.Match...)))
	}
	return list
}

// alone says of a port whether only one slice has it.
func (p *Proxy) alone(i int) func(port uint32) bool {
	return func(port uint32) bool {
		for j := range p.config.Slices {
			if v := (view{Slice: &p.config.Slices[j]}); j != i && v.has(port) {
				return false
			}
		}
		return true
	}
}

// drive does what controllers ask, in turn, and tells them what happened.
func drive(ctx context.Context, up *upstream, members []*member, wake <-chan struct{}) error {
	ask := time.NewTicker(quiet)
	defer ask.Stop()
	for ctx.Err() == nil {
		events, ended := up.take()
		for _, e := range events {
			for _, m := range members {
				m.happened(e)
			}
		}
		more := false
		for _, m := range members {
			if in, ok := m.hub.Next(); ok {
				m.hub.Handle(in, m)
				more = true
			}
		}
		switch {
		case ended != nil:
			return ended
		case more || len(events) > 0:
			continue
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case <-ask.C:
			if err := up.send(0, &of13.Echo{}); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
