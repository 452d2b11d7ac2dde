package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Again starts what ended of the lab of a run directory, as Up had started it,
// and says what that was. Networks, namespaces and the book are what they were.
func Again(ctx context.Context, run string, ready func(context.Context) error) (names []string, err error) {
	if run, err = filepath.Abs(run); err != nil {
		return nil, fmt.Errorf("lab up: %w", err)
	}
	lock, err := lockDir(dirOf(run), false)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNone, run)
	}
	if err != nil {
		return nil, fmt.Errorf("lab up: %w", err)
	}
	defer lock.Close()
	s, err := readState(run)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNone, run)
	}
	if err != nil {
		return nil, fmt.Errorf("lab up: %w", err)
	}
	if names, err = s.again(); len(names) > 0 {
		err = errors.Join(err, s.await(ctx, ready))
	}
	if err != nil {
		err = fmt.Errorf("lab up: %w", err)
	}
	return names, err
}

// again starts the processes that do not live. Those of a lab that an older
// program made say not how.
func (s *state) again() (names []string, err error) {
	var lost error
	for i, p := range s.Processes {
		if p.alive() {
			continue
		}
		if p.Name == carrierName { // its devices went with it, which the wires lead to
			lost = fmt.Errorf("%s, which delays the wires, cannot be started again: take the lab down and up again", p.Name)
			continue
		}
		if len(p.Command) == 0 {
			return names, fmt.Errorf("how %s is started is not known: take the lab down and up again", p.Name)
		}
		started, err := s.launch(p.Namespace, p.Name, p.Command)
		if err != nil {
			return names, fmt.Errorf("start %s: %w", p.Name, err)
		}
		s.Processes[i] = started
		if err := s.write(); err != nil {
			return names, err
		}
		names = append(names, p.Name)
	}
	return names, lost
}
