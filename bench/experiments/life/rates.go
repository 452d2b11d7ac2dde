package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sublet/bench/harness"
	"sublet/vnet"
)

// pairs are the same links between nodes of each kind.
const pairs = `network: pairs
nodes:
  - {name: n1}
  - {name: n2}
  - {name: c1, image: ` + imageFile + `}
  - {name: c2, image: ` + imageFile + `}
links:
  - {name: rate-n, ends: [n1, n2], rate: 100Mbit}
  - {name: rate-c, ends: [c1, c2], rate: 100Mbit}
  - {name: minimum-n, ends: [n1, n2], min: 30Mbit, max: 60Mbit}
  - {name: minimum-c, ends: [c1, c2], min: 30Mbit, max: 60Mbit}
`

// rates compares what check measures of both kinds in the same run.
func rates(ctx context.Context, exe, dir string) error {
	if *checks == 0 {
		return nil
	}
	found := make(map[string]*[3]harness.Samples) // TCP, UDP and latency by link
	var inTurn [2]turns
	err := inLab(ctx, exe, dir, func(_ string, lab runner) error {
		request := filepath.Join(dir, "pairs.yaml")
		if err := os.WriteFile(request, []byte(pairs), 0o600); err != nil {
			return err
		}
		if _, err := lab("up", request); err != nil {
			return err
		}
		for range *checks {
			text, err := lab("check", "pairs", "-o", "json")
			if err != nil {
				return err
			}
			if err := gather(text, found); err != nil {
				return err
			}
		}
		return takeTurns(lab, &inTurn)
	})
	if err != nil {
		return err
	}
	printRates(found)
	printTurns(inTurn)
	return nil
}

// turns are what nodes of one kind get while nobody else sends: round trips in
// microseconds, and what the hosts count of so many packets there and back.
type turns struct{ trip, sent, delivered harness.Samples }

// perTurn is how many packets are sent there, and answered.
const perTurn = 1000

// takeTurns has both kinds send by the same program, one after the other.
func takeTurns(lab runner, found *[2]turns) error {
	for range 4 * *checks {
		for i, kind := range []string{"n", "c"} {
			sent, delivered, err := counted(lab, "rate-"+kind)
			if err != nil {
				return err
			}
			text, err := lab("exec", "pairs/"+kind+"1", "--", "busybox", "ping", "-q", "-c", fmt.Sprint(perTurn), "-i", "0.002", kind+"2")
			if err != nil {
				return err
			}
			trip, err := roundTrip(text)
			if err != nil {
				return err
			}
			sentNow, deliveredNow, err := counted(lab, "rate-"+kind)
			if err != nil {
				return err
			}
			f := &found[i]
			f.trip, f.sent, f.delivered = append(f.trip, trip), append(f.sent, sentNow-sent), append(f.delivered, deliveredNow-delivered)
		}
	}
	return nil
}

// counted is what hosts have counted of a link, in both directions.
func counted(lab runner, link string) (sent, delivered float64, err error) {
	text, err := lab("leases", "pairs", "-o", "json")
	if err != nil {
		return 0, 0, err
	}
	var leases []struct {
		Links []struct {
			Name    string
			Traffic struct {
				Packets   float64
				Delivered float64 `json:"delivered_packets"`
			}
		}
	}
	if err := json.Unmarshal(text, &leases); err != nil {
		return 0, 0, err
	}
	for _, l := range leases {
		for _, k := range l.Links {
			if k.Name == link {
				sent, delivered = sent+k.Traffic.Packets, delivered+k.Traffic.Delivered
			}
		}
	}
	return sent, delivered, nil
}

func printTurns(found [2]turns) {
	a, b := found[0], found[1]
	t := harness.Table{Head: []string{"the same links in turn", "namespaces", "containers", "ratio, round by round"}}
	for _, row := range []struct {
		what, verb string
		a, b       harness.Samples
	}{
		{"round trip, mean of 1,000, us", "%.1f", a.trip, b.trip},
		{"packets counted as sent, of 2,000", "%.0f", a.sent, b.sent},
		{"packets counted as delivered, of 2,000", "%.0f", a.delivered, b.delivered},
	} {
		t.Add(row.what, row.a.Format(row.verb), row.b.Format(row.verb), row.b.Over(row.a).Format("%.4f"))
	}
	t.Print(os.Stdout)
}

// gather adds what one check measured.
func gather(text []byte, found map[string]*[3]harness.Samples) error {
	var v vnet.Verdict
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	for _, l := range v.Links {
		if found[l.Name] == nil {
			found[l.Name] = new([3]harness.Samples)
		}
		for i, figure := range []float64{float64(l.TCP) / 1e6, float64(l.UDP) / 1e6, l.Latency} {
			found[l.Name][i] = append(found[l.Name][i], figure)
		}
	}
	return nil
}

func printRates(found map[string]*[3]harness.Samples) {
	t := harness.Table{Head: []string{"the same links at once", "namespaces", "containers", "ratio of the medians"}}
	for _, link := range []string{"rate", "minimum"} {
		a, b := found[link+"-n"], found[link+"-c"]
		if a == nil || b == nil {
			continue
		}
		for i, what := range []string{"TCP, Mbit/s", "UDP, Mbit/s", "latency, us"} {
			t.Add(link+", "+what, a[i].Format("%.2f"), b[i].Format("%.2f"), fmt.Sprintf("%.4f", b[i].Median()/a[i].Median()))
		}
	}
	t.Print(os.Stdout)
}
