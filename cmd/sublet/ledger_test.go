package main

import (
	"bytes"
	"encoding/csv"
	"testing"
	"time"

	"sublet/vnet"
)

// A spreadsheet gets one line for each record, every column in each.
func TestLedgerAsCSV(t *testing.T) {
	at := time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	a := app{out: &out, format: "csv"}
	err := a.printLedger([]vnet.Record{
		{Serial: 7, Tenant: "alice", Network: "net", State: vnet.Ended, Admitted: at, Start: at, Ended: at.Add(time.Hour),
			Why: `lost: link "a", link b`, Nodes: 2, Bandwidth: 5 * vnet.Mbit, Used: vnet.Cost{Total: 1.5e9}, Verdict: "kept"},
		{Serial: 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(lines) != 3 {
		t.Fatalf("%v: %v", lines, err)
	}
	got := make(map[string]string)
	for i, name := range lines[0] {
		got[name] = lines[1][i]
	}
	for name, want := range map[string]string{
		"serial": "7", "tenant": "alice", "why": `lost: link "a", link b`, "ended": "2027-03-01T09:00:00Z", "end": "",
		"bandwidth_bps": "5000000", "used_total": "1500000000", "verdict": "kept",
	} {
		t.Run(name, func(t *testing.T) {
			if got[name] != want {
				t.Errorf("%s is %q, not %q", name, got[name], want)
			}
		})
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{"": {}, "30d": now.AddDate(0, 0, -30), "2027-01-01T00:00:00Z": time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)} {
		t.Run(text, func(t *testing.T) {
			if got, err := ago("--from", text, now); err != nil || !got.Equal(want) {
				t.Errorf("%q is %s, %v", text, got, err)
			}
		})
	}
	if _, err := ago("--from", "yesterday", now); exitCode(err) != exitInput {
		t.Errorf("yesterday: %v", err)
	}
}
