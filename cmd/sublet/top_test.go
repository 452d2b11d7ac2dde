package main

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// loadSample is one of a direction of link a-b on a host at a second.
func loadSample(host vnet.HostID, way string, second int, enters bool, packets, bytes, dropped uint64) report.Sample {
	s := report.Sample{
		Host: host, Kind: plan.KindVxLink, Lease: vnet.LeaseID{Tenant: "alice", Network: "net"},
		At:     time.Unix(1000+int64(second), 0),
		Labels: map[string]string{report.LabelLink: "a-b", report.LabelDirection: way, report.LabelEnters: strconv.FormatBool(enters)},
	}
	s.Count(report.Entered, report.Packets, packets)
	s.Count(report.Entered, report.Bytes, bytes)
	s.CountBy(report.Dropped, map[string]uint64{"queue": dropped})
	return s
}

func TestLoads(t *testing.T) {
	all := make(loads)
	for _, s := range []report.Sample{
		loadSample("h1", "0", 0, true, 1000, 1_000_000, 5),
		loadSample("h2", "0", 0, false, 0, 0, 0),
		loadSample("h2", "1", 0, true, 10, 1000, 0),
		loadSample("h1", "0", 2, true, 3000, 3_500_400, 5), // 1000 packets, 10.0016 Mbit a second
		loadSample("h2", "0", 2, false, 0, 0, 8),
		loadSample("h2", "1", 2, true, 4, 400, 0), // built anew
	} {
		all.take(s)
	}
	rows := loadRows(all.views())
	if len(rows) != 2 {
		t.Fatalf("%q", rows)
	}
	for i, want := range [][]string{
		{"net", "alice", "a-b", "->", "10 Mbit", "1000", "4", "0.4%"},
		{"net", "alice", "a-b", "<-", "0 kbit", "0", "0", "-"},
	} {
		for j := range want {
			if rows[i][j] != want[j] {
				t.Errorf("row %d has %q, not %q", i, rows[i], want)
			}
		}
	}
	var out bytes.Buffer
	a := &app{out: &out, format: "json"}
	if err := a.printLoads(all, true); err != nil {
		t.Fatal(err)
	}
	wantForm(t, "loads", out.Bytes())
	all.take(loadSample("h1", "0", 60, true, 3000, 3_500_400, 5))
	if all.forget(); len(all) != 1 {
		t.Errorf("%d directions are shown, of which one is long gone", len(all))
	}
	all.take(report.Sample{Kind: report.KindLease, Lease: vnet.LeaseID{Tenant: "alice", Network: "net"}, State: report.State(vnet.Ended)})
	if len(all) != 0 {
		t.Errorf("a network that ended is still shown: %v", all)
	}
}
