package server

import (
	"context"
	"fmt"
	"testing"

	"sublet/lease/api"
	"sublet/vnet"
)

// star is a request of n nodes around one router.
func star(name string, n int) vnet.Request {
	req := vnet.Request{Network: vnet.VNetID(name)}
	req.Routers = []vnet.VirtualNode{{Name: "r"}}
	for i := range n {
		node := fmt.Sprint("n", i)
		req.Nodes = append(req.Nodes, vnet.VirtualNode{Name: node, CPU: 10, Memory: vnet.MiB})
		req.Links = append(req.Links, vnet.VirtualLink{Ends: [2]string{node, "r"},
			Bandwidth: [2]vnet.Bandwidth{vnet.Static(vnet.Mbit), vnet.Static(vnet.Mbit)}})
	}
	return req
}

// manyHosts hang on one switch.
func manyHosts(n int) vnet.Substrate {
	sub := vnet.Substrate{Switches: []string{"s"}}
	for i := range n {
		name := fmt.Sprint("h", i)
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(name), CPU: 64 * vnet.Core, Memory: 64 * vnet.GiB})
		port := vnet.Port{Interface: "p0", Address: addr(fmt.Sprintf("192.0.2.%d", i+1))}
		sub.Links = append(sub.Links, vnet.SubstrateLink{Ends: [2]string{name, "s"}, Capacity: 10 * vnet.Gbit, Ports: [2]vnet.Port{port}})
	}
	return sub
}

func TestThousandNodes(t *testing.T) {
	r := newRigOn(t, manyHosts(1))
	r.agents()
	ctx, c := within(t), api.NewClient(r.socket())
	defer c.Close()
	a := must[api.Admission](t)(c.Admit(ctx, star("big", 1000), false))
	if l := must[vnet.Lease](t)(c.WaitReady(ctx, a.Lease.ID())); l.State != vnet.Running || len(l.Rates) != 1000 {
		t.Errorf("state %s (%s), %d rates", l.State, l.Message, len(l.Rates))
	}
}

// BenchmarkAdmit measures an admission, decided, answered and stored.
func BenchmarkAdmit(b *testing.B) {
	for _, size := range []struct{ hosts, nodes int }{{2, 2}, {100, 50}, {1, 1000}} {
		b.Run(fmt.Sprintf("hosts=%d/nodes=%d", size.hosts, size.nodes), func(b *testing.B) {
			r := newRigOn(b, manyHosts(size.hosts))
			r.agents()
			ctx, c := context.Background(), api.NewClient(r.socket())
			defer c.Close()
			i := 0
			for b.Loop() {
				i++
				a, err := c.Admit(ctx, star(fmt.Sprint("n", i), size.nodes), false)
				if err == nil {
					b.StopTimer()
					if _, err = c.Release(ctx, a.Lease.ID()); err == nil {
						err = c.WaitGone(ctx, a.Lease.ID())
					}
					b.StartTimer()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
