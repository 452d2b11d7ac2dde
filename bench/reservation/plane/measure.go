package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/lease"
	"sublet/lease/store"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
	"sublet/vnet/topology"
)

// costs are processor times of single operations, and sizes of a lease.
type costs struct {
	admit, open, report, request, load, taken, restore, first, remade time.Duration
	elected                                                           time.Duration // with reading what is stored
	leaseBytes, planBytes, heap, links                                float64
}

func (c costs) print() {
	table := harness.Table{Head: []string{"operation", "costs"}}
	for _, row := range []struct {
		what string
		is   any
	}{
		{"deciding on a request", c.admit}, {"opening a lease: rates and plans", c.open}, {"a report without news, to the book", c.report},
		{"a request over TLS, both ends", c.request}, {"reading a lease and its plans from the store", c.load},
		{"a lease and its plans from a follower's copy", c.taken}, {"all: elected, and all taken from the copy", c.elected},
		{"a lease in a book that is made anew", c.restore}, {"its first tick there, plans left as stored", c.first}, {"its plans made again, in the background", c.remade}, {"a lease in the store, bytes", c.leaseBytes},
		{"its part of hosts' plans, bytes", c.planBytes}, {"a lease in memory, bytes", c.heap}, {"links of a lease", c.links},
	} {
		table.Add(row.what, row.is)
	}
	table.Print(os.Stdout)
}

// epoch is when everything is asked for.
var epoch = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)

func measure(ctx context.Context) (c costs, err error) {
	sub, known, err := topology.Named(*substrate)
	if !known || err != nil {
		return c, errors.Join(fmt.Errorf("no substrate %q", *substrate), err)
	}
	topology.Sizes{CPU: 64 * vnet.Core, Memory: 256 * vnet.GiB, Capacity: 100 * vnet.Gbit}.Apply(&sub)
	before := inUse()
	book := lease.New(sub)
	if err := book.Tick(epoch); err != nil {
		return c, err
	}
	admitted, err := c.fill(book)
	if err != nil {
		return c, err
	}
	spent := processor()
	if err := book.Tick(epoch.Add(time.Second)); err != nil { // all of them open
		return c, err
	}
	c.open = (processor() - spent) / time.Duration(admitted)
	c.heap = float64(inUse()-before) / float64(admitted)
	if err := c.reports(book); err != nil {
		return c, err
	}
	if c.request, err = requests(); err != nil {
		return c, err
	}
	return c, c.stored(ctx, book.Changes(), sub)
}

// fill books leases that begin a second later.
func (c *costs) fill(book *lease.Book) (admitted int, err error) {
	r := rand.New(rand.NewPCG(1, 0))
	spent, links := processor(), 0
	for i := range *measured {
		request := requestOf(r, i)
		_, err := book.Admit(epoch, request, 1000)
		var refused *vnet.Rejection
		if errors.As(err, &refused) {
			continue
		}
		if err != nil {
			return 0, err
		}
		admitted++
		links += len(request.Links)
	}
	if admitted == 0 {
		return 0, errors.New("nothing fits")
	}
	c.admit = (processor() - spent) / time.Duration(admitted)
	c.links = float64(links) / float64(admitted)
	return admitted, nil
}

// requestOf is a ring of 2 to 10 nodes with minima.
func requestOf(r *rand.Rand, i int) vnet.Request {
	request := vnet.Request{Network: vnet.VNetID(fmt.Sprintf("n%d", i)), Tenant: vnet.TenantID(fmt.Sprintf("t%d", i%1000)), Start: epoch.Add(time.Second)}
	nodes := 2 + r.IntN(9)
	for n := range nodes {
		request.Nodes = append(request.Nodes, vnet.VirtualNode{Name: fmt.Sprintf("v%d", n), CPU: vnet.Core / 20, Memory: 64 * vnet.MiB})
		if n > 0 {
			least := vnet.Bandwidth{Min: vnet.Mbit, Max: 2 * vnet.Mbit}
			request.Links = append(request.Links, vnet.VirtualLink{Ends: [2]string{fmt.Sprintf("v%d", n-1), fmt.Sprintf("v%d", n)}, Bandwidth: [2]vnet.Bandwidth{least, least}})
		}
	}
	return request
}

