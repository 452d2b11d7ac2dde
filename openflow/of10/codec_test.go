package of10

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"sublet/openflow/of13"
)

// encode gives a message's bytes, with transaction 7.
func encode(t testing.TB, m of13.Message) []byte {
	t.Helper()
	b, err := Append(nil, 7, m)
	if err != nil {
		t.Fatalf("%T: %v", m, err)
	}
	return b
}

// printed is what a message holds; empty and missing lists are the same.
func printed(m of13.Message) string { return fmt.Sprintf("%T %+v", m, m) }

// What is written is read as it was, by a decoder that has read all others before;
// of statistics, which keep what is of other kinds, it is enough that they are
// written again as they were.
func TestMessagesAreReadAsWritten(t *testing.T) {
	var d Decoder
	for round := range 2 {
		for _, m := range samples() {
			b := encode(t, m)
			h, got, err := d.Decode(b)
			if err != nil || h.XID != 7 || got.Type() != m.Type() || Kind(h.Type) != m.Type() {
				t.Fatalf("round %d, error %v: wrote %s, read %s", round, err, printed(m), printed(got))
			}
			many := m.Type() == of13.TypeMultipartRequest || m.Type() == of13.TypeMultipartReply
			if !many && printed(got) != printed(m) {
				t.Errorf("round %d: wrote\n%s, read\n%s", round, printed(m), printed(got))
			}
			if again, err := Append(nil, 7, got); err != nil || !bytes.Equal(again, b) {
				t.Errorf("round %d: %T is written as %x, and %x when it was read", round, m, b, again)
			}
		}
	}
}

func TestDecodingAllocatesNothing(t *testing.T) {
	var d Decoder
	for _, m := range samples() {
		b := encode(t, m)
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
			if n < of13.HeaderLen {
				continue
			}
			binary.BigEndian.PutUint16(b[2:], uint16(n))
			if _, got, err := d.Decode(b); err == nil {
				encode(t, got)
			} else if !errors.As(err, new(of13.Error)) {
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
		if len(b) >= of13.HeaderLen {
			b[0] = Version
			binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		}
		var d, e Decoder
		_, m, err := d.Decode(b)
		if err != nil || len(b) > 30000 {
			return
		}
		written, err := Append(nil, 7, m)
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", printed(m), err)
		}
		_, again, err := e.Decode(written)
		if _, told := m.(*of13.ErrorMessage); told && err == nil {
			return // errors that nobody has are written as the nearest that there is
		}
		if err != nil || printed(again) != printed(m) {
			t.Fatalf("read\n%s, wrote it, and read\n%s, error %v", printed(m), printed(again), err)
		}
	})
}

// Entries that are exact go before all others.
func TestExactEntriesGoFirst(t *testing.T) {
	b := encode(t, &of13.FlowMod{Priority: 5})
	clear(b[of13.HeaderLen : of13.HeaderLen+4])
	var d Decoder
	_, m, err := d.Decode(b)
	if err != nil || m.(*of13.FlowMod).Priority != highest {
		t.Errorf("%v, %+v", err, m)
	}
}

// What is wrong with a message is said as 1.0 says it.
func TestErrorsAreThoseOf10(t *testing.T) {
	for e, want := range map[of13.Error]of13.Error{
		of13.BadRequestBadType: 1<<16 | 1, of13.BadRequestIsSlave: 1<<16 | 5, of13.BadActionBadSetArgument: 2<<16 | 5, of13.BadMatchBadField: 3<<16 | 5,
		of13.FlowModFailedTableFull: 3 << 16, of13.FlowModFailedBadFlags: 3<<16 | 5, of13.QueueOpFailedBadQueue: 5<<16 | 1, of13.BadInstructionBadTableID: 3<<16 | 5,
		of13.PortModFailedBadConfig: 1<<16 | 5,
	} {
		b := encode(t, &of13.ErrorMessage{Kind: e.Type(), Code: e.Code()})
		if got := of13.Error(binary.BigEndian.Uint32(b[of13.HeaderLen:])); got != want {
			t.Errorf("%v is %d/%d, not %d/%d", e, got.Type(), got.Code(), want.Type(), want.Code())
		}
	}
	for _, c := range []struct {
		change func(b []byte)
		want   of13.Error
	}{
		{func(b []byte) { b[0] = 4 }, of13.BadRequestBadVersion}, {func(b []byte) { b[1] = 30 }, of13.BadRequestBadType},
		{func(b []byte) { b[1] = of13.TypeExperimenter }, of13.BadRequestBadExperimenter}, {func(b []byte) { b[8+63] = 4 }, of13.FlowModFailedBadFlags},
		{func(b []byte) { b[8+64] = 0xff; b[8+65] = 0xff }, of13.BadActionBadExperimenter}, {func(b []byte) { b[8+65] = 77 }, of13.BadActionBadType},
		{func(b []byte) { b[8+67] = 7 }, of13.BadActionBadLen}, {func(b []byte) { b[2]++ }, of13.BadRequestBadLen},
	} {
		b := encode(t, &of13.FlowMod{OutPort: of13.PortAny, Instructions: applying([]of13.Action{of13.Output(1)})})
		c.change(b)
		var d Decoder
		if _, _, err := d.Decode(b); err != error(c.want) {
			t.Errorf("%x: %v instead of %v", b, err, c.want)
		}
	}
}

func TestLongRepliesAreCutAtEntries(t *testing.T) {
	m := &of13.MultipartReply{Kind: of13.MultipartFlow}
	for i := range 3000 {
		m.Flows = append(m.Flows, of13.FlowStats{Priority: uint16(i)})
	}
	b, next, parts := encode(t, m), 0, 0
	for len(b) > 0 {
		var d Decoder
		n := int(of13.ReadHeader(b).Length)
		_, got, err := d.Decode(b[:n])
		if err != nil {
			t.Fatal(err)
		}
		part := got.(*of13.MultipartReply)
		b, parts = b[n:], parts+1
		if more := part.Flags&of13.MultipartMore != 0; more != (len(b) > 0) {
			t.Errorf("part %d says %v about more parts, and %d bytes follow", parts, more, len(b))
		}
		for _, f := range part.Flows {
			if int(f.Priority) != next {
				t.Fatalf("entry %d after %d", f.Priority, next-1)
			}
			next++
		}
	}
	if next != 3000 || parts < 4 {
		t.Errorf("%d entries in %d parts", next, parts)
	}
}

func TestNegotiation(t *testing.T) {
	for _, c := range []struct {
		header  uint8
		bitmap  uint32
		version uint8
	}{{1, 0, 1}, {2, 0, 0}, {3, 0, 0}, {4, 0, 4}, {6, 0, 4}, {6, 1<<6 | 1<<4 | 1<<1, 4}, {6, 1<<6 | 1<<1, 1}, {6, 1 << 6, 0}, {4, 1 << 1, 1}, {0, 0, 0}} {
		if version, ok := Negotiate(c.header, c.bitmap); ok != (c.version != 0) || ok && version != c.version {
			t.Errorf("%+v: version %d, %v", c, version, ok)
		}
	}
}
