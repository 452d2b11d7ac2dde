package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sublet/bench/harness"
	"sublet/lease/api"
	"sublet/vnet"
)

// load asks as a tenant does, beside others who ask too much, until ctx ends.
func (s *server) load(ctx context.Context, attackers int) (f figures, err error) {
	client := api.NewClient(s.socket)
	defer client.Close()
	sub, err := client.Substrate(ctx)
	if err != nil {
		return f, err
	}
	large := questions(sub)
	var mu sync.Mutex
	var all sync.WaitGroup
	begun, err := stages(ctx, client, sub)
	if err != nil {
		return f, err
	}
	for i, h := range sub.Hosts[:2] {
		late := &f.late
		if i > 0 {
			late = new(harness.Samples)
		}
		all.Go(func() { s.obey(ctx, h.Name, begun, late) })
	}
	for i := range attackers {
		all.Go(func() {
			s.attack(ctx, large, i, func(ms float64) { mu.Lock(); f.large = append(f.large, ms); mu.Unlock() })
		})
	}
	all.Go(func() { s.list(ctx, &f) })
	err = s.ups(ctx, &f)
	all.Wait()
	return f, err
}

// large questions: far too much, nearly too much, all apart; written once.
func questions(sub vnet.Substrate) (bodies []json.RawMessage) {
	hosts, cores := len(sub.Hosts), vnet.CPU(0)
	for _, h := range sub.Hosts {
		cores += h.CPU
	}
	for _, n := range []int{20, 50, 100, 400, 1000} {
		for _, r := range []vnet.Request{
			network(n, 3*cores/vnet.CPU(n)+10, vnet.Mbit, false),
			network(n, max(cores*97/100/vnet.CPU(n), 10), 20*vnet.Mbit, false),
			network(n, 10, vnet.Gbit/3, true),
			network(max(min(n, hosts), 3), 10, vnet.Gbit*45/100, true),
		} {
			text, err := json.Marshal(api.Ask{Request: r})
			if err != nil {
				panic(err) // of a value made here
			}
			bodies = append(bodies, text)
		}
	}
	return bodies
}

// network has three links a node.
func network(n int, cpu vnet.CPU, rate vnet.Rate, apart bool) vnet.Request {
	r := vnet.Request{Network: "large", For: time.Hour}
	if apart {
		r.Colocate = vnet.ColocateForbidden
	}
	for i := range n {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprint("v", i), CPU: cpu, Memory: vnet.MiB})
	}
	for i := range n {
		for _, step := range []int{1, 2, 7} {
			if to := (i + step) % n; to != i {
				r.Links = append(r.Links, vnet.VirtualLink{
					Name: fmt.Sprintf("l%d-%d", i, step), Ends: [2]string{r.Nodes[i].Name, r.Nodes[to].Name},
					Bandwidth: [2]vnet.Bandwidth{vnet.Static(rate), vnet.Static(rate)},
				})
			}
		}
	}
	return r
}

// attack puts one large question after another.
func (s *server) attack(ctx context.Context, large []json.RawMessage, i int, answered func(ms float64)) {
	c := s.as(mallory)
	defer c.CloseIdleConnections()
	for ; ctx.Err() == nil; i++ {
		ms, status, err := call(ctx, c, http.MethodPost, "/v1/offers", large[i%len(large)])
		switch {
		case err == nil && status == http.StatusOK:
			answered(ms)
		case ctx.Err() == nil:
			time.Sleep(100 * time.Millisecond) // they ask too often, they say
		}
	}
}

// list lists a tenant's leases, fifty times a second.
func (s *server) list(ctx context.Context, f *figures) {
	c := s.as(alice)
	defer c.CloseIdleConnections()
	for ctx.Err() == nil {
		if ms, status, err := call(ctx, c, http.MethodGet, "/v1/leases", nil); err == nil && status == http.StatusOK {
			f.leases = append(f.leases, ms)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ups admits and releases a small network, again and again.
func (s *server) ups(ctx context.Context, f *figures) error {
	c := s.as(alice)
	defer c.CloseIdleConnections()
	for i := 0; ctx.Err() == nil; i++ {
		r := network(4, 10, vnet.Mbit, false)
		r.Network = vnet.VNetID(fmt.Sprint("small", i))
		ms, status, err := call(ctx, c, http.MethodPost, "/v1/leases", api.Ask{Request: r})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil || status != http.StatusCreated {
			return fmt.Errorf("a small network: status %d, %w", status, err)
		}
		f.up = append(f.up, ms)
		if _, _, err := call(ctx, c, http.MethodDelete, fmt.Sprintf("/v1/leases/uid%d/%s", alice, r.Network), nil); err != nil && ctx.Err() == nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return nil
}

// stages admits a network whose rate changes each second, and says when it began.
func stages(ctx context.Context, client *api.Client, sub vnet.Substrate) (time.Time, error) {
	r := network(2, 10, vnet.Mbit, false)
	r.Network, r.Links = "staged", r.Links[:1]
	r.Nodes[0].Host, r.Nodes[1].Host = sub.Hosts[0].Name, sub.Hosts[1].Name
	for i := range min(*seconds, vnet.MaxStages) {
		rate := vnet.Static(vnet.Rate(2+i%2) * vnet.Mbit)
		r.Stages = append(r.Stages, vnet.Stage{Name: fmt.Sprint("s", i), After: time.Duration(i+1) * time.Second,
			Links: map[string][2]vnet.Bandwidth{r.Links[0].Name: {rate, rate}}})
	}
	admission, err := client.Admit(ctx, r, false)
	return admission.Lease.Window.Start, err
}
