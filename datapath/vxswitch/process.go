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
	spin    = 20 * time.Microsecond // before the process sleeps
	askTime = 10 * time.Second      // in which it answers
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

// helper is the process; it answers between two rounds of the loop that carries frames.
func (p *Part) helper() kernel.Helper {
	return kernel.Helper{
		Name: "the hosting switch", Group: p.group(), Log: p.file("log"), Socket: p.file("socket"),
		Ask: func(ctx context.Context) error {
			_, err := p.ask(ctx, http.MethodGet, "health", nil)
			return err
		},
	}
}

// start starts the process, and waits until it answers.
func (p *Part) start(ctx context.Context) error {
	return p.helper().Start(ctx, kernel.Launch{Argv: []string{kernel.Self, "vxswitch", "run", p.file("config.yaml"), "--socket", p.file("socket")}})
}

// Loop puts a token into events, which has room for one, whenever the process
// has ended, until ctx ends. A process that stands still it ends.
func (p *Part) Loop(ctx context.Context, events chan<- struct{}) { p.helper().Watch(ctx, events) }

// end ends the process and removes all it had.
func (p *Part) end() error {
	return p.helper().End(p.file("config.yaml"), p.file("config.yaml.new"), p.file("state.json"), p.file("state.json.new"))
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
