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
		return nil
	})
	if err != nil {
		return err
	}
	printRates(found)
	return nil
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
