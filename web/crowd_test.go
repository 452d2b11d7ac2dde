package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

// crowd plays a server with many hosts and leases, in the words of the API. Its
// fabric is racks of twenty hosts below four spines:
//
//	spine0 ... spine3
//	   | each to each |
//	 leaf0  ...  leaf9
//	  |            |
//	h000..h019   h180..h199
type crowd struct {
	substrate   vnet.Substrate
	leases      []vnet.Lease
	links       []api.Link
	calendar    api.Calendar
	events      []vnet.Happening
	now         time.Time
	every       time.Duration // between two events of its stream; 0: it is silent
	told        atomic.Int64  // events that the stream has told
	readAll     atomic.Int64  // how often all leases were asked for
	admits      atomic.Bool   // requests, as the first of its leases is
	said        string        // what tenants write in the texts that they may choose
	maintenance []vnet.Maintenance
}

const (
	rack   = 20
	spines = 4
	markup = `<img src=x onerror="document.title='taken'">`
)

func newCrowd(hosts, leases int, said string) *crowd {
	c := &crowd{now: time.Now().UTC().Truncate(time.Second), said: said}
	c.build(hosts)
	for i := range leases {
		c.leases = append(c.leases, c.lease(i, hosts))
	}
	c.book()
	for i := range min(leases, 300) {
		l := c.leases[i]
		c.events = append(c.events, vnet.Happening{Number: uint64(i + 1), Time: c.now.Add(time.Duration(i-300) * time.Minute),
			Kind: "state", What: string(l.Request.Network), Lease: l.ID(), State: "running", Why: c.said})
	}
	return c
}

func (c *crowd) build(hosts int) {
	wire := func(name, a, b string, capacity vnet.Rate) {
		c.substrate.Links = append(c.substrate.Links, vnet.SubstrateLink{Name: name, Ends: [2]string{a, b}, Capacity: capacity})
	}
	for s := range spines {
		c.substrate.Switches = append(c.substrate.Switches, fmt.Sprintf("spine%d", s))
	}
	for h := range hosts {
		leaf := fmt.Sprintf("leaf%d", h/rack)
		if h%rack == 0 {
			c.substrate.Switches = append(c.substrate.Switches, leaf)
			for s := range spines {
				wire(fmt.Sprintf("%s-spine%d", leaf, s), leaf, fmt.Sprintf("spine%d", s), 40*vnet.Gbit)
			}
		}
		name := fmt.Sprintf("h%03d", h)
		c.substrate.Hosts = append(c.substrate.Hosts, vnet.SubstrateNode{Name: vnet.HostID(name), CPU: 64000, Memory: 256 << 30})
		wire(name+"-up", name, leaf, 10*vnet.Gbit)
	}
}

// lease is one of three nodes in a line, on hosts that the number scatters.
func (c *crowd) lease(i, hosts int) vnet.Lease {
	r := vnet.Request{Network: vnet.VNetID(fmt.Sprintf("net%04d", i)), Tenant: vnet.TenantID(fmt.Sprintf("tenant%02d", i%20)), Labels: map[string]string{"course": strconv.Itoa(i % 7)}}
	l := vnet.Lease{Serial: uint64(i + 1), State: "running", Window: vnet.Window{Start: c.now.Add(-time.Hour), End: c.now.Add(time.Duration(1+i%200) * time.Hour)},
		Mapping: vnet.Mapping{Nodes: map[string]vnet.HostID{}, Links: map[string]vnet.Path{}}, Rates: map[string][2]vnet.Rate{}, Message: c.said}
	at := []int{i % hosts, (7*i + 3) % hosts, (13*i + 11) % hosts}
	for n, name := range []string{"a", "b", "c"} {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: name})
		l.Mapping.Nodes[name] = vnet.HostID(fmt.Sprintf("h%03d", at[n]))
		if n == 0 {
			continue
		}
		link := r.Nodes[n-1].Name + "-" + name
		b := vnet.Bandwidth{Min: 100 * vnet.Mbit, Max: 400 * vnet.Mbit}
		r.Links = append(r.Links, vnet.VirtualLink{Name: link, Ends: [2]string{r.Nodes[n-1].Name, name}, Bandwidth: [2]vnet.Bandwidth{b, b}})
		l.Mapping.Links[link] = pathOf(at[n-1], at[n], i%spines)
		l.Rates[link] = [2]vnet.Rate{b.Max, b.Max}
	}
	l.Request = r
	return l
}

func pathOf(from, to, spine int) vnet.Path {
	up := func(h int) string { return fmt.Sprintf("h%03d-up", h) }
	climb := func(h int) string { return fmt.Sprintf("leaf%d-spine%d", h/rack, spine) }
	switch {
	case from == to:
		return nil
	case from/rack == to/rack:
		return vnet.Path{up(from), up(to)}
	}
	return vnet.Path{up(from), climb(from), climb(to), up(to)}
}

