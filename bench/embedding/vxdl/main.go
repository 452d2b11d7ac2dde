// Command vxdl takes a hundred requests in VXDL through the whole program in
// one run (sublet up --dry-run), on substrates written in the same language,
// and prints what was admitted, what refused and why. Requests and substrates
// are drawn like the public ones of the language's author: four nodes at
// stated locations, up to six links with a static rate and a bound on latency,
// all for the same four hours; 12 hosts in a full mesh, 6 hosts with 8 links,
// and ten times the 12.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sublet/bench/harness"
)

var (
	samples = flag.String("samples", "", "folder of documents to take instead: requests [0-9]*.xml, substrates physical*.xml")
	seed    = flag.Uint64("seed", 1, "of the documents")
	long    = flag.Bool("long", false, "a row for each request")
)

func main() { harness.Main("embedding/vxdl", run) }

func run(ctx context.Context, exe string) error {
	dir, err := os.MkdirTemp("", "vxdl")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	from := *samples
	if from == "" {
		if from = dir; write(dir, *seed) != nil {
			return errors.New("write the documents: no room")
		}
	}
	requests, _ := filepath.Glob(filepath.Join(from, "[0-9]*.xml"))
	substrates, _ := filepath.Glob(filepath.Join(from, "physical*.xml"))
	t := harness.Table{Head: []string{"substrate", "requests", "admitted", "refused", "failed", "would be with an offer", "with --accept", "s"}}
	for _, substrate := range substrates {
		o, err := dryRun(ctx, exe, substrate, requests)
		if err != nil {
			return err
		}
		took, err := dryRun(ctx, exe, substrate, requests, "--accept")
		if err != nil {
			return err
		}
		t.Add(filepath.Base(substrate), len(o.Requests), o.Admitted, o.Refused, len(o.Requests)-o.Admitted-o.Refused, o.offered(), took.Admitted, o.seconds)
		defer o.explain(filepath.Base(substrate))
	}
	t.Print(os.Stdout)
	return nil
}

// outcome is what the program prints.
type outcome struct {
	Admitted int `json:"admitted"`
	Refused  int `json:"refused"`
	Requests []struct {
		File    string   `json:"file"`
		State   string   `json:"state"`
		Reasons []string `json:"reasons"`
		Offers  []any    `json:"offers"`
	} `json:"requests"`
	seconds float64
}

// dryRun decides on all requests in one run of the program. A refusal is no
// error here.
func dryRun(ctx context.Context, exe, substrate string, requests []string, flags ...string) (*outcome, error) {
	args := append([]string{"up", "--dry-run", "-o", "json", "--substrate", substrate}, flags...)
	c := exec.CommandContext(ctx, exe, append(args, requests...)...)
	var errs bytes.Buffer
	c.Stderr = &errs
	began := time.Now()
	out, err := c.Output()
	var o outcome
	if broken := json.Unmarshal(out, &o); broken != nil {
		return nil, fmt.Errorf("%s: %w, %w\n%s", substrate, err, broken, errs.Bytes())
	}
	o.seconds = time.Since(began).Seconds()
	return &o, nil
}

// offered counts refusals that came with an offer.
func (o *outcome) offered() int {
	n := 0
	for _, r := range o.Requests {
		if r.State == "refused" && len(r.Offers) > 0 {
			n++
		}
	}
	return n
}

// particular are amounts, times and names, which are numbers in these documents.
var particular = regexp.MustCompile(`\d[\w.:+-]*`)

// explain prints why requests were refused: kinds of reasons, or each.
func (o *outcome) explain(substrate string) {
	if *long {
		t := harness.Table{Head: []string{substrate, "result", "why"}}
		for _, r := range o.Requests {
			t.Add(filepath.Base(r.File), r.State, strings.Join(r.Reasons, "; "))
		}
		t.Print(os.Stdout)
		return
	}
	count := make(map[string]int)
	for _, r := range o.Requests {
		kinds := make(map[string]bool)
		for _, reason := range r.Reasons {
			kinds[particular.ReplaceAllString(reason, "#")] = true
		}
		for kind := range kinds {
			count[kind]++
		}
	}
	kinds := make([]string, 0, len(count))
	for kind := range count {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	t := harness.Table{Head: []string{substrate + ": reasons", "requests"}}
	for _, kind := range kinds {
		t.Add(kind, count[kind])
	}
	t.Print(os.Stdout)
}
