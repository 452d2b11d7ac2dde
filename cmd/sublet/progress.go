package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress shows what is going on, on a terminal, once it takes over a second.
type progress struct {
	w    io.Writer // nil: not a terminal
	mu   sync.Mutex
	what string
	stop chan struct{}
	done chan struct{}
}

// progress begins to tell what; say it is over with end.
func (a *app) progress(what string) *progress {
	p := &progress{what: what, stop: make(chan struct{}), done: make(chan struct{})}
	if f, ok := a.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		p.w = f
	}
	go p.run()
	return p
}

// say changes what is told.
func (p *progress) say(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = what
}

// end wipes the line.
func (p *progress) end() {
	close(p.stop)
	<-p.done
}

func (p *progress) run() {
	defer close(p.done)
	if p.w == nil {
		<-p.stop
		return
	}
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			fmt.Fprint(p.w, "\r\x1b[K")
			return
		case <-tick.C:
			p.mu.Lock()
			fmt.Fprintf(p.w, "\r\x1b[K%s ... %ds", p.what, int(time.Since(began).Seconds()))
			p.mu.Unlock()
		}
	}
}
