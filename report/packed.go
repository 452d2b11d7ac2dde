package report

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// timeless is the instant of a head.
var timeless time.Time

// PackedRound is a round without heads: what an agent keeps, and sends to a server
// that has the heads already.
type PackedRound struct {
	Number  uint64    `json:"number"` // as a Round's, as is
	At      time.Time `json:"at"`
	Samples int       `json:"samples"`
	Bytes   int       `json:"bytes"` // of Body
	// Body has of each sample, as varints: how far its head's number is from the
	// one after the head before (zigzag), by how many nanoseconds its instant is
	// later than that of the sample before, of the first than the round's (zigzag),
	// and its figures.
	Body []byte `json:"-"`
}

// Pack takes the heads off a round.
func (h *Heads) Pack(r Round) PackedRound {
	p := PackedRound{Number: r.Number, At: r.At, Samples: len(r.Samples), Body: make([]byte, 0, packedSize*len(r.Samples))}
	before, at, last := uint32(nothing), r.At, int64(-1)
	h.live = 0
	for i := range r.Samples {
		s := &r.Samples[i]
		n := h.number(s, before)
		h.live += h.sizes[n]
		p.Body = binary.AppendVarint(p.Body, int64(n)-last-1)
		p.Body = binary.AppendVarint(p.Body, int64(s.At.Sub(at)))
		for _, c := range s.Counters {
			p.Body = binary.AppendUvarint(p.Body, c.Value)
		}
		before, at, last = n, s.At, int64(n)
	}
	p.Bytes = len(p.Body)
	return p
}

// Size is about what it takes of memory, in bytes.
func (p PackedRound) Size() int { return roundSize + cap(p.Body) }

// roundSize is what a packed round takes beside its body.
const roundSize = 96

// packedSize is about what a sample takes, in bytes.
const packedSize = 16

// Each hands to do of every sample the number of its head, its instant and its
// figures, which are valid until do returns. An error says that the round does not
// go with these heads.
func (p PackedRound) Each(heads []Sample, do func(head int, at time.Time, figures []uint64)) error {
	rest, at, last := p.Body, p.At, int64(-1)
	var figures []uint64
	for i := range p.Samples {
		step, size := binary.Varint(rest)
		later, more := binary.Varint(rest[max(size, 0):])
		if size <= 0 || more <= 0 {
			return fmt.Errorf("a reading has %d samples, and ends in number %d", p.Samples, i)
		}
		rest = rest[size+more:]
		if last += 1 + step; last < 0 || last >= int64(len(heads)) {
			return fmt.Errorf("a sample has head %d of %d", last, len(heads))
		}
		at = at.Add(time.Duration(later))
		figures = figures[:0]
		for range heads[last].Counters {
			n, size := binary.Uvarint(rest)
			if size <= 0 {
				return fmt.Errorf("a reading has %d samples, and ends in number %d", p.Samples, i)
			}
			figures, rest = append(figures, n), rest[size:]
		}
		do(int(last), at, figures)
	}
	if len(rest) > 0 {
		return fmt.Errorf("a reading has %d bytes too many for %d samples", len(rest), p.Samples)
	}
	return nil
}

// Unpack puts the heads on again.
func (p PackedRound) Unpack(heads []Sample) (Round, error) {
	r := Round{Number: p.Number, At: p.At, Samples: make([]Sample, 0, min(p.Samples, len(p.Body)))}
	err := p.Each(heads, func(head int, at time.Time, figures []uint64) {
		s := heads[head]
		s.At, s.Counters = at, slices.Clone(s.Counters)
		for i, n := range figures {
			s.Counters[i].Value = n
		}
		r.Samples = append(r.Samples, s)
	})
	return r, err
}

// Only is the round with what a scope holds. It must go with the heads.
func (p PackedRound) Only(of Scope, heads []Sample) PackedRound {
	if of == (Scope{}) {
		return p
	}
	held := PackedRound{Number: p.Number, At: p.At}
	before, last := p.At, int64(-1)
	_ = p.Each(heads, func(head int, at time.Time, figures []uint64) { // they go together
		if !of.Holds(heads[head].Lease) {
			return
		}
		held.Samples++
		held.Body = binary.AppendVarint(held.Body, int64(head)-last-1)
		held.Body = binary.AppendVarint(held.Body, int64(at.Sub(before)))
		for _, n := range figures {
			held.Body = binary.AppendUvarint(held.Body, n)
		}
		before, last = at, int64(head)
	})
	held.Bytes = len(held.Body)
	return held
}

// Packed are rounds on the wire: a line of JSON, then the bodies.
type Packed struct {
	Era    uint64        `json:"era"`
	From   int           `json:"from"` // number of the first of Heads
	Heads  []Sample      `json:"heads,omitempty"`
	Rounds []PackedRound `json:"rounds,omitempty"`
}

// Encode writes them.
func (p Packed) Encode() []byte {
	text, _ := json.Marshal(p) // of texts and numbers: cannot fail
	text = append(text, '\n')
	for _, r := range p.Rounds {
		text = append(text, r.Body...)
	}
	return text
}

// DecodePacked reads them. Whether rounds and heads go together is told by Each.
func DecodePacked(text []byte) (p Packed, err error) {
	head, rest, _ := bytes.Cut(text, []byte{'\n'})
	if err := json.Unmarshal(head, &p); err != nil {
		return p, err
	}
	for i := range p.Rounds {
		r := &p.Rounds[i]
		if r.Bytes < 0 || r.Bytes > len(rest) || r.Samples < 0 || r.Samples > r.Bytes {
			return p, fmt.Errorf("a reading of %d samples and %d bytes is where there are %d bytes", r.Samples, r.Bytes, len(rest))
		}
		r.Body, rest = rest[:r.Bytes:r.Bytes], rest[r.Bytes:]
	}
	if len(rest) > 0 {
		return p, errors.New("there are more bytes than readings")
	}
	return p, nil
}

// After are all heads of an era that are known now, where some were before. Heads
// that do not begin where those end are refused.
func (p Packed) After(era uint64, known []Sample) ([]Sample, error) {
	if p.Era != era {
		known = nil
	}
	if p.From == 0 && len(p.Heads) > 0 {
		known = nil
	}
	if p.From != len(known) {
		return nil, fmt.Errorf("heads from %d on are of no use after %d", p.From, len(known))
	}
	return append(known, p.Heads...), nil
}