// reports measures hosts that say again what they said.
func (c *costs) reports(book *lease.Book) error {
	const times = 20_000
	plans := book.Plans()
	for turn := range 2 {
		spent, n := processor(), 0
		for n < times {
			for host, p := range plans {
				if err := book.Report(epoch.Add(2*time.Second), report.Report{Host: host, Revision: p.Revision}); err != nil {
					return err
				}
				if n++; turn == 0 && n >= len(plans) || n >= times {
					break
				}
			}
			if turn == 0 {
				break
			}
		}
		c.report = (processor() - spent) / time.Duration(n)
	}
	return nil
}

// requests measures a small request and its answer over a connection with TLS.
func requests() (time.Duration, error) {
	const times = 5000
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	client, body := server.Client(), make([]byte, 1000)
	spent := processor()
	for range times {
		answer, err := client.Post(server.URL, "application/json", bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		if answer.Body.Close(); err != nil {
			return 0, err
		}
	}
	return (processor() - spent) / times, nil
}

// stored measures a store with all that the book has.
func (c *costs) stored(ctx context.Context, all lease.Changes, sub vnet.Substrate) error {
	all.Substrate = &sub
	for i := range all.Leases {
		all.Leases[i].State = vnet.Running // their hosts have what plans say
	}
	n := float64(len(all.Leases))
	var err error
	if c.leaseBytes, err = bytesOf(all.Leases, n); err != nil {
		return err
	}
	if c.planBytes, err = bytesOf(all.Plans, n); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "plane")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	etcd, err := store.Open(ctx, store.Config{Dir: dir, Prefix: "/other"})
	if err != nil {
		return err
	}
	defer etcd.Close()
	return c.takenOver(ctx, "unix://"+filepath.Join(dir, store.SocketName), all)
}

// takenOver measures a server that takes over from another one.
func (c *costs) takenOver(ctx context.Context, at string, all lease.Changes) error {
	join := func(name string) (*store.Cluster, error) {
		return store.Join(ctx, store.Config{Endpoints: []string{at}, Name: name})
	}
	one, err := join("one")
	if err != nil {
		return err
	}
	defer one.Close()
	if err := one.AddServer(ctx, store.Server{Name: "two"}, ""); err != nil {
		return err
	}
	two, err := join("two")
	if err != nil {
		return err
	}
	defer two.Close()
	first, err := one.Lead(ctx)
	if err != nil {
		return err
	}
	if err := first.Save(ctx, all); err != nil {
		return err
	}
	if _, err := first.Load(ctx); err != nil { // ends its copy
		return err
	}
	n := float64(len(all.Leases))
	spent := processor() // the clock would count what others on this machine do
	if _, err := first.Load(ctx); err != nil {
		return err
	}
	c.load = (processor() - spent) / time.Duration(n)
	leads := make(chan error, 1)
	var second *store.Store
	go func() {
		var err error
		second, err = two.Lead(ctx)
		leads <- err
	}()
	time.Sleep(*copying)
	began := time.Now()
	if err := errors.Join(first.Close(), <-leads); err != nil {
		return err
	}
	defer second.Close()
	spent = processor()
	state, err := second.Load(ctx)
	if err != nil {
		return err
	}
	c.taken, c.elected = (processor()-spent)/time.Duration(n), time.Since(began)
	spent = processor()
	book, err := lease.Restore(epoch.Add(2*time.Second), state)
	if err != nil {
		return err
	}
	c.restore = (processor() - spent) / time.Duration(n)
	spent = processor()
	book.RemakeLater(epoch.Add(2 * time.Second))
	if err := book.Tick(epoch.Add(2 * time.Second)); err != nil {
		return err
	}
	c.first = (processor() - spent) / time.Duration(n)
	spent = processor()
	for more := true; more; {
		if more, err = book.Remake(128); err != nil {
			return err
		}
	}
	c.remade = (processor() - spent) / time.Duration(n)
	return nil
}

func bytesOf[T vnet.Lease | plan.Host](list []T, by float64) (float64, error) {
	text, err := json.Marshal(list)
	return float64(len(text)) / by, err
}

// processor is the processor time that this process has used.
func processor() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
