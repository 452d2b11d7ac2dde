package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Status is what there is of a lab.
type Status struct {
	Name      string    `json:"name"`
	Run       string    `json:"run"`
	Began     time.Time `json:"began"`
	Processes []Process `json:"processes"`
	// Missing are namespaces that should be there: an Up that was cut off, or
	// somebody removed them.
	Missing []string `json:"missing,omitempty"`
}

// Process is the server or an agent.
type Process struct {
	Name  string `json:"name"` // server or agent-HOST
	PID   int    `json:"pid"`
	Alive bool   `json:"alive"`
	Log   string `json:"log"`
}

// ErrNone says that a run directory has no lab.
var ErrNone = errors.New("no lab is up")

// StatusOf looks at the lab of a run directory; ErrNone if there is none.
func StatusOf(run string) (*Status, error) {
	s, err := readState(run)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNone, run)
	}
	if err != nil {
		return nil, err
	}
	status := &Status{Name: s.Name, Run: s.Run, Began: s.Began}
	for _, p := range s.Processes {
		status.Processes = append(status.Processes, Process{Name: p.Name, PID: p.PID, Alive: p.alive(), Log: s.log(p.Name)})
	}
	for _, name := range s.Namespaces {
		if _, err := os.Lstat(filepath.Join(netnsDir, name)); err != nil {
			status.Missing = append(status.Missing, name)
		}
	}
	return status, nil
}
