package slice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// remembered is a Memory.
type remembered struct {
	placed         []byte
	groups, meters map[uint32]uint64
}

func newRemembered() *remembered {
	return &remembered{groups: make(map[uint32]uint64), meters: make(map[uint32]uint64)}
}

func (r *remembered) Place(b []byte) error    { r.placed = b; return nil }
func (r *remembered) Placed() ([]byte, error) { return r.placed, nil }
func (r *remembered) Group(there uint32, first uint8, own uint32) {
	put(r.groups, there, first, own)
}
func (r *remembered) Meter(there uint32, first uint8, own uint32) {
	put(r.meters, there, first, own)
}

func put(m map[uint32]uint64, there uint32, first uint8, own uint32) {
	if m[there] = uint64(first)<<32 | uint64(own); first == 0 {
		delete(m, there)
	}
}

func (r *remembered) Numbers(group, meter func(uint32, uint8, uint32)) error {
	for n, w := range maps.Clone(r.groups) {
		group(n, uint8(w>>32), uint32(w))
	}
	for n, w := range maps.Clone(r.meters) {
		meter(n, uint8(w>>32), uint32(w))
	}
	return nil
}

func (r *remembered) Clear() error { clear(r.groups); clear(r.meters); return nil }

// ground0 is a switch of this process with slices, whose frames are a test's.
type ground0 struct {
	t      *testing.T
	tables *pipeline.Switch
	local  *Local
	sent   []string
	mu     sync.Mutex
	wake   chan struct{}
	end    func()
}

func (g *ground0) Send(port, _ uint32, frame []byte) {
	g.sent = append(g.sent, fmt.Sprintf("%d/%d", port, vlanOf(frame)))
}

func (g *ground0) PacketIn(m *of13.PacketIn)       { g.happened(m) }
func (g *ground0) FlowRemoved(m *of13.FlowRemoved) { g.happened(m) }
func (g *ground0) PortStatus(m *of13.PortStatus)   { g.happened(m) }
func (g *ground0) happened(m of13.Message) {
	if g.local != nil {
		g.local.Happened(m)
	}
}

func (g *ground0) Do(m of13.Message) (of13.Message, error) { return g.tables.Do(1, m) }
func (g *ground0) Atomic(run func() error) error           { return g.tables.Atomic(run) }

// newGround makes one with four ports.
func newGround(t *testing.T) *ground0 {
	g := &ground0{t: t, wake: make(chan struct{}, 1)}
	g.tables = pipeline.New(pipeline.Config{DatapathID: 0x51, Tables: 9, Entries: 1000, Groups: 50, Meters: 50}, g)
	for n := uint32(1); n <= 4; n++ {
		g.tables.SetPort(0, of13.Port{Number: n, Name: fmt.Sprint("eth", n)})
	}
	return g
}

// begin gives it slices as they are remembered, and drives it until end.
func (g *ground0) begin(m Memory) {
	g.t.Helper()
	local, err := NewLocal(LocalConfig{Below: g, Tables: 9, Memory: m, Notify: func() {
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		g.t.Fatal(err)
	}
	g.local = local
	ctx, cancel := context.WithCancel(g.t.Context())
	var running sync.WaitGroup
	local.Begin(ctx, nil, func(error) {}, &running)
	running.Go(func() {
		for ctx.Err() == nil {
			g.mu.Lock()
			more := local.Turn()
			local.Flush()
			g.mu.Unlock()
			if !more {
				select {
				case <-ctx.Done():
				case <-g.wake:
				case <-time.After(50 * time.Millisecond):
				}
			}
		}
	})
	g.end = sync.OnceFunc(func() { cancel(); local.Close(); running.Wait() })
	g.t.Cleanup(g.end)
}

func (g *ground0) set(list ...Slice) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.local.Set(list); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground0) receive(port uint32, frame []byte) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent = nil
	g.tables.Receive(1, port, frame)
	return slices.Clone(g.sent)
}

func (g *ground0) forwards(port uint32, to ...string) {
	g.t.Helper()
	if got := g.receive(port, frame(g.t, 0, 1)); !slices.Equal(got, to) {
		g.t.Errorf("a packet of port %d leaves by %v, not %v", port, got, to)
	}
}

func sliceOf(name string, p *peer, tables int, ports ...uint32) Slice {
	return Slice{Name: name, Controllers: p.target(), Ports: ports, Tables: tables, Entries: 10, Groups: 4, Meters: 4}
}

// by is an entry that has all packets go to a group of the slice's, 7.
func (p *peer) by7(port uint32) {
	p.t.Helper()
	for _, m := range []of13.Message{
		&of13.GroupMod{Kind: of13.GroupTypeIndirect, Group: 7, Buckets: []of13.Bucket{{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny, Actions: []of13.Action{of13.Output(port)}}}},
		&of13.FlowMod{Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{{Type: of13.ActionGroup, Number: 7}}}}},
	} {
		if _, err := p.ask(m); err != nil {
			p.t.Fatalf("%T: %v", m, err)
		}
	}
}

