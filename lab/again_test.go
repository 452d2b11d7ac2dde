package lab

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"
)

// What was killed of a lab is started again as it was, and nothing else is.
func TestAgain(t *testing.T) {
	_, spec := up(t, demo())
	if names, err := Again(t.Context(), spec.Run, nil); err != nil || len(names) != 0 {
		t.Fatalf("Again of a lab that is whole: %v, %v", names, err)
	}
	before, err := readState(spec.Run)
	if err != nil {
		t.Fatal(err)
	}
	server, agent := before.Processes[0], before.Processes[1]
	if err := syscall.Kill(agent.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for agent.alive() {
		time.Sleep(time.Millisecond)
	}
	names, err := Again(t.Context(), spec.Run, nil)
	if err != nil || !slices.Equal(names, []string{agent.Name}) {
		t.Fatalf("Again started %v, error %v; want %s", names, err, agent.Name)
	}
	status, err := StatusOf(spec.Run)
	if err != nil || status.Processes[0].PID != server.PID || status.Processes[1].PID == agent.PID || !status.Processes[1].Alive {
		t.Errorf("afterwards %+v, error %v", status, err)
	}
	if _, err := Again(t.Context(), t.TempDir(), nil); !errors.Is(err, ErrNone) {
		t.Errorf("Again without a lab: %v", err)
	}
}
