package web

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// views of the page, one of each kind.
var views = []string{"map", "networks", "network/tenant03/net0003", "calendar", "events", "request"}

// cost is what a view took to come, in milliseconds.
type cost struct {
	first float64 // until the browser had painted something
	drawn float64 // until the view was painted
	own   float64 // processor time of the page's thread for it
}

// costOf opens a view in a new page, with nothing kept of a former one.
func costOf(t testing.TB, tab context.Context, address, view string) cost {
	t.Helper()
	do(t, tab, chromedp.Navigate("about:blank"))
	before := threadTime(t, tab)
	visit(t, tab, address, view)
	after := threadTime(t, tab)
	return cost{
		first: value[float64](t, tab, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"),
		drawn: value[float64](t, tab, "performance.getEntriesByName('drawn')[0].startTime"),
		own:   1000 * (after - before),
	}
}

// threadTime is the processor time of the page's thread so far, in seconds.
func threadTime(t testing.TB, tab context.Context) float64 {
	t.Helper()
	if _, err := chromedp.Call(tab, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		t.Fatal(err)
	}
	found, err := chromedp.Call(tab, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	t.Fatal("the browser does not say how long its tasks take")
	return 0
}

// BenchmarkPaint: each view with 200 hosts and 1,000 leases, from nothing.
func BenchmarkPaint(b *testing.B) {
	for _, view := range views {
		b.Run(view, func(b *testing.B) {
			tab, address := browse(b, newCrowd(200, 1000, markup))
			var sum cost
			for b.Loop() {
				c := costOf(b, tab, address, view)
				sum = cost{sum.first + c.first, sum.drawn + c.drawn, sum.own + c.own}
			}
			n := float64(b.N)
			b.ReportMetric(0, "ns/op") // that is of the browser's control
			b.ReportMetric(sum.first/n, "first-ms")
			b.ReportMetric(sum.drawn/n, "drawn-ms")
			b.ReportMetric(sum.own/n, "own-ms")
		})
	}
}
