package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sublet/lease"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// While there are watchers, agents are asked for samples: one question a host at
// a time, over a connection that is kept.
const (
	collectEvery   = time.Second
	quietAfter     = 1900 * time.Millisecond // of no answer a host is said to be silent: two rounds
	mostHostsAsked = 16                      // hosts at a time
)

// collector asks agents for samples while there are watchers.
type collector struct {
	server *Server
	hosts  map[vnet.HostID]*collected
	slots  chan struct{}
	asking sync.WaitGroup
	last   time.Time // when a round began
}

// collected is what is known of a host that is watched.
type collected struct {
	busy       chan struct{} // has room for one: a question is under way
	revision   uint64        // of the plan that tenants were read from
	tenants    map[vnet.TenantID]bool
	links      bool   // there are some, to be judged
	begins     bool   // there are, and a moment ago there were none
	after      uint64 // number of the last reading
	heads      heads  // of its samples; none while nobody watches
	set        uint64 // of the links whose counts were read last
	directions []report.LinkWay
	address    string // of the connection
	target     *url.URL
	transport  *http.Transport
	failed     string          // why there was no answer; "": there was
	asked      bool            // in the last round
	heard      atomic.Int64    // when it answered last, or began to be asked: Unix time in ns
	silent     bool            // it was said to be
	last       []report.Sample // of a scrape
}

// proves says that links are judged while they live, so that hosts are always asked.
func (s *Server) proves() bool { return s.journal.dir != "" }

