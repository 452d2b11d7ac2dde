package replay

import (
	"bytes"
	"fmt"
	"strconv"

	"sublet/vnet"
)

// maxAmount bounds capacities, demands and times, so that sums of millions of
// them in the embedder's units stay exact.
const maxAmount = 1e9

// Parse reads an instance (see the package's tests for the format). Counts
// are believed only as far as the text reaches. Errors are *vnet.InputError.
func Parse(name string, text []byte) (*Instance, error) {
	p := &parser{name: name, text: text, line: 1, column: 1}
	in := &Instance{}
	p.substrate(in)
	p.requests(in)
	p.events(in)
	if word := p.word(); p.err == nil && word != nil {
		p.fail("%q after the last event: the instance ends there", short(word))
	}
	if p.err != nil {
		return nil, p.err
	}
	return in, nil
}

// parser reads words separated by white space; the first error ends it.
type parser struct {
	name         string
	text         []byte
	line, column int // of the last word, from 1
	passed       int // bytes of the line before text
	err          error
}

func (p *parser) substrate(in *Instance) {
	nodes, links := p.header("P", "substrate nodes"), p.count("substrate links")
	for range nodes {
		in.CPU = append(in.CPU, p.amount("a processor capacity"))
		if p.err != nil {
			return
		}
	}
	in.Links = p.links(links, len(in.CPU), "substrate node")
}

func (p *parser) requests(in *Instance) {
	for range p.header("V", "requests") {
		nodes, links := p.count("virtual nodes"), p.count("virtual links")
		r := Request{Arrival: p.amount("an arrival"), Lifetime: p.amount("a lifetime")}
		if p.err == nil && nodes == 0 {
			p.fail("request %d has no node", len(in.Requests))
		}
		for i := 0; i < nodes && p.err == nil; i++ {
			r.CPU = append(r.CPU, p.amount("a processor demand"))
		}
		r.Links = p.links(links, len(r.CPU), "virtual node")
		if p.err != nil {
			return
		}
		in.Requests = append(in.Requests, r)
	}
}

// links reads "a b amount" so many times.
func (p *parser) links(count, nodes int, kind string) []Link {
	var list []Link
	for range count {
		l := Link{Ends: [2]int{p.index(nodes, kind), p.index(nodes, kind)}}
		if p.err == nil && l.Ends[0] == l.Ends[1] {
			p.fail("a link joins %s %d to itself", kind, l.Ends[0])
		}
		l.Amount = p.amount("a link's bandwidth")
		if p.err != nil {
			return nil
		}
		list = append(list, l)
	}
	return list
}

// events reads arrivals and departures and checks their order.
func (p *parser) events(in *Instance) {
	arrived, left := make([]bool, len(in.Requests)), make([]bool, len(in.Requests))
	last := 0.0
	for range p.header("E", "events") {
		kind := p.index(2, "kind of event")
		e := Event{Arrives: kind == 1, Request: p.index(len(in.Requests), "request"), Time: p.amount("a time")}
		switch {
		case p.err != nil:
			return
		case e.Time < last:
			p.fail("an event at %v follows one at %v: sort them by time", e.Time, last)
		case e.Arrives && arrived[e.Request]:
			p.fail("request %d arrives twice", e.Request)
		case !e.Arrives && !arrived[e.Request]:
			p.fail("request %d leaves before it arrives", e.Request)
		case !e.Arrives && left[e.Request]:
			p.fail("request %d leaves twice", e.Request)
		}
		if p.err != nil {
			return
		}
		last, arrived[e.Request], left[e.Request] = e.Time, true, !e.Arrives
		in.Events = append(in.Events, e)
	}
}

// header reads the letter that begins a section, and the first count.
func (p *parser) header(letter, what string) int {
	if word := p.word(); p.err == nil && string(word) != letter {
		p.fail("%s instead of %s, which begins the part of the %s", quoted(word), letter, what)
	}
	return p.count(what)
}

// count reads how many of something follow: no more than the text has room for.
func (p *parser) count(what string) int {
	word := p.word()
	n, err := strconv.Atoi(string(word))
	if p.err == nil && (err != nil || n < 0 || n > len(p.text)) {
		p.fail("%s is no count of %s that the file has room for", quoted(word), what)
	}
	if p.err != nil {
		return 0
	}
	return n
}

// index reads a number from 0 up to, but not including, limit.
func (p *parser) index(limit int, what string) int {
	word := p.word()
	n, err := strconv.Atoi(string(word))
	if p.err == nil && (err != nil || n < 0 || n >= limit) {
		p.fail("%s is no %s: they are numbered from 0 to %d", quoted(word), what, limit-1)
	}
	if p.err != nil {
		return 0
	}
	return n
}

// amount reads a number of 0 or more.
func (p *parser) amount(what string) float64 {
	word := p.word()
	x, err := strconv.ParseFloat(string(word), 64)
	if p.err == nil && (err != nil || !(x >= 0 && x <= maxAmount)) {
		p.fail("%s is not %s: a number between 0 and %.0f", quoted(word), what, maxAmount)
	}
	return x
}

// word is the next word; nil at the end of the text.
func (p *parser) word() []byte {
	for len(p.text) > 0 && space(p.text[0]) {
		p.passed++
		if p.text[0] == '\n' {
			p.line, p.passed = p.line+1, 0
		}
		p.text = p.text[1:]
	}
	p.column = p.passed + 1
	end := bytes.IndexFunc(p.text, func(r rune) bool { return r < 0x80 && space(byte(r)) })
	if end < 0 {
		end = len(p.text)
	}
	word := p.text[:end]
	p.text, p.passed = p.text[end:], p.passed+end
	if end == 0 {
		return nil
	}
	return word
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// fail keeps the first error.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &vnet.InputError{File: p.name, Line: p.line, Column: p.column, Problem: fmt.Sprintf(format, args...)}
	}
}

// quoted shows a word, or that there was none.
func quoted(word []byte) string {
	if word == nil {
		return "the end of the file"
	}
	return strconv.Quote(short(word))
}

// short cuts what a hostile file makes long.
func short(word []byte) string {
	const most = 20
	if len(word) > most {
		return string(word[:most]) + "..."
	}
	return string(word)
}
