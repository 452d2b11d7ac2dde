package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// Passage is packets that an entry of a switch sends out of a port, through a meter or
// a queue of their own, or with what meets no passage.
type Passage struct {
	ID    uint32 // of one switch, more than 0 and below restID; its entry has it as cookie
	Match of13.Match
	Kbps  uint32 // 0: through the meter of what meets no passage
	Out   uint32
	// Queues of the port, of which it has one that no other passage has; none: it has
	// none.
	Queues []uint32
}

// Unmetered is for Rest: no meter bounds what meets no passage.
const Unmetered = 1<<32 - 1

const (
	passagePriority = 0x8000
	restID          = 0xffffffff // what meets no passage
	forwardingTick  = 50 * time.Millisecond
)

// Errors of Forwarding.
var (
	ErrNotConnected = errors.New("it is not connected")
	errBusy         = errors.New("no answer of the switch in time")
)

// Forwarding is an application that gives switches passages, and sends what meets none
// as each switch does by itself, together through one meter. It continues what a former
// process told the switches: packets go on while one takes over from another. Its
// methods may be called from any thread.
type Forwarding struct {
	log *slog.Logger

	mu       sync.Mutex
	switches map[uint64]*forwarder
}

// forwarder is a switch with what it must have, connected or not.
type forwarder struct {
	rest    uint32 // kbit/s; 0: nothing is told of it
	wanted  map[uint32]Passage
	proven  map[uint32]bool // of wanted, on this connection
	broken  error           // why the rest is not forwarded
	settled bool            // wanted is all that is wanted
	link    *forwarderLink  // nil: it is not connected
	waiting []*change
	before  map[uint32]bool // that were proven when its last connection ended
	mended  map[uint32]bool // passages that were put right, true: lost, since who asks was told
}

// change waits for a switch to have, or to have no longer, what it says.
type change struct {
	id   uint32
	done chan error // has room for one
}

// forwarderLink is a connection of a switch. It belongs to the controller's thread, but
// for what the lock of Forwarding guards.
type forwarderLink struct {
	f       *Forwarding
	s       *Switch
	w       *forwarder
	table   *Table
	numbers map[uint32]uint32 // meters by passage
	queues  queues
	claimed map[uint32]bool   // passages that were wanted on this connection
	shown   map[uint32]string // keys and what they do, of the passages that the switch had
	reading uint32            // the transaction that reads what a former process told; 0: it is read
	busy    bool
	changes []*change          // that wait for what is under way
	told    map[uint32]Passage // by the entry that the switch was told
	rest    uint32
	dirty   bool // meters or the rest differ from what was told

	repaired uint64
}

// NewForwarding is for no switches.
func NewForwarding(log *slog.Logger) *Forwarding {
	return &Forwarding{log: log, switches: make(map[uint64]*forwarder)}
}

// Serve takes on a switch: any other that connects is refused.
func (f *Forwarding) Serve(dpid uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.switches[dpid] == nil {
		f.switches[dpid] = &forwarder{wanted: make(map[uint32]Passage), proven: make(map[uint32]bool), before: make(map[uint32]bool), mended: make(map[uint32]bool)}
	}
}

// Leave gives a switch up; what it has stays there.
func (f *Forwarding) Leave(dpid uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.switches[dpid]; w != nil {
		w.fail(ErrNotConnected)
		delete(f.switches, dpid)
	}
}

// Proven are the passages that a switch shows to have.
func (f *Forwarding) Proven(dpid uint64) (list map[uint32]Passage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.switches[dpid]
	switch {
	case w == nil || w.link == nil:
		return nil, ErrNotConnected
	case w.broken != nil:
		return nil, fmt.Errorf("what belongs to no lease is not forwarded: %w", w.broken)
	}
	list = make(map[uint32]Passage, len(w.proven))
	for id := range w.proven {
		list[id] = w.wanted[id]
	}
	return list, nil
}

// Meet returns when a switch is connected, or has not been within a time.
func (f *Forwarding) Meet(ctx context.Context, dpid uint64, within time.Duration) {
	for end := time.Now().Add(within); ctx.Err() == nil && time.Now().Before(end); {
		if _, err := f.Proven(dpid); !errors.Is(err, ErrNotConnected) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(forwardingTick):
		}
	}
}

