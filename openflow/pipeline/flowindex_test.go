package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"sublet/openflow/of13"
)

// keeper is a cache that ends nothing by itself.
type keeper struct {
	*Switch
	flows map[*Flow]bool
	asked int
}

func (h *keeper) Fold() {}
func (h *keeper) Invalidate(stale func(*Flow) bool) {
	for f := range h.flows {
		if h.asked++; stale(f) {
			h.drop(f)
		}
	}
}
func (h *keeper) End(list []*Flow) {
	for _, f := range list {
		h.drop(f)
	}
}
func (h *keeper) drop(f *Flow) {
	delete(h.flows, f)
	h.Forget(f)
}

// someKey draws fields that entries and packets have in common.
func someKey(r *rand.Rand) (k Key) {
	k.put(of13.InPort, uint64(r.IntN(2)+1))
	k.put(of13.EthType, 0x0800)
	k.put(of13.IPProto, 17)
	k.put(of13.IPv4Dst, uint64(0x0a000000+r.IntN(64)))
	k.put(of13.UDPDst, uint64(r.IntN(4)))
	return k
}

// someMask draws of what.
func someMask(r *rand.Rand) (m Key) {
	for _, id := range []of13.FieldID{of13.InPort, of13.EthType, of13.IPProto, of13.UDPDst} {
		if r.IntN(2) == 0 {
			m.put(id, of13.Ones(of13.Fields[id].Bits).Lo)
		}
	}
	m.put(of13.IPv4Dst, 0xffffffff<<r.IntN(33)&0xffffffff)
	return m
}

func randomEntry(r *rand.Rand, priority uint16, age uint64) *Entry {
	e := &Entry{Priority: priority, mask: someMask(r), age: age}
	e.value = someKey(r)
	for w := range e.value {
		e.value[w] &= e.mask[w]
	}
	return e
}

// A new entry ends the Flows that it may decide on, as they are found one by one, and
// no others, while Flows come and go; and none that ended is found by its entry.
func TestNewEntriesFindTheirFlows(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 9))
		s, _ := newSwitch(t)
		var kept []*Flow
		var entries []*Entry
		age, ended := uint64(0), 0
		for range 40 {
			age++
			entries = append(entries, randomEntry(r, uint16(r.IntN(4)), age))
		}
		for range 6000 {
			switch r.IntN(4) {
			case 0, 1:
				f := &Flow{Key: someKey(r), Mask: someMask(r)}
				l := lookup{table: uint8(r.IntN(2)), key: f.Key}
				if r.IntN(3) > 0 {
					l.entry = entries[r.IntN(len(entries))]
				}
				f.lookups = []lookup{l}
				s.Keep(f)
				kept = append(kept, f)
			case 2:
				if at := len(kept); at > 0 {
					at = r.IntN(at)
					s.Forget(kept[at])
					kept = slices.Delete(kept, at, at+1)
				}
			case 3:
				age++
				e := randomEntry(r, uint16(r.IntN(4)), age)
				e.Table = uint8(r.IntN(2))
				got := s.flows.changedBy(e)
				var want []*Flow
				for _, f := range kept {
					l := &f.lookups[0]
					if l.table == e.Table && e.before(l.entry) && (&flowGroup{knownBits: knownBits{mask: f.known()}}).meets(l, e) {
						want = append(want, f)
					}
				}
				if len(got) != len(want) || slices.ContainsFunc(got, func(f *Flow) bool { return !slices.Contains(want, f) }) {
					t.Fatalf("seed %d: %d of %d flows, %d are changed", seed, len(got), len(kept), len(want))
				}
				if len(want) < len(kept)/4 {
					for _, f := range want {
						s.Forget(f)
						kept = slices.DeleteFunc(kept, func(o *Flow) bool { return o == f })
						ended++
					}
				}
			}
		}
		if ended == 0 {
			t.Errorf("seed %d: no flow ended", seed)
		}
		for _, e := range entries {
			n := 0
			for _, f := range kept {
				if f.lookups[0].entry == e {
					n++
				}
			}
			if len(e.flows.list)-e.flows.gone != n || e.flows.gone > n+1 {
				t.Errorf("seed %d: an entry knows %d flows, of which %d are gone, and has %d", seed, len(e.flows.list), e.flows.gone, n)
			}
		}
	}
}

// BenchmarkChanges is what adding and deleting an entry costs beside Flows that it does
// not concern.
func BenchmarkChanges(b *testing.B) {
	for _, number := range []int{0, 1000, 60_000} {
		b.Run(fmt.Sprintf("%d flows", number), func(b *testing.B) {
			s := New(Config{Tables: 1, Entries: 1 << 20}, nowhere{})
			h := &keeper{Switch: s, flows: make(map[*Flow]bool)}
			s.Cache = h
			for p := range uint32(2) {
				s.SetPort(0, of13.Port{Number: p + 1})
			}
			to := func(command uint8, n int) *of13.FlowMod {
				return &of13.FlowMod{Command: command, Priority: 1, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
					Match:        of13.Match{Fields: []of13.Field{of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPv4Dst, uint64(n))}},
					Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{of13.Output(2)}}}}
			}
			frame := make([]byte, 60)
			copy(frame[12:], []byte{8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17})
			for n := range number {
				if _, err := s.Do(0, to(of13.FlowAdd, n)); err != nil {
					b.Fatal(err)
				}
				frame[30], frame[31], frame[32], frame[33] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
				f, cause := s.ReceiveFlow(0, 1, frame, 1)
				if f == nil {
					b.Fatal(cause)
				}
				h.flows[f] = true
				s.Keep(f)
			}
			b.ResetTimer()
			for i := range b.N {
				for _, command := range []uint8{of13.FlowAdd, of13.FlowDeleteStrict} {
					if _, err := s.Do(0, to(command, 1<<24+i)); err != nil {
						b.Fatal(err)
					}
				}
			}
			if len(h.flows) != number {
				b.Errorf("%d flows are left of %d", len(h.flows), number)
			}
		})
	}
}
