package overlay

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"testing"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Samples are what entries and counters say that are looked up one by one, before
// and after packets and drops, and after an entry came and went; labels are shared
// as long as they hold.
func TestSamplesAreTheEntries(t *testing.T) {
	l := newLab(t)
	l.tunnel("", under4)
	p := l.hosts[0].part
	compare := func(want int) (list []report.Sample) {
		t.Helper()
		list, err := p.Samples(t.Context(), report.Of(demo))
		check1(t, err)
		if len(list) != want {
			t.Fatalf("%d samples of %d entries", len(list), want)
		}
		states, err := report.Tunnels(list)
		check1(t, err)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, got := range states {
			e, ok, err := p.table.entry(uint32(got.VNI))
			check1(t, err)
			c, err := p.table.counts(e.Slot)
			check1(t, err)
			want := report.TunnelState{
				Host: vnet.HostID(p.host.Config.Host), Overlay: p.items[uint32(got.VNI)], State: report.TunnelValid, NextHop: net.HardwareAddr(e.Header[:6]).String(),
				PathMTU: int(e.Mtu), Hits: c.Sent, Bytes: c.SentBytes, Received: c.Received, ReceivedBytes: c.ReceivedBytes, Drops: dropped(c),
			}
			if e.Device == 0 {
				want.State, want.NextHop, want.PathMTU, want.Reason = report.TunnelUnresolved, "", 0, p.nextHops[pathOf(want.Overlay)].reason
			}
			if !ok || !reflect.DeepEqual(got, want) {
				t.Errorf("the sample says\n%+v, the entry\n%+v", got, want)
			}
		}
		return list
	}
	l.ping(inner(1))
	first := compare(1)[0]
	if first.Value(report.Sent, report.Packets) == 0 || first.State != report.TunnelValid {
		t.Errorf("after packets there is %+v", first)
	}
	second := compare(1)[0]
	if reflect.ValueOf(first.Labels).Pointer() != reflect.ValueOf(second.Labels).Pointer() {
		t.Error("equal labels are made anew")
	}
	other := item(0, "", under4)
	other.VNI, other.Link = number+1, "n1-n3"
	check1(t, p.Do(context.Background(), plan.Step{Op: plan.Add, Item: other}))
	compare(2)
	check1(t, p.Do(context.Background(), plan.Step{Op: plan.Delete, Item: other}))
	compare(1)
	l.ip(l.hosts[1].Namespace, "link", "set", wire, "down")
	l.until("no carrier", func(e overlayEntry) bool { return e.Device == 0 })
	_, _ = l.try(l.hosts[0].node, "ping", "-c3", "-i0.01", "-W0.1", inner(1))
	if got := compare(1)[0]; got.State != report.TunnelUnresolved || got.Why == "" {
		t.Errorf("without a way there is %s", fmt.Sprint(got))
	}
}