// collect runs until ctx ends; without watchers, and if links are not judged, it
// waits and costs nothing.
func (s *Server) collect(ctx context.Context) {
	c := collector{server: s, hosts: make(map[vnet.HostID]*collected), slots: make(chan struct{}, mostHostsAsked)}
	defer c.close()
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		if feeds := s.feeds.list(true); len(feeds) > 0 || s.proves() {
			c.round(ctx, feeds)
		} else {
			c.close()
			select {
			case <-s.feeds.begun:
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// close lets go of all connections.
func (c *collector) close() {
	c.asking.Wait()
	for _, h := range c.hosts {
		h.disconnect()
	}
	clear(c.hosts)
}

// round asks every host that has something for a feed.
func (c *collector) round(ctx context.Context, feeds []*feed) {
	if err := c.look(); err != nil {
		return
	}
	late := time.Since(c.last) > 3*collectEvery/2
	c.last = time.Now()
	for host, h := range c.hosts {
		if h.begins {
			h.begins = false
			c.server.proving.begins(host, time.Now())
		}
		wanted := h.wanted(feeds)
		if len(wanted) == 0 && (!c.server.proves() || !h.links) {
			h.asked = false
			continue
		}
		c.listen(host, h, late)
		select {
		case h.busy <- struct{}{}:
		default:
			continue // the question before is not answered yet
		}
		links := h.links
		c.asking.Go(func() {
			defer func() { <-h.busy }()
			c.slots <- struct{}{}
			defer func() { <-c.slots }()
			c.ask(ctx, host, h, links, wanted)
		})
	}
}

// listen tells when a host that is asked ceases to answer, and when it does again. Nothing
// is said of one when this round is late: then it is the server that had no processor.
func (c *collector) listen(host vnet.HostID, h *collected, late bool) {
	now := time.Now()
	if !h.asked || late {
		h.asked = true
		h.heard.Store(now.UnixNano())
	}
	quiet := now.Sub(time.Unix(0, h.heard.Load()))
	if silent := quiet > quietAfter; silent != h.silent {
		h.silent = silent
		state, why := "heard", "its agent answers again"
		if silent {
			state, why = "silent", fmt.Sprintf("its agent has not answered for %s: what its links carry is not tested meanwhile", quiet.Round(100*time.Millisecond))
		}
		c.server.happens(vnet.Happening{Time: c.server.now(), Kind: string(report.KindHost), What: string(host), State: state, Why: why})
	}
}

// look brings hosts, and whose leases are there, to what the book has.
func (c *collector) look() error {
	return c.server.look(func(_ time.Time, b *lease.Book) error {
		plans, sub := b.Plans(), b.Substrate()
		for _, o := range sub.OpenFlow { // switches count nothing of their own
			delete(plans, vnet.HostID(o.Name))
		}
		for host, h := range c.hosts {
			if _, there := plans[host]; !there && len(h.busy) == 0 {
				h.disconnect()
				delete(c.hosts, host)
			}
		}
		for host, p := range plans {
			h := c.hosts[host]
			if h == nil {
				h = &collected{busy: make(chan struct{}, 1)}
				c.hosts[host] = h
			}
			if h.tenants != nil && h.revision == p.Revision {
				continue
			}
			empty := h.tenants != nil && !h.links
			h.revision, h.tenants, h.links = p.Revision, make(map[vnet.TenantID]bool), false
			for _, item := range p.Items() {
				h.tenants[item.LeaseID().Tenant] = true
				h.links = h.links || item.Kind() == plan.KindVxLink
			}
			h.begins = empty && h.links
		}
		return nil
	})
}

// wanted are the feeds that a host has something for.
func (h *collected) wanted(feeds []*feed) (list []*feed) {
	for _, f := range feeds {
		if f.scope.Tenant == "" || h.tenants[f.scope.Tenant] {
			list = append(list, f)
		}
	}
	return list
}

// ask reads what a host's links counted, and what it has to say to feeds. A host
// that has nothing of a tenant tells them nothing.
func (c *collector) ask(ctx context.Context, host vnet.HostID, h *collected, links bool, feeds []*feed) {
	var err error
	if c.server.proves() && links {
		err = c.server.counts(ctx, host, h)
	}
	var readings []encoded
	if len(feeds) == 0 {
		h.heads = heads{}
	} else if err == nil {
		scopes := make([]report.Scope, len(feeds))
		for i, f := range feeds {
			scopes[i] = f.scope
		}
		readings, err = c.server.encoded(ctx, host, h, report.Union(scopes[0], scopes[1:]...))
	}
	if ctx.Err() != nil {
		return
	}
	c.note(host, h, err)
	for _, one := range readings {
		for _, f := range feeds {
			f.samples(one)
		}
		one.free()
	}
}

// note tells the operator when a host begins or ceases to answer.
func (c *collector) note(host vnet.HostID, h *collected, err error) {
	state := report.Sample{Host: host, Kind: report.KindHost, Key: string(host), At: c.server.now(), State: report.Readable}
	failed := ""
	if err == nil {
		h.heard.Store(time.Now().UnixNano())
	} else {
		failed = err.Error()
		state.State, state.Why = report.Unreadable, failed
		h.disconnect()
	}
	if failed != h.failed {
		h.failed = failed
		c.server.feeds.state(state)
	}
}

// rounds asks a host's agent for the readings after the last.
func (s *Server) rounds(ctx context.Context, host vnet.HostID, h *collected, scope report.Scope) ([]reading, error) {
	if err := s.connect(host, h); err != nil {
		return nil, err
	}
	query := url.Values{
		"form": {"packed"}, "after": {strconv.FormatUint(h.after, 10)},
		"era": {strconv.FormatUint(h.heads.era, 10)}, "heads": {strconv.Itoa(len(h.heads.list))},
	}
	if scope.Tenant != "" {
		query.Set("tenant", string(scope.Tenant))
	}
	at := h.target.JoinPath("/v1/samples")
	at.RawQuery = query.Encode()
	body, err := s.get(ctx, host, h.transport, at)
	if err != nil {
		return nil, err
	}
	list, err := decodeReadings(host, &h.heads, body)
	if err != nil {
		h.heads = heads{}
		return nil, wrongSamples(host, err)
	}
	for _, one := range list {
		h.after = one.packed.Number
	}
	return list, nil
}

// encoded are the readings after the last as JSON.
func (s *Server) encoded(ctx context.Context, host vnet.HostID, h *collected, scope report.Scope) (list []encoded, err error) {
	readings, err := s.rounds(ctx, host, h, scope)
	left := mostEncoded
	for _, one := range readings {
		text, err := one.encode(left)
		if err != nil {
			return nil, wrongSamples(host, err)
		}
		left -= len(text.text)
		list = append(list, text)
	}
	return list, err
}

// newest are the samples of the last reading, for who needs no other; nil: there is
// no reading yet.
func (s *Server) newest(ctx context.Context, host vnet.HostID, h *collected) ([]report.Sample, error) {
	readings, err := s.rounds(ctx, host, h, report.Scope{})
	if err != nil || len(readings) == 0 {
		return nil, err
	}
	samples, err := readings[len(readings)-1].samples()
	if err != nil {
		return nil, wrongSamples(host, err)
	}
	return samples, nil
}

// connect makes the connection to a host's agent, unless it is there.
func (s *Server) connect(host vnet.HostID, h *collected) (err error) {
	s.mu.Lock()
	address := s.agents[host].report.Agent
	s.mu.Unlock()
	if h.transport != nil && h.address == address {
		return nil
	}
	h.disconnect()
	if h.target, h.transport, err = s.agentOf(host); err != nil {
		return err
	}
	h.transport.DisableKeepAlives, h.transport.MaxIdleConnsPerHost = false, 1
	h.address, h.after = address, 0
	return nil
}

func (h *collected) disconnect() {
	if h.transport != nil {
		h.transport.CloseIdleConnections()
		h.transport = nil
	}
}