// Mended are passages of a switch that were lost (true) or altered (false), and put
// right, since it was asked last.
func (f *Forwarding) Mended(dpid uint64) map[uint32]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.switches[dpid]
	if w == nil || len(w.mended) == 0 {
		return nil
	}
	list := w.mended
	w.mended = make(map[uint32]bool)
	return list
}

// Put gives a switch a passage, or another form of one, and returns when it shows it.
// One that it refuses is taken back.
func (f *Forwarding) Put(ctx context.Context, dpid uint64, p Passage) error {
	return f.change(ctx, dpid, p.ID, func(w *forwarder) { w.wanted[p.ID] = p; delete(w.proven, p.ID) })
}

// Drop takes a passage away.
func (f *Forwarding) Drop(ctx context.Context, dpid uint64, id uint32) error {
	return f.change(ctx, dpid, id, func(w *forwarder) { delete(w.wanted, id); delete(w.proven, id) })
}

// Rest says how much what meets no passage may take, kbit/s of all ports together, or
// Unmetered.
func (f *Forwarding) Rest(dpid uint64, kbps uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.switches[dpid]; w != nil {
		w.rest = kbps
	}
}

// Settle says that a switch was told all that it shall have: what a former process told
// it besides goes.
func (f *Forwarding) Settle(dpid uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.switches[dpid]; w != nil && !w.settled {
		w.settled = true
		if w.link != nil {
			w.link.dirty = true
		}
	}
}

func (f *Forwarding) change(ctx context.Context, dpid uint64, id uint32, alter func(*forwarder)) error {
	c := &change{id: id, done: make(chan error, 1)}
	f.mu.Lock()
	w := f.switches[dpid]
	if w == nil {
		f.mu.Unlock()
		return ErrNotConnected
	}
	alter(w)
	if w.link == nil {
		f.mu.Unlock()
		return ErrNotConnected
	}
	w.waiting = append(w.waiting, c)
	f.mu.Unlock()
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(3 * proveWithin):
		return errBusy
	}
}

// fail tells who waits.
func (w *forwarder) fail(err error) {
	for _, c := range w.waiting {
		c.done <- err
	}
	w.waiting = nil
}

// App is for one connection.
func (f *Forwarding) App() App { return &forwarderLink{f: f} }

// Connected reads what a former process told the switch.
func (l *forwarderLink) Connected(s *Switch) {
	old, err := l.connect(s)
	if old != nil {
		old.Close(errors.New("the switch has connected anew"))
	}
	if err != nil {
		l.f.log.Warn("a switch is refused", "dpid", name(s.DatapathID), "why", err)
		s.Close(err)
	}
}

// connect makes it the switch's connection instead of its former one.
func (l *forwarderLink) connect(s *Switch) (old *Switch, err error) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	w := l.f.switches[s.DatapathID]
	switch {
	case w == nil:
		return nil, errors.New("the substrate has no switch of this identifier here")
	case s.Version() == of10.Version:
		w.broken = errNoMeters
		return nil, errNoMeters
	}
	if w.link != nil {
		old = w.link.s
		w.link.end(nil, func(uint32) error { return ErrNotConnected })
	}
	l.s, l.w, l.table, l.numbers, l.claimed, l.told = s, w, NewTable(s, &Cookies{run: ours}), make(map[uint32]uint32), make(map[uint32]bool), make(map[uint32]Passage)
	l.table.Spare, l.table.Mended, l.shown = true, l.mend, make(map[uint32]string)
	l.queues.by = make(map[uint32]portQueue)
	l.reading = l.table.read(ours, runMask, of13.Match{})
	w.link, w.broken = l, nil
	w.unprove()
	return old, nil
}

// unprove forgets what a connection has shown, but that it was there.
func (w *forwarder) unprove() {
	for id := range w.proven {
		w.before[id] = true
	}
	clear(w.proven)
}

// mend notes what the table puts right of passages that are wanted.
func (l *forwarderLink) mend(m Mended) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	id := uint32(m.Cookie)
	if m.Meter != 0 {
		for of, number := range l.numbers {
			if number == m.Meter {
				id = of
			}
		}
	}
	if _, wanted := l.w.wanted[id]; wanted {
		l.w.mended[id] = m.Lost
	}
}

