package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"sublet/vxswitch/scenario"
)

// hello is the example, short, at two loads.
func hello(t *testing.T) *scenario.Experiment {
	t.Helper()
	text, err := os.ReadFile("../../examples/vxswitch/hello.yaml")
	if err != nil {
		t.Fatal(err)
	}
	short := strings.NewReplacer("duration: 200ms", "duration: 20ms", "warmup: 20ms", "warmup: 2ms", "runs: 5", "runs: 3")
	e, err := scenario.Parse("hello.yaml", []byte(short.Replace(string(text))), nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Points = append(e.Points, e.Points[0])
	e.Points[1].Seed += 100
	return e
}

// What comes out does not depend on how many runs are made at a time.
func TestResultsAreThoseOfOneAtATime(t *testing.T) {
	e := hello(t)
	one, err := All(t.Context(), e, Logs{}, 1)
	if err != nil || len(one) != 2 {
		t.Fatalf("%d results, %v", len(one), err)
	}
	many, err := All(t.Context(), e, Logs{}, 4)
	if err != nil || !reflect.DeepEqual(one, many) {
		t.Errorf("four at a time give other results, %v", err)
	}
	if len(one[0].Seeds) != 3 || reflect.DeepEqual(one[0].Total, one[1].Total) {
		t.Errorf("seeds %v; both points are the same", one[0].Seeds)
	}
}

// Packets are written in the order of points and runs, whatever is asked for.
func TestLogsAreInOrder(t *testing.T) {
	var departures, arrivals bytes.Buffer
	if _, err := All(t.Context(), hello(t), Logs{Departures: &departures, Arrivals: &arrivals}, 4); err != nil {
		t.Fatal(err)
	}
	if arrivals.Len() == 0 {
		t.Error("no arrivals were written")
	}
	type place struct{ Point, Run int }
	var seen []place
	for line := range strings.Lines(departures.String()) {
		var at place
		if err := json.Unmarshal([]byte(line), &at); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if len(seen) == 0 || seen[len(seen)-1] != at {
			seen = append(seen, at)
		}
	}
	if want := []place{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}; !reflect.DeepEqual(seen, want) {
		t.Errorf("written in the order %v", seen)
	}
}

// full is a disk with no space.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWhatEndsAllRuns(t *testing.T) {
	if _, err := All(t.Context(), hello(t), Logs{Departures: full{}}, 1); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := All(ctx, hello(t), Logs{}, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
