package slice

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"sublet/openflow/of13"
)

const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 8 * time.Second
)

// Proxy stands between a switch and the controllers of its slices.
type Proxy struct{ config Config }

// New checks a configuration.
func New(config Config) (*Proxy, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	if _, err := guardsOf(config.Slices); err != nil {
		return nil, err
	}
	return &Proxy{config: config}, nil
}

// Run serves until ctx is done, or until it cannot listen.
func (p *Proxy) Run(ctx context.Context) error {
	if p.config.Switch.Passive {
		return p.listen(ctx)
	}
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, lastRetry) {
		began := time.Now()
		conn, err := p.config.Switch.Connect(ctx, p.config.TLS, lastRetry)
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
		if p.config.Switch.Secure {
			conn = tls.Server(conn, p.config.TLS)
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
	if err := up.greet(); err != nil {
		return err
	}
	of, err := p.begin(up)
	if err != nil {
		return err
	}
	defer of.Close()
	of.Begin(ctx, p.config.TLS, p.config.Log, &running)
	return drive(ctx, up, of, wake)
}

// begin has the slices be there: as they were, if that is remembered, and else on a
// switch that is emptied.
func (p *Proxy) begin(up *upstream) (*Local, error) {
	f, err := features(up)
	if err != nil {
		return nil, err
	}
	l, err := newLocal(LocalConfig{Tables: int(f.Tables), Memory: p.config.Memory, Notify: up.wake}, up)
	if err != nil {
		return nil, err
	}
	return l, l.Set(p.config.Slices)
}

// leading are the entries of table 0 that lead a slice's packets to its tables.
func (v *view) leading() (list []of13.Message) {
	instructions := []of13.Instruction{{Type: of13.InstructionGoto, Table: v.first}}
	if v.rated != 0 {
		instructions = append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: v.rated}}, instructions...)
	}
	entry := func(priority uint16, fields []of13.Field) of13.Message {
		return &of13.FlowMod{
			Priority: priority, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
			Match: of13.Match{Fields: fields}, Instructions: instructions,
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

// drive does what controllers ask, in turn, and tells them what happened.
func drive(ctx context.Context, up *upstream, of *Local, wake <-chan struct{}) error {
	ask := time.NewTicker(quiet)
	defer ask.Stop()
	for ctx.Err() == nil {
		events, ended := up.take()
		for _, e := range events {
			of.Happened(e)
		}
		more := of.Turn()
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