// PacketIn is nothing that was asked for.
func (l *forwarderLink) PacketIn(*Switch, *of13.PacketIn, time.Time) {}

// Message is one of the switch.
func (l *forwarderLink) Message(_ *Switch, h of13.Header, m of13.Message, _ time.Time) {
	if l.w == nil {
		return
	}
	if reply, ok := m.(*of13.MultipartReply); ok && h.XID == l.reading && l.reading != 0 {
		l.adopt(reply)
		return
	}
	if l.queueMessage(h, m) {
		return
	}
	l.table.Message(h, m)
}

// adopt keeps the numbers of meters that a former process gave.
func (l *forwarderLink) adopt(reply *of13.MultipartReply) {
	for i := range reply.Flows {
		f := &reply.Flows[i]
		for _, in := range f.Instructions {
			if in.Type == of13.InstructionMeter {
				l.numbers[uint32(f.Cookie)] = in.Meter
			}
			l.adoptQueue(uint32(f.Cookie), in.Actions)
		}
		l.shown[uint32(f.Cookie)] = Entry{Table: f.Table, Priority: f.Priority, Match: f.Match, Instructions: f.Instructions}.form()
	}
	if reply.Flags&of13.MultipartMore == 0 {
		l.reading, l.dirty = 0, true
		l.missed()
	}
}

// missed notes what the switch had when its last connection ended, and has no longer.
func (l *forwarderLink) missed() {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	for id := range l.w.before {
		p, wanted := l.w.wanted[id]
		is, shown := l.shown[id]
		if wanted && (!shown || is != l.entryOf(p).form()) {
			l.w.mended[id] = !shown
		}
	}
	clear(l.w.before)
	l.shown = nil
}

// Gone ends a connection.
func (l *forwarderLink) Gone(*Switch, time.Time) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	if l.w == nil || l.w.link != l {
		return
	}
	l.w.link = nil
	l.w.unprove()
	l.end(nil, func(uint32) error { return ErrNotConnected })
	l.w.fail(ErrNotConnected)
}

// Tick brings switches to what they must have.
func (f *Forwarding) Tick(now time.Time) time.Duration {
	for _, l := range f.links() {
		l.table.Tick(now) // it may call what takes the lock
		f.mu.Lock()
		l.note()
		l.tickQueues(now)
		l.work(now)
		f.mu.Unlock()
	}
	return forwardingTick
}

// links are those of switches whose state is known.
func (f *Forwarding) links() (list []*forwarderLink) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.switches {
		if w.link != nil && w.link.reading == 0 {
			list = append(list, w.link)
		}
	}
	return list
}

// note logs repairs.
func (l *forwarderLink) note() {
	if l.table.Repaired != l.repaired {
		l.f.log.Warn("entries or meters that were lost or altered are put right", "dpid", name(l.s.DatapathID), "number", l.table.Repaired-l.repaired)
		l.repaired = l.table.Repaired
	}
}

// work begins with what is to be changed, unless something is under way.
func (l *forwarderLink) work(now time.Time) {
	w := l.w
	if l.busy || !l.dirty && len(w.waiting) == 0 && l.rest == w.rest {
		return
	}
	if w.rest == 0 && !w.settled && len(w.waiting) == 0 {
		return
	}
	l.busy, l.dirty = true, false
	l.table.Spare = !w.settled
	l.changes, w.waiting = w.waiting, nil
	add := make(map[uint32]Passage)
	for id := range l.told {
		if p, stays := w.wanted[id]; !stays || p.key() != l.told[id].key() || (p.Kbps == 0) != (l.told[id].Kbps == 0) {
			l.table.Remove(ours | uint64(id))
			delete(l.told, id)
		}
	}
	for id, p := range w.wanted {
		if _, there := l.told[id]; !there || !w.proven[id] {
			add[id] = p
		}
	}
	rest := w.rest
	meters := l.meters(rest)
	l.withQueues(now, func() {
		l.table.SetMeters(meters, now, func(err error) { l.metered(err, add, rest) })
	})
}

// key is what makes passages one entry.
func (p Passage) key() string { return string(of13.FlowBody(plainMatch(p.Match), nil)) }

