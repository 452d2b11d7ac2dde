package vxlink

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// TestScale reports what links cost; SUBLET_SCALE sets how many.
func TestScale(t *testing.T) {
	b := newBench(t)
	n, err := strconv.Atoi(os.Getenv("SUBLET_SCALE"))
	if err != nil {
		n = 20
	}
	p, h := b.host("h1")
	b.node(h, "hub")
	for i := range n {
		b.node(h, fmt.Sprintf("s%d", i))
	}
	link := func(i int) plan.VxLink {
		l := plan.VxLink{Lease: demo, Link: fmt.Sprintf("x%d", i), Index: i}
		for e, node := range []string{"hub", fmt.Sprintf("s%d", i)} {
			l.Ends[e] = plan.End{Rate: 100 * vnet.Mbit, Port: port(e, 1-e, 0)}
			l.Ends[e].Port.Namespace = plan.Namespace(demo, node)
		}
		l.Ends[0].Port.Interface = fmt.Sprintf("eth%d", i)
		return l
	}
	each := func(what string, op plan.Op, workers int) {
		start := time.Now()
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() {
				for i := w; i < n; i += workers {
					if err := p.Do(context.Background(), plan.Step{Op: op, Item: link(i)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		t.Logf("%s: %.2f ms a link", what, float64(time.Since(start).Microseconds())/float64(n)/1e3)
	}
	each("add", plan.Add, 2)
	start := time.Now()
	if got := len(plan.Of[plan.VxLink](observe(t, p))); got != n {
		t.Errorf("observed %d links of %d", got, n)
	}
	t.Logf("observe: %v", time.Since(start))
	each("delete", plan.Delete, 64)
}
