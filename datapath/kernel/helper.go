package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	helperStart = 20 * time.Second // in which a helper answers, on a busy machine
	helperPoll  = 5 * time.Millisecond
	helperWords = 500 // bytes of its log that an error tells
)

// ErrSilent: a helper does not answer.
var ErrSilent = errors.New("it does not answer")

// Helper is a process that does a part's work beside the agent: in a control group
// of its own, with a log, outliving the agent, and watched by it.
type Helper struct {
	Name   string // in errors
	Group  Group
	Log    string // file that has what it says, since it was started last
	Socket string // file that is there once it can answer
	Ask    func(context.Context) error
}

// Start starts the helper in place of what is left in its group, and waits until it
// answers.
func (h Helper) Start(ctx context.Context, l Launch) error {
	if err := h.Group.Remove(); err != nil { // one that hangs, or has lost its socket
		return err
	}
	return h.StartIn(ctx, l)
}

// StartIn is Start in a group that is empty and has its limits already.
func (h Helper) StartIn(ctx context.Context, l Launch) error {
	if err := h.Group.Make(); err != nil {
		return err
	}
	l.Groups = h.Group.Files()
	cmd, err := l.Command()
	if err != nil {
		return err
	}
	words, err := os.OpenFile(h.Log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer words.Close()
	cmd.Stderr = words
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return h.await(ctx, ended)
}

func (h Helper) await(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, helperStart)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", h.Name, ErrSilent, ctx.Err())
		case err := <-ended:
			words, _ := os.ReadFile(h.Log)
			return fmt.Errorf("%s ends at once: %v: %s", h.Name, err, bytes.TrimSpace(words[:min(len(words), helperWords)]))
		case <-time.After(helperPoll):
		}
		if h.Ask(ctx) == nil {
			return nil
		}
	}
}

// End ends the helper and removes its log, its socket and other files.
func (h Helper) End(others ...string) error {
	if err := h.Group.Remove(); err != nil {
		return err
	}
	for _, path := range append(others, h.Log, h.Socket) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