// meters are those of all that is wanted.
func (l *forwarderLink) meters(rest uint32) (list []Meter) {
	used := make(map[uint32]bool, len(l.numbers))
	for id, number := range l.numbers {
		if id != restID && number == l.numbers[restID] {
			delete(l.numbers, id)
			continue
		}
		p, wanted := l.w.wanted[id]
		if id != restID && (wanted && p.Kbps == 0 || !wanted && (l.w.settled || l.claimed[id])) {
			l.s.Send(&of13.MeterMod{Command: of13.CommandDelete, Meter: number})
			delete(l.numbers, id)
			continue
		}
		used[number] = true
	}
	next := uint32(firstMeter)
	number := func(id, kbps uint32) {
		n, has := l.numbers[id]
		for !has {
			if n, next = next, next+1; !used[n] {
				l.numbers[id], used[n], has = n, true, true
			}
		}
		list = append(list, Meter{n, kbps, max(kbps/burstsIn, leastBurst)})
	}
	if rest == Unmetered {
		delete(l.numbers, restID)
	}
	for id, p := range l.w.wanted {
		if l.claimed[id] = true; p.Kbps > 0 {
			number(id, p.Kbps)
		}
	}
	if rest > 0 && rest != Unmetered {
		number(restID, rest)
	}
	return list
}

// metered goes on with the entries when the meters are there. It and what follows are
// called by the table, without the lock.
func (l *forwarderLink) metered(err error, add map[uint32]Passage, rest uint32) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	if err != nil {
		l.end(add, func(uint32) error { return err })
		return
	}
	failed := make(map[uint32]error)
	left := len(add) + 1
	finished := func(id uint32, err error) {
		if err != nil {
			failed[id] = err
		}
		if left--; left == 0 {
			l.end(add, func(id uint32) error { return failed[id] })
		}
	}
	now := time.Now()
	for id, p := range add {
		if err := l.takeQueue(p); err != nil {
			finished(id, err)
			continue
		}
		l.told[id] = p
		l.table.Install(ours|uint64(id), []Entry{l.entryOf(p)}, now, func(err error) {
			l.f.mu.Lock()
			defer l.f.mu.Unlock()
			finished(id, err)
		})
	}
	if rest == 0 || l.rest != 0 {
		l.rest = rest
		finished(restID, nil)
		return
	}
	l.rest = rest
	l.table.Install(ours|restID, []Entry{restEntry(l.numbers[restID])}, now, func(err error) {
		l.f.mu.Lock()
		defer l.f.mu.Unlock()
		if l.w.broken = err; err != nil {
			l.rest = 0
		}
		finished(restID, nil)
	})
}

// end notes what the switch has, takes back what it refused, and tells who waits.
func (l *forwarderLink) end(add map[uint32]Passage, why func(uint32) error) {
	l.busy = false
	for id, p := range add {
		now, wanted := l.w.wanted[id]
		same := wanted && now.same(p)
		switch {
		case why(id) != nil:
			l.table.Remove(ours | uint64(id))
			delete(l.told, id)
			l.dirty = true // its meter goes
			if same {
				delete(l.w.wanted, id)
			}
		case same:
			l.w.proven[id] = true
		}
	}
	for _, c := range l.changes {
		c.done <- why(c.id)
	}
	l.changes = nil
}

func (p Passage) same(q Passage) bool {
	return p.ID == q.ID && p.Kbps == q.Kbps && p.Out == q.Out && slices.Equal(p.Queues, q.Queues) && p.key() == q.key()
}

// entryOf is the entry of a passage, whose meter has its number.
func (l *forwarderLink) entryOf(p Passage) Entry {
	meter := l.numbers[p.ID]
	if p.Kbps == 0 {
		meter = l.numbers[restID]
	}
	e := Entry{Priority: passagePriority, Match: p.Match, Instructions: throughMeter(meter, p.Out)}
	if len(p.Queues) > 0 {
		e.Instructions = throughQueue(l.queues.by[p.ID].number, p.Out)
	}
	return e
}

// restEntry sends what meets no passage as the switch does by itself.
func restEntry(meter uint32) Entry { return Entry{Instructions: throughMeter(meter, of13.PortNormal)} }

func throughMeter(meter, out uint32) []of13.Instruction {
	list := []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{of13.Output(out)}}}
	if meter == 0 { // nothing is told of the rest
		return list
	}
	return append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: meter}}, list...)
}
