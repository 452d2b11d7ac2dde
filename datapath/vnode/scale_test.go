package vnode

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

// TestScale reports what nodes cost; SUBLET_SCALE sets how many.
func TestScale(t *testing.T) {
	p, _ := newPart(t)
	n, err := strconv.Atoi(os.Getenv("SUBLET_SCALE"))
	if err != nil {
		n = 20
	}
	each := func(op plan.Op, workers int) {
		start := time.Now()
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() {
				for i := w; i < n; i += workers {
					item := plan.VNode{Lease: demo, Node: fmt.Sprintf("n%d", i), Owner: 1000, CPU: 100, Memory: 64 * vnet.MiB}
					if err := p.Do(context.Background(), plan.Step{Op: op, Item: item}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		t.Logf("%s: %.2f ms a node", op, float64(time.Since(start).Microseconds())/float64(n)/1e3)
	}
	each(plan.Add, 2)
	start := time.Now()
	if got := len(plan.Of[plan.VNode](observe(t, p))); got != n {
		t.Errorf("observed %d nodes of %d", got, n)
	}
	t.Logf("observe: %v", time.Since(start))
	each(plan.Delete, 2)
}
