package report

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// Text is what the JSON of all samples of a head has in common: the pieces before,
// between and behind their instant and their figures. It holds the fields of Sample
// and of Counter in their order.
type Text struct{ pieces [][]byte }

// Text prepares a head.
func (s *Sample) Text() Text {
	who, what := *s, *s
	who.State, who.Why, who.Labels, who.Counters = "", "", nil, nil
	what.Host, what.Kind, what.Key, what.Counters = "", "", "", nil
	what.Lease.Tenant, what.Lease.Network = "", ""
	const bare = `{"kind":"","key":"","at":"0001-01-01T00:00:00Z"`
	who.At, what.At = timeless, timeless
	begin := bytes.TrimSuffix(textOf(who), []byte(`0001-01-01T00:00:00Z"}`))
	piece := append([]byte{'"'}, bytes.TrimSuffix(textOf(what)[len(bare):], []byte{'}'})...)
	t := Text{pieces: [][]byte{begin}}
	before, end := `,"counters":[`, `}`
	for _, c := range s.Counters {
		c.Value = 0
		piece = append(append(piece, before...), bytes.TrimSuffix(textOf(c), []byte("0}"))...)
		t.pieces = append(t.pieces, piece)
		piece, before, end = nil, `},`, `}]}`
	}
	t.pieces = append(t.pieces, append(piece, end...))
	return t
}

// textOf is the JSON of what can always be encoded.
func textOf(value any) []byte {
	text, _ := json.Marshal(value)
	return text
}

// Append writes a sample with an instant as AppendInstant writes it, and as many
// figures as the head has counters.
func (t Text) Append(to, at []byte, figures []uint64) []byte {
	to = append(append(to, t.pieces[0]...), at...)
	for i, piece := range t.pieces[1:] {
		to = append(to, piece...)
		if i < len(figures) {
			to = strconv.AppendUint(to, figures[i], 10)
		}
	}
	return to
}

// AppendInstant writes an instant as samples have it, without quotes.
func AppendInstant(to []byte, at time.Time) []byte { return at.AppendFormat(to, time.RFC3339Nano) }
