package scenario

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"sublet/vxswitch/sim"
)

// run runs an experiment on all cores.
func run(t *testing.T, e *Experiment) []*sim.Result {
	t.Helper()
	outcomes := make([][]*sim.Outcome, len(e.Points))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for i := range e.Points {
		p := &e.Points[i]
		outcomes[i] = make([]*sim.Outcome, p.Runs)
		for n := range outcomes[i] {
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				o, err := sim.Run(&p.Scenario, p.Seed+uint64(n), sim.Watch{})
				if err != nil {
					t.Error(err)
				}
				outcomes[i][n] = o
			})
		}
	}
	group.Wait()
	var results []*sim.Result
	for i := range e.Points {
		results = append(results, sim.Combine(&e.Points[i].Scenario, outcomes[i]))
	}
	return results
}

func parseFile(t *testing.T, path string) *Experiment {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Parse(path, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// longOnes take half a minute of simulation each.
var longOnes = []string{"figure-4-6.yaml", "figure-4-14.yaml"}

func TestScenariosOfTheThesis(t *testing.T) { scenarios(t, false) }

func TestSoakScenariosOfTheThesis(t *testing.T) { scenarios(t, true) }

// The shipped scenarios meet the numbers of the text that they state.
func scenarios(t *testing.T, long bool) {
	if testing.Short() {
		t.Skip("a minute of simulation: run without -short")
	}
	found := 0
	for _, path := range shipped(t) {
		if slices.Contains(longOnes, filepath.Base(path)) != long {
			continue
		}
		found++
		t.Run(filepath.Base(path), func(t *testing.T) {
			e := parseFile(t, path)
			if len(e.Expect) == 0 {
				t.Fatal("it states nothing")
			}
			for _, v := range e.Judge(run(t, e)) {
				t.Logf("%s %g to %g over %d points", v.Says, float64(v.Least), float64(v.Most), v.Points)
				if !v.Met {
					t.Errorf("%s (allowed %s): %s", v.Says, v.Allowed, v.Why)
				}
			}
		})
	}
	if found == 0 || long && found != len(longOnes) {
		t.Errorf("%d scenarios of this run", found)
	}
}
