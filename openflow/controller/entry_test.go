package controller

import (
	"testing"

	"sublet/openflow/of13"
)

// Frames of discovery are believed as they were sent, by the controller that sent
// them, for some rounds: whatever is changed, cut or late is not.
func TestDiscoveryIsNotForged(t *testing.T) {
	k, other := lldpKey{1}, lldpKey{2}
	at := place{0xfedcba9876543210, 48}
	frame := k.frame(at, [6]byte{2}, 100)
	if from, ok := k.read(frame, 100+roundsLate-1); !ok || from != at {
		t.Fatalf("%v %v", from, ok)
	}
	if _, ok := other.read(frame, 100); ok {
		t.Error("another controller's frame is believed")
	}
	for _, round := range []uint64{99, 100 + roundsLate} {
		if _, ok := k.read(frame, round); ok {
			t.Errorf("a frame of round 100 is believed in round %d", round)
		}
	}
	for n := range frame {
		if from, ok := k.read(frame[:n], 100); ok && n < len(frame)-2 {
			t.Errorf("%d bytes are believed to be from %v", n, from)
		}
		changed := append([]byte(nil), frame...)
		changed[n] ^= 0x10
		if from, ok := k.read(changed, 100); ok && from != at {
			t.Errorf("with byte %d changed it is from %v", n, from)
		}
	}
}

func match(fields ...of13.Field) of13.Match { return of13.Match{Fields: fields} }

// Matches overlap unless a field that both have keeps them apart.
func TestOverlap(t *testing.T) {
	masked := func(id of13.FieldID, v, mask uint64) of13.Field {
		return of13.WithMask(id, of13.U128{Lo: v}, of13.U128{Lo: mask})
	}
	for _, c := range []struct {
		a, b of13.Match
		want bool
	}{
		{match(), match(), true},
		{match(of13.Exact(of13.InPort, 1)), match(of13.Exact(of13.InPort, 2)), false},
		{match(of13.Exact(of13.InPort, 1)), match(of13.Exact(of13.VLANVID, 0x1005)), true},
		{match(masked(of13.IPv4Dst, 0x0a000000, 0xff000000)), match(masked(of13.IPv4Dst, 0x0a010000, 0xffff0000)), true},
		{match(masked(of13.IPv4Dst, 0x0a000000, 0xff000000)), match(masked(of13.IPv4Dst, 0x0b010000, 0xffff0000)), false},
	} {
		if got := Overlap(c.a, c.b); got != c.want || Overlap(c.b, c.a) != got {
			t.Errorf("%v, %v: %v", c.a, c.b, got)
		}
	}
}

// Entries are the same however switches tell them.
func TestEntriesCompare(t *testing.T) {
	in, to := of13.Exact(of13.InPort, 1), of13.Exact(of13.EthDst, 5)
	apply := func(actions ...of13.Action) []of13.Instruction {
		return []of13.Instruction{{Type: of13.InstructionApply, Actions: actions}}
	}
	a := Entry{Priority: 5, Match: match(in, to), Instructions: apply(of13.Output(3))}
	told := of13.Output(3)
	told.MaxLen = 0
	full := of13.WithMask(of13.EthDst, of13.U128{Lo: 5}, of13.Ones(48))
	b := Entry{Priority: 5, Match: match(full, in, of13.WithMask(of13.EthSrc, of13.U128{}, of13.U128{})), Instructions: apply(told)}
	if a.key() != b.key() || a.does() != b.does() {
		t.Error("the same entry is taken for another")
	}
	for _, other := range []Entry{
		{Priority: 6, Match: a.Match, Instructions: a.Instructions},
		{Priority: 5, Match: match(in), Instructions: a.Instructions},
		{Priority: 5, Match: a.Match, Instructions: apply(of13.Output(4))},
		{Priority: 5, Match: a.Match},
		{Priority: 5, Idle: 1, Match: a.Match, Instructions: a.Instructions},
	} {
		if other.key() == a.key() && other.does() == a.does() {
			t.Errorf("%+v is taken for %+v", other, a)
		}
	}
}
