package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const helloScenario = "../../examples/vxswitch/hello.yaml"

func validate(t *testing.T, schema, text string) {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../../docs/schema/" + schema)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v in %.200s", schema, err, text)
	}
}

// What is printed and written is what the schemas say.
func TestSimulationMatchesSchemas(t *testing.T) {
	folder := t.TempDir()
	departures, arrivals := filepath.Join(folder, "d.jsonl"), filepath.Join(folder, "a.jsonl")
	code, out, errs := sublet(t, "", "sim", "vxswitch", helloScenario, "-o", "json", "--runs", "2", "--departures", departures, "--arrivals", arrivals)
	if code != exitDone {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	validate(t, "simulation.schema.json", out)
	for _, name := range []string{departures, arrivals} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		n := 0
		for ; lines.Scan(); n++ {
			if n < 20 {
				validate(t, "packet.schema.json", lines.Text())
			}
			if !json.Valid(lines.Bytes()) {
				t.Fatalf("%s line %d: %s", name, n+1, lines.Text())
			}
		}
		if n < 1000 {
			t.Errorf("%s has only %d lines", name, n)
		}
	}
}

// The same scenario and seed give the same bytes, however many runs go at once.
func TestSimulationRepeats(t *testing.T) {
	var first string
	for _, jobs := range []string{"1", "4"} {
		_, out, _ := sublet(t, "", "sim", "vxswitch", helloScenario, "-o", "json", "--jobs", jobs)
		if first == "" {
			first = out
		}
		if out == "" || out != first {
			t.Errorf("with %s jobs it differs", jobs)
		}
	}
	if _, out, _ := sublet(t, "", "sim", "vxswitch", helloScenario, "-o", "json", "--seed", "9"); out == first {
		t.Error("another seed changes nothing")
	}
}

// What was written as arrivals, read as a trace, departs as before.
func TestSimulationReplays(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	if code, _, errs := sublet(t, "", "sim", "vxswitch", helloScenario, "--runs", "1", "--departures", in("first.jsonl"), "--arrivals", in("trace.jsonl")); code != exitDone {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(helloScenario)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "traffic:")
	if err := os.WriteFile(in("again.yaml"), []byte(strings.Replace(head, "runs: 5", "", 1)+"traffic:\n  - trace: trace.jsonl\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := sublet(t, "", "sim", "vxswitch", in("again.yaml"), "--departures", in("second.jsonl")); code != exitDone {
		t.Fatal(errs)
	}
	first, _ := os.ReadFile(in("first.jsonl"))
	second, _ := os.ReadFile(in("second.jsonl"))
	if len(first) == 0 || string(first) != string(second) {
		t.Error("the replay departs differently")
	}
}

// A scenario that does not come out as expected exits 4, a wrong one 2, and
// then nothing is written.
func TestSimulationSaysWhatIsWrong(t *testing.T) {
	text, err := os.ReadFile(helloScenario)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		from, to string
		code     int
		errs     string
	}{
		"expectation":   {"at_most: 0", "at_least: 0.5", exitBroken, ""},
		"unknown field": {"crosspoint:", "crosspoints:", exitInput, "did you mean \"crosspoint\"?"},
		"overbooked":    {"rate: 750Mbit", "rate: 751Mbit", exitInput, "blue"},
		"no scheduler":  {"scheduler: drr", "scheduler: wfq", exitInput, "there are drr, sp, rr, fcfs, lqf"},
		"no figure":     {"measure: loss_packets", "measure: lost_packets", exitInput, "did you mean \"loss_packets\"?"},
		"no duration":   {"duration: 200ms", "duration: 200", exitInput, "is not a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			code, _, errs := sublet(t, strings.Replace(string(text), c.from, c.to, 1), "sim", "vxswitch", "-", "--runs", "1", "--departures", out)
			if code != c.code || !strings.Contains(errs, c.errs) || strings.Count(errs, "\n") > 1 {
				t.Errorf("%s: exit code %d, %q", name, code, errs)
			}
			if _, err := os.Stat(out); code == exitInput && err == nil {
				t.Errorf("%s: a file was written", name)
			}
		})
	}
}

// Figures are drawn in every format.
func TestSimulationPlots(t *testing.T) {
	text, err := os.ReadFile(helloScenario)
	if err != nil {
		t.Fatal(err)
	}
	varied := string(text) + "vary:\n  - switch.scheduler: [drr, sp]\n  - switch.crosspoint: [64KB, 128KB]\nplots:\n  - {x: switch.crosspoint, measure: delay_mean_ns, of: [red, blue]}\n"
	for name, magic := range map[string]string{"p.svg": "<?xml", "p.png": "\x89PNG"} {
		file := filepath.Join(t.TempDir(), name)
		if code, _, errs := sublet(t, varied, "sim", "vxswitch", "-", "--runs", "2", "--plot", file); code != exitDone {
			t.Errorf("%s: exit code %d, %s", name, code, errs)
		}
		if drawn, _ := os.ReadFile(file); !strings.HasPrefix(string(drawn), magic) {
			t.Errorf("%s begins %.20q", name, drawn)
		}
	}
	if _, out, _ := sublet(t, varied, "sim", "vxswitch", "-", "--runs", "2", "--plot", "-"); !strings.Contains(out, "blue sp") || !strings.Contains(out, "┼") {
		t.Errorf("no figure on the terminal: %s", out)
	}
	if code, _, _ := sublet(t, varied, "sim", "vxswitch", "-", "--plot", "p.gif"); code != exitInput {
		t.Errorf("p.gif: exit code %d", code)
	}
}
