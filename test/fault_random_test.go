package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// randomKills is how many deploys, and as many releases, each of the labs of
// TestSoakRandomKills goes through.
var randomKills = map[string]int{"demo": 34, "triangle": 33, "star:3": 33}

// seedVariable replays a run.
const seedVariable = "SUBLET_TEST_SEED"

// seed is printed, and stated to replay.
func seed(t *testing.T) uint64 {
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("replay with %s=%d", seedVariable, n)
	return n
}

// Server and agents are killed at random points of random deploys and
// releases: what comes of it always equals the plan, and nothing is left.
func TestSoakRandomKills(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for substrate, rounds := range randomKills {
		t.Run(substrate, func(t *testing.T) {
			t.Parallel()
			s := newSupervisor(t, substrate)
			r := &randomly{supervisor: s, rand: rand.New(rand.NewPCG(n, uint64(len(substrate))))}
			r.hosts = r.hostNames()
			s.settled()
			r.before = s.machine(r.hosts...)
			if testing.Short() {
				rounds /= 10
			}
			for round := range rounds {
				r.round(round)
				if t.Failed() {
					t.Fatalf("stopped in round %d", round)
				}
			}
			t.Logf("%d kills of the server, %d of agents", r.kills[0], r.kills[1])
		})
	}
}

// randomly makes random networks and kills.
type randomly struct {
	*supervisor
	rand   *rand.Rand
	hosts  []string
	before []string
	kills  [2]int // of the server, of agents
}

func (s *supervisor) hostNames() []string {
	s.t.Helper()
	hosts, err := s.api.Hosts(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, h := range hosts {
		names = append(names, string(h.Name))
	}
	return names
}

// round takes one or two networks up and down.
func (r *randomly) round(number int) {
	r.t.Helper()
	requests := make([]vnet.Request, 1+r.rand.IntN(2))
	for i := range requests {
		requests[i] = r.network(fmt.Sprintf("n%d-%d", number, i))
	}
	r.disturbed(func() {
		for _, request := range requests {
			r.admitSurely(request)
		}
	})
	for _, request := range requests {
		r.ready(idOf(request))
	}
	r.asPlanned(r.hosts...)
	for _, request := range requests {
		r.connected(request)
	}
	r.disturbed(func() {
		for _, request := range requests {
			r.releaseSurely(idOf(request))
		}
	})
	for _, request := range requests {
		r.gone(idOf(request))
	}
	r.asPlanned(r.hosts...)
	eventually(r.t, 5*time.Second, func() error {
		if diff := difference(r.before, r.machine(r.hosts...)); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// connected checks that every link carries packets.
func (r *randomly) connected(request vnet.Request) {
	r.t.Helper()
	l, err := r.api.Lease(r.t.Context(), idOf(request))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, link := range request.Links {
		from, to := link.Ends[0], link.Ends[1]
		host := string(l.Mapping.Nodes[from])
		address := r.addressOf(host, idOf(request), to)
		out, err := r.nodeCommand(host, idOf(request), from, "ping", "-c", "1", "-w", "3", "-q", address).CombinedOutput()
		if err != nil {
			r.t.Errorf("%s does not reach %s by %s of %s: %v\n%s", from, to, link.Name, request.Network, err, out)
		}
	}
}

// disturbed does something while processes are killed and started again.
func (r *randomly) disturbed(do func()) {
	var wg sync.WaitGroup
	for range 1 + r.rand.IntN(2) {
		victim, kind := server, 0
		if r.rand.IntN(3) > 0 {
			victim, kind = agentOf(r.hosts[r.rand.IntN(len(r.hosts))]), 1
		}
		r.kills[kind]++
		wait, rest := r.moment(), r.moment()
		wg.Go(func() {
			time.Sleep(wait)
			r.restart(victim, rest)
		})
	}
	do()
	wg.Wait()
}

// moment is short, mostly: a deploy takes some ten milliseconds.
func (r *randomly) moment() time.Duration {
	return time.Duration(r.rand.ExpFloat64() * float64(40*time.Millisecond))
}

// admitSurely asks until the lease is there: a server that was killed may have
// admitted it and not said so.
func (r *randomly) admitSurely(request vnet.Request) {
	r.t.Helper()
	r.waits("admitted", func(ctx context.Context) error {
		if _, err := r.api.Lease(ctx, idOf(request)); !errors.Is(err, api.ErrNotFound) {
			return err
		}
		_, err := r.api.Admit(ctx, request, false)
		return err
	})
}

func (r *randomly) releaseSurely(id vnet.LeaseID) {
	r.t.Helper()
	r.waits("released", func(ctx context.Context) error {
		l, err := r.api.Lease(ctx, id)
		if err != nil || l.State == vnet.Ended {
			return err
		}
		_, err = r.api.Release(ctx, id)
		return err
	})
}

// network is a random tree of nodes and routers with some links more. Every
// other network leaves its nodes' hosts to the server.
func (r *randomly) network(name string) vnet.Request {
	request := vnet.Request{Network: vnet.VNetID(name), Tenant: "root"}
	pinned, protocol := r.rand.IntN(2) == 0, vnet.ProtocolStatic
	if r.rand.IntN(4) == 0 && haveFRR() {
		protocol = vnet.ProtocolOSPF
	}
	var all []string
	for i := range 1 + r.rand.IntN(6) {
		n := vnet.VirtualNode{Name: fmt.Sprintf("v%d", i)}
		if pinned {
			n.Host = vnet.HostID(r.hosts[r.rand.IntN(len(r.hosts))])
		}
		all = append(all, n.Name)
		if r.rand.IntN(3) == 0 {
			n.Protocol = protocol
			request.Routers = append(request.Routers, n)
			continue
		}
		if r.rand.IntN(2) == 0 {
			n.CPU, n.Memory = 100, 16<<20
		}
		request.Nodes = append(request.Nodes, n)
	}
	for i := 1; i < len(all)+r.rand.IntN(2); i++ {
		a, b := all[i%len(all)], all[r.rand.IntN(min(i, len(all)))]
		if a == b {
			continue
		}
		l := vnet.VirtualLink{Name: fmt.Sprintf("l%d", i), Ends: [2]string{a, b}}
		for d := range l.Bandwidth {
			l.Bandwidth[d] = r.bandwidth()
		}
		request.Links = append(request.Links, l)
	}
	return request
}

func (r *randomly) bandwidth() vnet.Bandwidth {
	switch rate := vnet.Rate(1+r.rand.IntN(20)) * vnet.Mbit; r.rand.IntN(3) {
	case 0:
		return vnet.Bandwidth{}
	case 1:
		return vnet.Bandwidth{Max: rate}
	default:
		return vnet.Bandwidth{Min: rate, Max: 2 * rate}
	}
}