// Slices that are changed: those that others change go on, with connection, entries and
// groups; those that change begin anew; what leads to one that is gone is gone.
func TestLocalSlicesChange(t *testing.T) {
	g := newGround(t)
	g.begin(newRemembered())
	alice, bob, carol := newPeer(t), newPeer(t), newPeer(t)
	g.set(sliceOf("alice", alice, 2, 1, 2), sliceOf("bob", bob, 3, 3, 4))
	alice.accept()
	bob.accept()
	alice.by7(2)
	bob.by7(4)
	g.forwards(1, "2/0")
	g.forwards(3, "4/0")
	if _, err := alice.ask(&of13.FlowMod{Table: 2, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny}); !errors.Is(err, of13.FlowModFailedBadTableID) {
		t.Errorf("a third table: %v", err)
	}

	g.set(sliceOf("carol", carol, 2, 1, 2), sliceOf("bob", bob, 3, 3, 4)) // alice goes
	carol.accept()
	g.forwards(1)
	g.forwards(3, "4/0")
	bob.by7Is(4) // on the connection that it had
	carol.by7(2)
	g.forwards(1, "2/0")

	g.set(sliceOf("bob", bob, 3, 3, 4, 2), sliceOf("carol", carol, 2, 1)) // bob gets port 2, carol loses it
	carol.accept()
	g.forwards(1)
	g.forwards(2, "4/0")
	if entries, groups, _ := g.tables.Held(); entries != 1+3+1 || groups != 1 {
		t.Errorf("%d entries and %d groups are left", entries, groups)
	}

	g.set(sliceOf("bob", bob, 5, 3, 4), sliceOf("carol", carol, 3, 1)) // there is room if both begin anew
	bob.accept()
	carol.accept()
	g.forwards(3)
	if err := g.local.Set([]Slice{sliceOf("bob", bob, 9, 3)}); err == nil {
		t.Error("more tables than there are")
	}
}

// by7Is wants the group that by7 made.
func (p *peer) by7Is(port uint32) {
	p.t.Helper()
	r, err := p.ask(&of13.MultipartRequest{Kind: of13.MultipartGroupDesc})
	if err != nil {
		p.t.Fatal(err)
	}
	g := r.(*of13.MultipartReply).GroupDescs
	if len(g) != 1 || g[0].Group != 7 || g[0].Buckets[0].Actions[0].Number != port {
		p.t.Errorf("groups: %+v", g)
	}
}

// What slices have outlives their process, and what was cut short is mended: groups
// of nobody, numbers without a group, entries in tables that are nobody's.
func TestLocalSlicesOutliveTheProcess(t *testing.T) {
	g, memory := newGround(t), newRemembered()
	g.begin(memory)
	alice, bob := newPeer(t), newPeer(t)
	list := []Slice{sliceOf("alice", alice, 2, 1, 2), sliceOf("bob", bob, 3, 3, 4)}
	g.set(list...)
	alice.accept()
	bob.accept()
	alice.by7(2)
	bob.by7(4)
	g.end()

	memory.Group(9, 1, 99) // cut short between the number and the group
	for _, m := range []of13.Message{
		&of13.GroupMod{Kind: of13.GroupTypeIndirect, Group: 12, Buckets: []of13.Bucket{{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny}}},
		&of13.FlowMod{Table: 8, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny},
	} {
		if _, err := g.Do(m); err != nil {
			t.Fatal(err)
		}
	}
	g.begin(memory)
	g.set(list...)
	alice.accept()
	bob.accept()
	g.forwards(1, "2/0")
	alice.by7Is(2)
	bob.by7Is(4)
	if entries, groups, _ := g.tables.Held(); entries != 4+2 || groups != 2 {
		t.Errorf("%d entries and %d groups", entries, groups)
	}
	if _, err := alice.ask(&of13.GroupMod{Kind: of13.GroupTypeAll, Group: 99}); err != nil {
		t.Errorf("a group that was never made: %v", err)
	}
	if len(memory.groups) != 3 {
		t.Errorf("remembered: %v", memory.groups)
	}
}

// A bundle of a slice takes effect as a whole or not at all, and so do its numbers.
func TestLocalBundles(t *testing.T) {
	g := newGround(t)
	memory := newRemembered()
	g.begin(memory)
	alice := newPeer(t)
	g.set(sliceOf("alice", alice, 1, 1, 2))
	alice.accept()
	m := g.local.members[0]
	group := func(n uint32) of13.Message { return &of13.GroupMod{Kind: of13.GroupTypeAll, Group: n} }
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := m.Do(group(1)); err != nil {
		t.Fatal(err)
	}
	err := m.Atomic(func() error {
		for _, message := range []of13.Message{group(2), &of13.GroupMod{Command: of13.CommandDelete, Group: 1}, group(2)} {
			if _, err := m.Do(message); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, of13.GroupModFailedGroupExists) {
		t.Fatal(err)
	}
	if _, there := m.groups.there[1]; !there || len(m.groups.there) != 1 || len(memory.groups) != 1 {
		t.Errorf("groups %v, remembered %v", m.groups.there, memory.groups)
	}
	if _, groups, _ := g.tables.Held(); groups != 1 {
		t.Errorf("%d groups", groups)
	}
	if err := m.Atomic(func() error { _, err := m.Do(group(2)); return err }); err != nil || len(m.groups.there) != 2 {
		t.Errorf("%v, %v", m.groups.there, err)
	}
	var _ channel.Datapath = m
}
