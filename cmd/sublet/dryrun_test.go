package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dryRun decides on requests written to files, on two hosts and one link of
// 2 Gbit/s.
func dryRun(t *testing.T, substrate string, requests []string, flags ...string) (int, trialRun, string) {
	t.Helper()
	args := append([]string{"up", "--dry-run", "--substrate", substrate, "-o", "json"}, flags...)
	for _, text := range requests {
		f, err := os.CreateTemp(t.TempDir(), "*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		f.Close()
		args = append(args, f.Name())
	}
	code, out, errs := sublet(t, "", args...)
	var run trialRun
	if code != exitInput || out != "" {
		if err := json.Unmarshal([]byte(out), &run); err != nil {
			t.Fatalf("%v in %q, %s", err, out, errs)
		}
	}
	return code, run, errs
}

// between joins hosts h1 and h2 of the demo by a rate.
func between(name, rate string) string {
	return "network: " + name + "\ntenant: alice\nnodes: [{name: a, host: h1}, {name: b, host: h2}]\nlinks: [{ends: [a, b], rate: " + rate + "}]\n"
}

// What is admitted stays, what is refused says why and what would be admitted,
// and nothing needs a server or root.
func TestDryRun(t *testing.T) {
	code, run, _ := dryRun(t, "demo", []string{between("one", "1500Mbit"), between("two", "800Mbit"), between("three", "500Mbit"), between("one", "8kbit")})
	if code != exitRefused || run.Admitted != 2 || run.Refused != 1 {
		t.Fatalf("exit code %d, %+v", code, run)
	}
	one, two, again := run.Requests[0], run.Requests[1], run.Requests[3]
	if one.State != trialAdmitted || one.Hosts != 2 || one.Mapping.Links["a-b"][0] != "backbone" {
		t.Errorf("%+v", one)
	}
	if two.State != trialRefused || len(two.Offers) == 0 || !strings.Contains(two.why(), "link backbone") {
		t.Errorf("%s", two.why())
	}
	if again.State != trialFailed || !strings.Contains(again.why(), "there is a lease alice/one already") {
		t.Errorf("%+v", again)
	}
}

func TestDryRunTakesTheOffer(t *testing.T) {
	code, run, _ := dryRun(t, "demo", []string{between("one", "1500Mbit"), between("two", "800Mbit")}, "--accept")
	if code != exitDone || run.Admitted != 2 || !strings.Contains(run.Requests[1].why(), "with rate of a-b 500Mbit instead of 800Mbit") {
		t.Errorf("exit code %d, %+v", code, run)
	}
}

// A window that has passed is looked at from where it began.
func TestDryRunInThePast(t *testing.T) {
	code, run, errs := dryRun(t, "demo", []string{"window: {start: 2013-01-19T12:00:00Z, for: 1h}\n" + between("one", "1Gbit")})
	if code != exitDone || run.Time.Year() != 2013 || !strings.Contains(errs, "as if it were 2013-01-19T12:00:00Z") {
		t.Errorf("exit code %d, %+v, %s", code, run, errs)
	}
}

// Every request in the folder of examples fits into the lab of the README, by
// itself and beside all the others.
func TestExamplesFitIntoTheDemo(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	imports, err2 := filepath.Glob("../../examples/import/*")
	if err != nil || err2 != nil || len(files) < 5 || len(imports) < 2 {
		t.Fatal("no examples", err, err2)
	}
	files = append(files, append(imports, "../../examples/ci/network.yaml", "../../examples/vxdl/asymmetric.xml", "../../examples/vxdl/pool.xml")...)
	for _, chosen := range append([][]string{files}, slices.Collect(slices.Chunk(files, 1))...) {
		args := append([]string{"up", "--dry-run", "--substrate", "demo"}, chosen...)
		if code, out, errs := sublet(t, "", args...); code != exitDone {
			t.Errorf("%v: exit code %d\n%s%s", chosen, code, out, errs)
		}
	}
}

func TestDryRunBadInput(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.yaml")
	if err := os.WriteFile(good, []byte(between("one", "1Gbit")), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--dry-run " + good:                               "--dry-run needs a --substrate: a file",
		"--substrate demo " + good:                        "--substrate is for --dry-run",
		"--dry-run --substrate fat-tree:3 " + good:        "3 is not an even number of ports",
		"--dry-run --substrate nonsense " + good:          "no name of a substrate: give a file",
		"--dry-run --substrate demo /nonexistent " + good: "no such file",
		"--dry-run --substrate " + good + " " + good:      "good.yaml:1:1",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, errs := sublet(t, "", append([]string{"up"}, strings.Fields(line)...)...)
			if code != exitInput || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) {
				t.Errorf("%s: exit code %d, %q, %s", line, code, out, errs)
			}
		})
	}
}

// The public VXDL documents go through the whole program on the substrates
// written in the same language, in one run.
func TestDryRunOfSamples(t *testing.T) {
	const folder = "/work/shared/vxdl/samples/"
	requests, err := filepath.Glob(folder + "[0-9].xml")
	if err != nil || len(requests) == 0 {
		t.Skip("no sample documents in ", folder)
	}
	for _, substrate := range []string{"physical-0.xml", "physical-3.xml"} {
		code, out, errs := sublet(t, "", append([]string{"up", "--dry-run", "-o", "json", "--substrate", folder + substrate}, requests...)...)
		var run trialRun
		if err := json.Unmarshal([]byte(out), &run); err != nil || code == exitInput || len(run.Requests) != len(requests) {
			t.Fatalf("%s: exit code %d, %v, %s", substrate, code, err, errs)
		}
		for _, o := range run.Requests {
			if o.State == trialFailed || o.State == trialRefused && len(o.Reasons) == 0 || o.State == trialAdmitted && o.Mapping == nil {
				t.Errorf("%s: %+v", substrate, o)
			}
		}
	}
}

// The counter-offer of what a dry run refuses is admitted when it is asked for
// instead, by a dry run and by offers, however long ago its window began.
func TestDryRunWritesTheOffer(t *testing.T) {
	for _, begins := range []string{"", "window: {start: 2020-01-01T00:00:00Z, for: 1h}\n"} {
		offer := filepath.Join(t.TempDir(), "offer.yaml")
		big := begins + between("big", "9Gbit")
		code, run, errs := dryRun(t, "demo", []string{big}, "--offer", offer)
		if code != exitRefused || run.Refused != 1 {
			t.Fatalf("exit code %d, %+v, %s", code, run, errs)
		}
		text, err := os.ReadFile(offer)
		if err != nil {
			t.Fatal(err)
		}
		if code, run, _ := dryRun(t, "demo", []string{string(text)}); code != exitDone || run.Admitted != 1 {
			t.Errorf("exit code %d of the offer:\n%s", code, text)
		}
		for text, want := range map[string]int{string(text): exitDone, big: exitRefused} {
			if code, out, errs := sublet(t, text, "offers", "-", "--substrate", "demo"); code != want {
				t.Errorf("exit code %d of offers, want %d: %s%s", code, want, out, errs)
			}
		}
	}
}
