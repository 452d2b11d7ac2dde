package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

const wire = `
hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
links:
  - {ends: [h1, h2], capacity: 1Gbit, latency: 1ms}
`

const heavy = `
network: heavy
window: {for: 3h}
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links: [{ends: [a, b], min: 1500Mbit}]
`

// TestOffersWithoutAServer asks an empty substrate of a file.
func TestOffersWithoutAServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "substrate.yaml")
	if err := os.WriteFile(path, []byte(wire), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := sublet(t, heavy, "offers", "-", "--substrate", path)
	if code != exitRefused || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"heavy would be refused:", "h1-h2 towards h2 offers 1Gbit to leases", "minimum", "min of a-b 1Gbit instead of 1500Mbit", "refused"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	_, out, _ = sublet(t, heavy, "offers", "-", "--substrate", path, "-o", "json")
	var p api.Proposal
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.Admitted || p.Refusal == nil || len(p.Refusal.Offers) != 2 || len(p.Calendar.Loads) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
	code, out, _ = sublet(t, strings.Replace(heavy, "1500", "500", 1), "offers", "-", "--substrate", path)
	if code != exitDone || !strings.Contains(out, "heavy would be admitted") || !strings.Contains(out, "as asked") {
		t.Errorf("it would be admitted:\n%s", out)
	}
}

// TestPicture: an hour of four fills a quarter of the row, half of a link half
// of the height, and what is booked for less than a cell is still seen.
func TestPicture(t *testing.T) {
	start := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	p := picture{window: vnet.Window{Start: start, End: at(240)}}
	p.span("asked", vnet.Window{Start: at(60), End: at(120)}, "refused")
	p.load(vnet.Load{Link: "wire", From: "h1", To: "h2", Leasable: vnet.Gbit, Steps: []vnet.LoadStep{
		{At: start}, {At: at(60), Booked: 500 * vnet.Mbit, Leases: 2}, {At: at(120)}, {At: at(238), Booked: vnet.Gbit}, {At: at(239)},
	}})
	lines := strings.Split(p.String(), "\n")
	quarter := cells / 4
	for i, want := range []string{
		"asked      |" + strings.Repeat(" ", quarter) + strings.Repeat("=", quarter) + strings.Repeat(" ", 2*quarter) + "| refused",
		"wire to h2 |" + strings.Repeat(" ", quarter) + strings.Repeat("▄", quarter) + strings.Repeat(" ", 2*quarter-1) + "█| up to 1 Gbit of 1 Gbit",
	} {
		if lines[i+1] != want {
			t.Errorf("got  %s\nwant %s", lines[i+1], want)
		}
	}
}

// TestPictureOfHosts: processors and memory have a row each, and an exclusive
// host is not taken for an empty one.
func TestPictureOfHosts(t *testing.T) {
	start := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	p := picture{window: vnet.Window{Start: start, End: at(240)}}
	p.host(vnet.HostLoad{Host: "h1", CPU: 4 * vnet.Core, Memory: 4 * vnet.GiB, Steps: []vnet.HostStep{
		{At: start}, {At: at(60), CPU: 2 * vnet.Core, Memory: 4 * vnet.GiB}, {At: at(120), Exclusive: true}, {At: at(180)},
	}})
	lines := strings.Split(p.String(), "\n")
	gap := strings.Repeat(" ", cells/4)
	for i, want := range []string{
		"h1 cpu    |" + gap + strings.Repeat("▄", cells/4) + strings.Repeat("x", cells/4) + gap + "| up to 2 of 4 cores; x: exclusive",
		"h1 memory |" + gap + strings.Repeat("█", cells/4) + strings.Repeat("x", cells/4) + gap + "| up to 4GiB of 4GiB; x: exclusive",
	} {
		if lines[i+1] != want {
			t.Errorf("got  %s\nwant %s", lines[i+1], want)
		}
	}
}