// book fills in what is booked of links and hosts, now and over time.
func (c *crowd) book() {
	booked := map[string]vnet.Rate{}
	for _, l := range c.leases {
		for _, path := range l.Mapping.Links {
			for _, hop := range path {
				booked[hop] += 100 * vnet.Mbit
			}
		}
	}
	c.calendar.Window = vnet.Window{Start: c.now, End: c.now.Add(24 * time.Hour)}
	for _, l := range c.substrate.Links {
		for d := range 2 {
			c.links = append(c.links, api.Link{Name: l.Name, From: l.Ends[d], To: l.Ends[1-d], Capacity: l.Capacity, Leasable: l.Capacity, Booked: booked[l.Name]})
			c.calendar.Loads = append(c.calendar.Loads, vnet.Load{Link: l.Name, From: l.Ends[d], To: l.Ends[1-d], Leasable: l.Capacity,
				Steps: []vnet.LoadStep{{At: c.now, Booked: booked[l.Name]}, {At: c.now.Add(9 * time.Hour), Booked: booked[l.Name] / 2}}})
		}
	}
	for _, h := range c.substrate.Hosts {
		c.calendar.Hosts = append(c.calendar.Hosts, vnet.HostLoad{Host: h.Name, CPU: h.CPU, Memory: h.Memory,
			Steps: []vnet.HostStep{{At: c.now, CPU: 15000}, {At: c.now.Add(6 * time.Hour), CPU: 7000}}})
	}
	c.maintenance = []vnet.Maintenance{
		{ID: "m1", Host: "h001", Start: c.now.Add(2 * time.Hour), End: c.now.Add(5 * time.Hour), Note: c.said},
		{ID: "m2", Link: "leaf0-spine0", Start: c.now.Add(8 * time.Hour), End: c.now.Add(30 * time.Hour), Note: "new optics"},
	}
	c.calendar.Maintenance = c.maintenance
}

// BaseURL is a Server's.
func (*crowd) BaseURL() *url.URL { return &url.URL{Scheme: "http", Host: "sublet"} }

// Dial is a Server's.
func (*crowd) Dial(context.Context) (net.Conn, error) { return nil, errors.New("no sessions here") }

// RoundTrip answers as the server would.
func (c *crowd) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/v1/watch" {
		return c.stream(r)
	}
	text, err := json.Marshal(c.answer(r.URL.Path, r.URL.Query().Get("after")))
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r}, nil
}

func (c *crowd) answer(path, after string) any {
	switch {
	case path == "/v1/leases":
		c.readAll.Add(1)
		return c.leases
	case path == "/v1/substrate":
		return c.substrate
	case path == "/v1/links":
		return c.links
	case path == "/v1/calendar":
		return c.calendar
	case path == "/v1/events" && after == "":
		return c.events
	case path == "/v1/events":
		return []vnet.Happening{}
	case path == "/v1/offers":
		return c.proposal()
	case strings.HasSuffix(path, "/proof"):
		return c.proof()
	case strings.HasPrefix(path, "/v1/leases/"):
		n, _ := strconv.Atoi(path[len(path)-4:])
		return c.leases[n]
	}
	return nil
}

func (c *crowd) proof() []vnet.Proof {
	run := func(hours time.Duration, minutes int, verdict vnet.Outcome) vnet.ProofRun {
		return vnet.ProofRun{From: c.now.Add(-hours * time.Hour), Minutes: minutes, Outcome: verdict}
	}
	return []vnet.Proof{{Link: "a-b", From: "a", To: "b", Tested: 3600, Availability: 0.997, Runs: []vnet.ProofRun{run(9, 180, "kept"), run(6, 20, "broken"), run(5, 240, "kept")}}}
}

// proposal refuses, and offers another time and another minimum; or admits.
func (c *crowd) proposal() api.Proposal {
	r := c.leases[0].Request
	later := r
	later.Start, later.For = c.now.Add(9*time.Hour), time.Hour
	smaller := r
	smaller.For = time.Hour
	if c.admits.Load() {
		return api.Proposal{Admitted: true, Calendar: c.calendar, Quote: &vnet.Quote{Window: vnet.Window{Start: c.now, End: c.now.Add(time.Hour)}, Mapping: c.leases[0].Mapping}}
	}
	return api.Proposal{Calendar: c.calendar, Refusal: &vnet.Rejection{Reasons: []string{"link h000-up: 9 Gbit/s are booked " + c.said}, Offers: []vnet.Offer{
		{Axes: []vnet.Axis{"start"}, Request: later, Changes: []vnet.Change{{What: "start", From: "now", To: later.Start.Format(time.RFC3339)}}},
		{Axes: []vnet.Axis{"min"}, Request: smaller, Changes: []vnet.Change{{What: "min", From: "5 Gbit/s", To: "1 Gbit/s"}}},
	}}}
}

// stream tells an event after each pause: samples of fifty virtual links mostly,
// the state of a lease every fourth time.
func (c *crowd) stream(r *http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	ctx := r.Context()
	go func() {
		defer w.Close()
		for n := 0; ; n++ {
			event := c.event(n)
			if _, err := w.Write(event.Append(nil)); err != nil {
				return
			}
			c.told.Add(1)
			pause := c.every
			if pause == 0 {
				pause = time.Hour
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {api.EventStream}}, Body: body, Request: r}, nil
}

func (c *crowd) event(n int) api.Event {
	if n%4 == 0 {
		l := c.leases[n%len(c.leases)]
		return eventOf(api.EventState, n, report.Sample{Kind: report.KindLease, Key: string(l.Request.Network), Lease: l.ID(), State: "running"})
	}
	var list []report.Sample
	for i := range 25 {
		which := (25*n + i) % len(c.leases)
		l := c.leases[which]
		for _, d := range []string{"0", "1"} {
			bytes := uint64(time.Since(c.now).Microseconds()) * uint64(2+which%24*2)
			list = append(list, report.Sample{Host: "h000", Kind: "vxlink", Key: fmt.Sprint(l.ID(), d), Lease: l.ID(), At: time.Now(),
				Labels:   map[string]string{"link": "a-b", "direction": d, "enters": "true"},
				Counters: []report.Counter{{Name: "entered", Unit: "bytes", Value: bytes}, {Name: "entered", Unit: "packets", Value: bytes / 1000}}})
		}
	}
	return eventOf(api.EventSamples, n, list)
}

func eventOf(name string, n int, data any) api.Event {
	text, _ := json.Marshal(data) // plain structs
	return api.Event{Name: name, ID: strconv.Itoa(n + 1), Data: text}
}
