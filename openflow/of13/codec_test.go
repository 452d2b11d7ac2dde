package of13

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
)

// encode gives a message's bytes, with transaction 7.
func encode(t testing.TB, m Message) []byte {
	t.Helper()
	b, err := Append(nil, 7, m)
	if err != nil {
		t.Fatalf("%T: %v", m, err)
	}
	return b
}

// printed is what a message holds; empty and missing lists are the same.
func printed(m Message) string { return fmt.Sprintf("%T %+v", m, m) }

// What is written is read as it was, by a decoder that has read all others before.
func TestMessagesAreReadAsWritten(t *testing.T) {
	var d Decoder
	for round := range 2 {
		for _, m := range samples() {
			b := encode(t, m)
			h, got, err := d.Decode(b)
			if err != nil || h.XID != 7 || h.Type != m.Type() || printedKind(got) != printedKind(m) {
				t.Fatalf("round %d, error %v: wrote %s, read %s", round, err, printed(m), printed(got))
			}
			again, err := Append(nil, 7, got)
			if err != nil || !bytes.Equal(again, b) {
				t.Errorf("round %d: %T is written as %x, and %x when it was read", round, m, b, again)
			}
		}
	}
}

// printedKind leaves out of multipart messages what is of other kinds: a decoder
// keeps it for the next message of that kind.
func printedKind(m Message) string {
	switch m.(type) {
	case *MultipartRequest, *MultipartReply:
		return fmt.Sprintf("%T", m)
	}
	return printed(m)
}

func TestDecodingAllocatesNothing(t *testing.T) {
	var d Decoder
	for _, m := range samples() {
		b := encode(t, m)
		if _, isEcho := m.(*Echo); isEcho {
			continue // two samples share a type of message
		}
		if n := testing.AllocsPerRun(50, func() { d.Decode(b) }); n != 0 {
			t.Errorf("%T (type %d): %v allocations to read it again", m, m.Type(), n)
		}
	}
}

// Any message cut at any length, with its header corrected or not, is refused
// or read, and what was read can be written.
func TestCutMessages(t *testing.T) {
	var d Decoder
	for _, m := range samples() {
		whole := encode(t, m)
		for n := range len(whole) {
			b := bytes.Clone(whole[:n])
			if _, _, err := d.Decode(b); err == nil {
				t.Errorf("%T: %d of %d bytes were read as a message", m, n, len(whole))
			}
			if n < HeaderLen {
				continue
			}
			binary.BigEndian.PutUint16(b[2:], uint16(n))
			if _, got, err := d.Decode(b); err == nil {
				encode(t, got)
			} else if !errors.As(err, new(Error)) {
				t.Errorf("%T: %v is no error of OpenFlow", m, err)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(encode(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= HeaderLen {
			b[0] = Version
			binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		}
		var d, e Decoder
		_, m, err := d.Decode(b)
		if err != nil || len(b) > 30000 { // what is written may be longer: padding that was left out
			return
		}
		written, err := Append(nil, 7, m)
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", printed(m), err)
		}
		_, again, err := e.Decode(written)
		if err != nil || printed(again) != printed(m) {
			t.Fatalf("read %s, wrote it, and read %s, error %v", printed(m), printed(again), err)
		}
	})
}

func TestLongRepliesAreCutAtEntries(t *testing.T) {
	m := &MultipartReply{Kind: MultipartFlow}
	for i := range 3000 {
		m.Flows = append(m.Flows, FlowStats{Priority: uint16(i), Match: sampleMatch()})
	}
	b, next, parts := encode(t, m), 0, 0
	for len(b) > 0 {
		n := int(ReadHeader(b).Length)
		var d Decoder
		_, got, err := d.Decode(b[:n])
		if err != nil {
			t.Fatal(err)
		}
		part := got.(*MultipartReply)
		b, parts = b[n:], parts+1
		if more := part.Flags&MultipartMore != 0; more != (len(b) > 0) {
			t.Errorf("part %d says %v about more parts, and %d bytes follow", parts, more, len(b))
		}
		for _, f := range part.Flows {
			if int(f.Priority) != next {
				t.Fatalf("entry %d after %d", f.Priority, next-1)
			}
			next++
		}
	}
	if next != 3000 || parts < 8 {
		t.Errorf("%d entries in %d parts", next, parts)
	}
}

// An element that no message can hold is refused, and nothing is written.
func TestElementsThatAreTooLong(t *testing.T) {
	long := FlowStats{Instructions: []Instruction{{Type: InstructionApply, Actions: make([]Action, 5000)}}}
	b, err := Append([]byte{1}, 7, &MultipartReply{Kind: MultipartFlow, Flows: []FlowStats{long}})
	if err != error(BadRequestMultipartOverflow) || !bytes.Equal(b, []byte{1}) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func BenchmarkDecodeFlowMod(b *testing.B) {
	bytes := encode(b, &FlowMod{Match: Match{[]Field{Exact(InPort, 1), Exact(EthDst, 5)}}, Instructions: []Instruction{{Type: InstructionApply, Actions: []Action{Output(2)}}}})
	var d Decoder
	b.ReportAllocs()
	for b.Loop() {
		d.Decode(bytes)
	}
}

func BenchmarkAppendFlowMod(b *testing.B) {
	m := &FlowMod{Match: Match{[]Field{Exact(InPort, 1), Exact(EthDst, 5)}}, Instructions: []Instruction{{Type: InstructionApply, Actions: []Action{Output(2)}}}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = Append(buf[:0], 1, m)
	}
}
