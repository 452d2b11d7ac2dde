package vxswitch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"sublet/datapath/kernel"
	"sublet/datapath/vxswitch/live"
)

const (
	spin      = 20 * time.Microsecond // before the process sleeps
	startTime = 20 * time.Second      // in which it answers, on a busy machine
	askTime   = 10 * time.Second      // in which it answers once it runs
	pollEvery = 5 * time.Millisecond
)

// group is the process's control group: one for the host, beside those of
// nodes, whose names have dots.
func (p *Part) group() kernel.Group { return p.host.Group("vxswitch") }

// enforce makes the process what s says: it is told, or started, or ended when
// there is nothing left.
func (p *Part) enforce(ctx context.Context, s *state) error {
	if s.empty() {
		return p.end()
	}
	c, err := p.config(s)
	if err != nil {
		return err
	}
	text, err := c.Text()
	if err != nil {
		return err
	}
	if err := p.write("config.yaml", text); err != nil {
		return err
	}
	if !p.answers(ctx) {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	if _, err = p.ask(ctx, http.MethodPut, "config", text); err != nil {
		return err
	}
	return p.limit(s)
}

// limit bounds the process's processor time.
func (p *Part) limit(s *state) error {
	if want := int64(s.cpu()); want != p.group().CPU() {
		return p.group().SetCPU(want)
	}
	return nil
}

func (p *Part) answers(ctx context.Context) bool {
	_, err := p.ask(ctx, http.MethodGet, "config", nil)
	return err == nil
}

// ask calls the process.
func (p *Part) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://switch/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	client := live.Dial(p.file("socket"))
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		return nil, errors.Join(errNoSwitch, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the hosting switch refuses: %s", strings.TrimSpace(string(text)))
	}
	return text, err
}

// start starts the process in its control group, and waits until it answers.
func (p *Part) start(ctx context.Context) error {
	if err := p.group().Remove(); err != nil { // one that hangs, or has lost its socket
		return err
	}
	if err := p.group().Make(); err != nil {
		return err
	}
	cmd, err := kernel.Launch{
		Groups: p.group().Files(),
		Argv:   []string{"/proc/self/exe", "vxswitch", "run", p.file("config.yaml"), "--socket", p.file("socket")},
	}.Command()
	if err != nil {
		return err
	}
	words, err := os.OpenFile(p.file("log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
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
	return p.await(ctx, ended)
}

func (p *Part) await(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return errors.Join(errNoSwitch, ctx.Err())
		case err := <-ended:
			words, _ := os.ReadFile(p.file("log"))
			return fmt.Errorf("the hosting switch ends at once: %v: %s", err, bytes.TrimSpace(words[:min(len(words), 500)]))
		case <-time.After(pollEvery):
		}
		if p.answers(ctx) {
			return nil
		}
	}
}

// end ends the process and removes all it had.
func (p *Part) end() error {
	if err := p.group().Remove(); err != nil {
		return err
	}
	for _, name := range []string{"socket", "log", "config.yaml", "config.yaml.new", "state.json", "state.json.new"} {
		if err := os.Remove(p.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Status is what the process has counted; nil if there is none.
func (p *Part) Status(ctx context.Context) (*live.Status, error) {
	if _, err := os.Stat(p.file("state.json")); err != nil {
		return nil, nil
	}
	text, err := p.ask(ctx, http.MethodGet, "status", nil)
	if err != nil {
		return nil, err
	}
	st := &live.Status{}
	return st, json.Unmarshal(text, st)
}
