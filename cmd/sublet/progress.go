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
	over bool // nothing is drawn any more
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

// end wipes the line; what is printed after it stands alone. It may be called
// again.
func (p *progress) end() {
	p.mu.Lock()
	over := p.over
	p.over = true
	p.mu.Unlock()
	if !over {
		close(p.stop)
	}
	<-p.done
}

// aside wipes the line, and lets do print something before it goes on.
func (p *progress) aside(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil && !p.over {
		fmt.Fprint(p.w, wipe)
	}
	do()
}

// wipe erases the line of a terminal.
const wipe = "\r\x1b[K"

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
			fmt.Fprint(p.w, wipe)
			return
		case <-tick.C:
			p.mu.Lock()
			fmt.Fprintf(p.w, wipe+"%s ... %ds", p.what, int(time.Since(began).Seconds()))
			p.mu.Unlock()
		}
	}
}
