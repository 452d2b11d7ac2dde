package impair

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sublet/datapath/kernel"
)

// askTime is in which the process answers.
const askTime = 10 * time.Second

// Process is the one that has a host's wires. It is started with the first and
// ended with the last, and outlives its starter.
type Process struct {
	host *kernel.Host
	mu   sync.Mutex
}

// Of is a host's process, running or not.
func Of(host *kernel.Host) *Process { return &Process{host: host} }

// group is the process's control group, beside those of nodes, whose names have dots.
func (p *Process) group() kernel.Group { return p.host.Group("impair") }

func (p *Process) file(name string) string { return filepath.Join(p.host.Dir("impair"), name) }

// Set makes a wire, whose device then is down, or changes its terms. A process
// that is not there, or does not answer, is started anew.
func (p *Process) Set(ctx context.Context, s Spec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = p.ask(ctx, http.MethodPut, "wires", text)
	if errors.Is(err, errSilent) {
		if err = p.start(ctx); err == nil {
			_, err = p.ask(ctx, http.MethodPut, "wires", text)
		}
	}
	return err
}

// Delete ends a wire, and with the last one the process.
func (p *Process) Delete(ctx context.Context, index int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.ask(ctx, http.MethodDelete, fmt.Sprintf("wires/%d", index), nil); err != nil && !errors.Is(err, errSilent) {
		return err
	}
	return p.tidy(ctx)
}

// Keep ends all wires but those of some devices.
func (p *Process) Keep(ctx context.Context, wanted func(index int) bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, _ := p.list(ctx)
	for _, s := range list {
		if wanted(s.Index) {
			continue
		}
		if _, err := p.ask(ctx, http.MethodDelete, fmt.Sprintf("wires/%d", s.Index), nil); err != nil {
			return err
		}
	}
	return p.tidy(ctx)
}

// tidy ends a process without wires, or that does not say which it has.
func (p *Process) tidy(ctx context.Context) error {
	if list, err := p.list(ctx); err == nil && len(list) > 0 || !p.group().Exists() {
		return nil
	}
	return p.helper().End()
}

// List lists the wires; none if there is no process that tells.
func (p *Process) List(ctx context.Context) []Status {
	if _, err := os.Stat(p.file("socket")); err != nil {
		return nil
	}
	list, _ := p.list(ctx)
	return list
}

func (p *Process) list(ctx context.Context) (list []Status, err error) {
	text, err := p.ask(ctx, http.MethodGet, "wires", nil)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	return list, err
}

// errSilent: nobody answers.
var errSilent = errors.New("the process of impaired links does not answer")

func (p *Process) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://impair/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.file("socket"))
	}}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return nil, errors.Join(errSilent, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the process of impaired links refuses: %s", strings.TrimSpace(string(text)))
	}
	return text, err
}

// helper is the process.
func (p *Process) helper() kernel.Helper {
	return kernel.Helper{
		Name: "the process of impaired links", Group: p.group(), Log: p.file("log"), Socket: p.file("socket"),
		Ask: func(ctx context.Context) error {
			_, err := p.list(ctx)
			return err
		},
	}
}

// start starts the process, and waits until it answers.
func (p *Process) start(ctx context.Context) error {
	if err := kernel.MkdirAll(p.host.Dir("impair"), 0o700); err != nil {
		return err
	}
	return p.helper().Start(ctx, kernel.Launch{Argv: []string{kernel.Self, Command, p.file("socket")}})
}

// Watch puts a token into events, which has room for one, whenever the process
// has ended, until ctx ends. A process that stands still it ends.
func (p *Process) Watch(ctx context.Context, events chan<- struct{}) { p.helper().Watch(ctx, events) }
