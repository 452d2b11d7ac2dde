package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// heads are those of a host's samples: they go over once, and their JSON is made
// once.
type heads struct {
	era   uint64
	list  []report.Sample
	texts []report.Text // of the first of them
	size  int           // of all, about, in bytes
}

// Bounds of what an agent may say. Its ring, of which an answer is a part, holds 1 MiB
// of readings; what they stand for is much larger, by as much as it likes.
const (
	mostHeads   = 64 << 20  // bytes of an era's heads
	mostSamples = 1 << 20   // of an answer
	mostPacked  = 16 << 20  // bytes of an answer's readings
	mostEncoded = mostState // bytes of an answer's samples as JSON
)

// take adds what an agent sent in so many bytes. Whose host it is, the server says and
// not the agent.
func (h *heads) take(host vnet.HostID, p report.Packed, bytes int) error {
	list, err := p.After(h.era, h.list)
	if err != nil {
		return err
	}
	if p.From == 0 {
		h.size = 0
	}
	if p.From == 0 && len(p.Heads) > 0 {
		h.texts = nil
	}
	if len(p.Heads) > 0 {
		h.size += bytes
	}
	for i := p.From; i < len(list); i++ {
		list[i].Host = host
		h.size += list[i].Size()
	}
	if h.size > mostHeads {
		return fmt.Errorf("its heads take more than %d MiB", mostHeads>>20)
	}
	h.era, h.list = p.Era, list
	return nil
}

// reading is a round of a host, with the heads of that time; of an agent that knows
// no short form, samples.
type reading struct {
	packed report.PackedRound
	heads  *heads
	plain  []report.Sample
}

// samples are those of a reading.
func (r reading) samples() ([]report.Sample, error) {
	if r.heads == nil {
		return r.plain, nil
	}
	round, err := r.packed.Unpack(r.heads.list)
	return round.Samples, err
}

// encoded are samples as JSON, one after the other, each with a comma before it,
// and one more comma behind them.
type encoded struct {
	text   []byte
	ends   []int // in text, of each sample
	leases []vnet.LeaseID
}

// texts are those that nobody reads any more.
var texts = sync.Pool{New: func() any { return new([]byte) }}

// free gives the text back: events have copies.
func (e encoded) free() {
	text := e.text[:0]
	texts.Put(&text)
}

func (e *encoded) end(lease vnet.LeaseID) {
	e.ends, e.leases = append(e.ends, len(e.text)), append(e.leases, lease)
}

// encode makes the JSON that all feeds share, of so many bytes at most.
func (r reading) encode(most int) (e encoded, err error) {
	if r.heads == nil {
		for _, s := range r.plain {
			text, err := json.Marshal(s)
			if err != nil {
				return e, err
			}
			e.text = append(append(e.text, ','), text...)
			e.end(s.Lease)
		}
		e.text = append(e.text, ',')
		return e, nil
	}
	h := r.heads
	for i := len(h.texts); i < len(h.list); i++ {
		h.texts = append(h.texts, h.list[i].Text())
	}
	e.ends, e.leases = make([]int, 0, r.packed.Samples), make([]vnet.LeaseID, 0, r.packed.Samples)
	e.text = (*texts.Get().(*[]byte))[:0]
	var last time.Time
	var instant []byte
	var wrong error
	err = r.packed.Each(h.list, func(head int, at time.Time, figures []uint64) {
		switch {
		case len(e.text) > most:
			wrong = fmt.Errorf("they are more than %d MiB as JSON", mostEncoded>>20)
			return
		case at.Year() < 0 || at.Year() > 9999: // no JSON has it
			wrong = fmt.Errorf("one is of the year %d", at.Year())
			return
		}
		if !at.Equal(last) || instant == nil {
			last, instant = at, report.AppendInstant(instant[:0], at)
		}
		e.text = h.texts[head].Append(append(e.text, ','), instant, figures)
		e.end(h.list[head].Lease)
	})
	e.text = append(e.text, ',')
	return e, cmp.Or(err, wrong)
}

// of is what a scope holds.
func (e encoded) of(scope report.Scope) encoded {
	if scope == (report.Scope{}) {
		return e
	}
	var held encoded
	begin := 0
	for i, end := range e.ends {
		if scope.Holds(e.leases[i]) {
			held.text = append(held.text, e.text[begin:end]...)
			held.end(e.leases[i])
		}
		begin = end
	}
	held.text = append(held.text, ',')
	return held
}

// lists hands to do JSON lists of so many samples at most, which are valid until do
// returns: brackets stand where commas are.
func (e encoded) lists(most int, do func(list []byte)) {
	begin := 0
	for first := 0; first < len(e.ends); first += most {
		end := e.ends[min(first+most, len(e.ends))-1]
		e.text[begin], e.text[end] = '[', ']'
		do(e.text[begin : end+1])
		e.text[begin], e.text[end] = ',', ','
		begin = end
	}
}

// decodeReadings reads what an agent answers: the short form, or JSON.
func decodeReadings(host vnet.HostID, h *heads, body []byte) (list []reading, err error) {
	if bytes.HasPrefix(body, []byte{'['}) {
		var rounds []report.Round
		if err := json.Unmarshal(body, &rounds); err != nil {
			return nil, err
		}
		for _, round := range rounds {
			for i := range round.Samples {
				round.Samples[i].Host = host
			}
			list = append(list, reading{packed: report.PackedRound{Number: round.Number}, plain: round.Samples})
		}
		return list, nil
	}
	p, err := report.DecodePacked(body)
	if err != nil {
		return nil, err
	}
	samples, packed := 0, 0
	for _, round := range p.Rounds {
		samples, packed = samples+round.Samples, packed+round.Bytes
	}
	if samples > mostSamples || packed > mostPacked {
		return nil, fmt.Errorf("an answer has %d samples and %d bytes: at most %d and %d", samples, packed, mostSamples, mostPacked)
	}
	if err := h.take(host, p, len(body)-packed); err != nil {
		return nil, err
	}
	for _, round := range p.Rounds {
		list = append(list, reading{packed: round, heads: h})
	}
	return list, nil
}

// wrongSamples says that an agent answers what are no samples.
func wrongSamples(host vnet.HostID, err error) error {
	return agentUnreachable(host, fmt.Sprintf("its samples are wrong: %v", err))
}
