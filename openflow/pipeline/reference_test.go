package pipeline

import (
	"math/rand/v2"
	"testing"

	"sublet/openflow/of13"
)

// reference is a flow table as the specification tells of it: a list that is
// gone through for each packet, field by field.
type reference []*Entry

func (r reference) lookup(k *Key) (best *Entry) {
	for _, e := range r {
		if meets(e, k) && (best == nil || e.Priority > best.Priority || e.Priority == best.Priority && e.age < best.age) {
			best = e
		}
	}
	return best
}

// covers says whether a match is equal to or more specific than another.
func covers(general, special []of13.Field) bool {
	for _, g := range general {
		ok := false
		for _, s := range special {
			ok = ok || s.ID == g.ID && g.Mask.AndNot(s.Mask).Zero() && s.Value.And(g.Mask) == g.Value.And(g.Mask)
		}
		if !ok {
			return false
		}
	}
	return true
}

func same(a, b []of13.Field) bool { return covers(a, b) && covers(b, a) }

// randomMatch draws from few values and masks, so that matches meet.
func randomMatch(r *rand.Rand) (m of13.Match) {
	add := func(f of13.Field) { m.Fields = append(m.Fields, f) }
	if r.IntN(2) == 0 {
		add(of13.Exact(of13.InPort, uint64(r.IntN(3))))
	}
	if r.IntN(2) == 0 {
		mask := of13.U128{Lo: []uint64{0xffffffffffff, 0xff0000000000, 0, 0xf}[r.IntN(4)]}
		add(of13.WithMask(of13.EthDst, of13.U128{Lo: uint64(r.IntN(4))<<40 | uint64(r.IntN(4))}, mask))
	}
	switch r.IntN(4) {
	case 3:
		add(of13.Exact(of13.EthType, 0x86dd))
		n := r.IntN(129)
		add(of13.WithMask(of13.IPv6Src, of13.U128{Hi: uint64(r.IntN(4)) << 60, Lo: uint64(r.IntN(4))}, leading(n)))
	case 0:
		add(of13.Exact(of13.EthType, 0x0800))
		if r.IntN(2) == 0 {
			add(of13.WithMask(of13.IPv4Src, of13.U128{Lo: uint64(r.IntN(4))<<24 | uint64(r.IntN(4))}, of13.U128{Lo: 0xffffffff << r.IntN(33) & 0xffffffff}))
		}
		add(of13.WithMask(of13.IPv4Dst, of13.U128{Lo: uint64(r.IntN(4))<<24 | uint64(r.IntN(4))}, of13.U128{Lo: 0xffffffff << r.IntN(33) & 0xffffffff}))
	case 1:
		add(of13.Exact(of13.EthType, 0x86dd))
		add(of13.WithMask(of13.IPv6Dst, of13.U128{Hi: uint64(r.IntN(4)) << 60, Lo: uint64(r.IntN(4))}, of13.U128{Hi: ^uint64(0) << r.IntN(65), Lo: ^uint64(0)}))
	}
	return m
}

func randomKey(r *rand.Rand) (k Key) {
	k.put(of13.InPort, uint64(r.IntN(3)))
	k.put(of13.EthDst, uint64(r.IntN(4))<<40|uint64(r.IntN(4)))
	if r.IntN(2) == 0 {
		k.put(of13.EthType, 0x0800)
		k.put(of13.IPv4Src, uint64(r.IntN(4))<<24|uint64(r.IntN(4)))
		k.put(of13.IPv4Dst, uint64(r.IntN(4))<<24|uint64(r.IntN(4)))
	} else {
		k.put(of13.EthType, 0x86dd)
		k.put128(of13.IPv6Src, of13.U128{Hi: uint64(r.IntN(4)) << 60, Lo: uint64(r.IntN(4))})
		k.put128(of13.IPv6Dst, of13.U128{Hi: uint64(r.IntN(4)) << 60, Lo: uint64(r.IntN(4))})
	}
	return k
}

// flowMod does to the list what the specification says of a flow-mod without flags.
func (r reference) flowMod(m *of13.FlowMod, age uint64) reference {
	var kept reference
	match := canonical(m.Match)
	for _, e := range r {
		strict := same(match, e.Match) && e.Priority == m.Priority
		hit := covers(match, e.Match)
		if m.Command == of13.FlowAdd || m.Command == of13.FlowDeleteStrict || m.Command == of13.FlowModifyStrict {
			hit = strict
		}
		hit = hit && (m.Command == of13.FlowAdd || (e.Cookie^m.Cookie)&m.CookieMask == 0)
		switch {
		case hit && (m.Command == of13.FlowModify || m.Command == of13.FlowModifyStrict):
			e.Instructions = m.Instructions
		case hit:
			continue
		}
		kept = append(kept, e)
	}
	if m.Command == of13.FlowAdd {
		kept = append(kept, &Entry{Priority: m.Priority, Cookie: m.Cookie, Match: match, Instructions: m.Instructions, age: age})
	}
	return kept
}

func randomFlowMod(r *rand.Rand) *of13.FlowMod {
	command := uint8(of13.FlowAdd)
	if r.IntN(3) == 0 {
		command = uint8(r.IntN(5))
	}
	return &of13.FlowMod{
		Command: command, Priority: uint16(r.IntN(4)), Cookie: uint64(r.IntN(4)), CookieMask: uint64(r.IntN(2)), Match: randomMatch(r), Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{of13.Output(uint32(r.IntN(9) + 1))}}},
	}
}

// The classifier decides as the list does, after any flow-mods; and packets that
// agree in the bits that it looked at meet the same entry.
func TestClassifierIsTheListOfTheSpecification(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := New(Config{Tables: 1, Entries: 10000}, &record{})
		var list reference
		for range 120 {
			m := randomFlowMod(r)
			if _, err := s.Do(0, m); err != nil {
				t.Fatal(err)
			}
			list = list.flowMod(m, s.ages)
			if s.entries != len(list) {
				t.Fatalf("seed %d: %d entries instead of %d after %+v", seed, s.entries, len(list), m)
			}
			for range 10 {
				agree(t, r, &s.tables[0].classifier, list)
			}
		}
	}
}

func agree(t *testing.T, r *rand.Rand, c *classifier, list reference) {
	t.Helper()
	k := randomKey(r)
	var seen Key
	got, want := c.lookup(&k, &seen), list.lookup(&k)
	if !equal(got, want) {
		t.Fatalf("packet %x meets %+v instead of %+v", k, got, want)
	}
	other := randomKey(r)
	for w := range other {
		other[w] = k[w]&seen[w] | other[w]&^seen[w]
	}
	if again := list.lookup(&other); !equal(again, want) {
		t.Fatalf("packets that agree in %x meet %+v and %+v", seen, want, again)
	}
}

func equal(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.age == b.age && a.Cookie == b.Cookie && a.Instructions[0].Actions[0].Number == b.Instructions[0].Actions[0].Number
}

// Lookup does not depend on the number of entries of a mask.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		b.Run(map[bool]string{true: "one", false: "many"}[n == 1], func(b *testing.B) {
			var c classifier
			for i := range n {
				e := &Entry{Match: []of13.Field{of13.Exact(of13.IPv4Dst, uint64(i))}, age: uint64(i)}
				e.value, e.mask = keysOf(e.Match)
				c.add(e)
			}
			var k, seen Key
			for i := 0; b.Loop(); i++ {
				k.set(of13.IPv4Dst, uint64(i%n))
				if c.lookup(&k, &seen) == nil {
					b.Fatal("no entry")
				}
			}
		})
	}
}
