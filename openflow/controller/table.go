package controller

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// How entries are proven and looked after.
const (
	proveWithin = 3 * time.Second        // for a switch to show what it was told
	auditEvery  = 400 * time.Millisecond // all entries are read back
	auditEntry  = 50 * time.Microsecond  // and at least this long for each: what reading costs is bounded
	auditDead   = 10 * time.Second       // a reading that does not end is begun anew
	ours        = uint64(0x5b1e) << 48   // the beginning of cookies
	oursMask    = uint64(0xffff) << 48
	runMask     = uint64(0xffffffff) << 32
)

// Cookies gives entries their cookies: none is given twice, and those of another
// run of a controller are others.
type Cookies struct{ run, last uint64 }

// NewCookies begins a run.
func NewCookies() *Cookies { return &Cookies{run: ours | uint64(1+rand.Uint32N(1<<16-1))<<32} }

// Next is a cookie.
func (c *Cookies) Next() uint64 {
	c.last++
	return c.run | c.last&0xffffffff
}

// ErrUnproven says that a switch did not show what it was told to have.
var ErrUnproven = errors.New("the switch does not show the entries that it was given")

// Table is entries that a switch must have: they are told, waited for, read back
// and compared, and then looked after. A Table belongs to one connection.
type Table struct {
	s       *Switch
	run     uint64
	batches map[uint64]*batch  // by cookie
	wanted  map[string]*wanted // by key
	pending map[uint32]*batch  // by the transactions that its proof waits for
	audit   audit
	meters  *meters // nil: it has none

	// Spare leaves entries and meters of the run alone that nobody wants: who
	// continues a former run does not know yet what it wants.
	Spare bool
	// Expired is told of a batch of which an entry ended by its idle time; the batch
	// is gone from this table.
	Expired func(cookie uint64)
	// Repaired is how many entries and meters were lost or altered, and told again.
	// Mended, if it is set, is told of each.
	Repaired uint64
	Mended   func(Mended)
}

// Mended is what was put right: an entry by its cookie, or a meter by its number.
type Mended struct {
	Cookie uint64
	Meter  uint32
	Lost   bool // else it was altered
}

// mend counts and tells what is put right.
func (t *Table) mend(m Mended) {
	t.Repaired++
	if t.Mended != nil {
		t.Mended(m)
	}
}

// batch is entries that are told together, and have one cookie.
type batch struct {
	cookie  uint64
	entries []*wanted
	xids    []uint32 // of its entries, barrier and reading
	since   time.Time
	shown   int
	proven  bool
	round   uint64 // of the audit that ran when it was proven
	done    func(error)
}

type wanted struct {
	Entry
	key, does string
	batch     *batch
	seen      uint64 // the audit that found it as it must be
	altered   uint64 // the audit that found it otherwise
}

type audit struct {
	n    uint64
	xid  uint32 // 0: none runs
	last time.Time
}

// NewTable is without entries.
func NewTable(s *Switch, cookies *Cookies) *Table {
	return &Table{s: s, run: cookies.run, batches: make(map[uint64]*batch), wanted: make(map[string]*wanted), pending: make(map[uint32]*batch)}
}

// Forget has the switch delete what other runs left.
func (t *Table) Forget() {
	if t.s.Version() != of10.Version {
		t.s.Send(deletion(ours, oursMask))
	}
}

func deletion(cookie, mask uint64) *of13.FlowMod {
	return &of13.FlowMod{
		Command: of13.FlowDelete, Table: of13.TableAll, Cookie: cookie, CookieMask: mask,
		Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
	}
}

// Install tells the switch entries, and done (once, if it is not nil) whether it
// has them. Those it does not have all of are taken back first.
func (t *Table) Install(cookie uint64, entries []Entry, now time.Time, done func(error)) {
	b := &batch{cookie: cookie, since: now, done: done}
	t.batches[cookie] = b
	for _, e := range entries {
		w := &wanted{Entry: e, key: e.key(), does: e.does(), batch: b}
		b.entries = append(b.entries, w)
		t.wanted[w.key] = w
		t.await(t.tell(w), b)
	}
	t.await(t.s.Send(&of13.Plain{Kind: of13.TypeBarrierRequest}), b)
}

func (t *Table) await(xid uint32, b *batch) {
	t.pending[xid] = b
	b.xids = append(b.xids, xid)
}

func (t *Table) tell(w *wanted) uint32 {
	return t.s.Send(&of13.FlowMod{
		Command: of13.FlowAdd, Cookie: w.batch.cookie, Table: w.Table, Priority: w.Priority, Idle: w.Idle, Flags: of13.FlowSendRemoved,
		Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Match: w.Match, Instructions: w.Instructions,
	})
}

// Remove has the switch delete the entries of a cookie.
func (t *Table) Remove(cookie uint64) {
	b := t.batches[cookie]
	if b == nil {
		return
	}
	t.settle(b)
	delete(t.batches, cookie)
	if t.s.Version() != of10.Version {
		t.s.Send(deletion(cookie, ^uint64(0)))
	}
	for _, w := range b.entries {
		if t.wanted[w.key] != w {
			continue // another batch has replaced it
		}
		delete(t.wanted, w.key)
		if t.s.Version() == of10.Version {
			t.s.Send(&of13.FlowMod{
				Command: of13.FlowDeleteStrict, Table: w.Table, Priority: w.Priority, Match: w.Match,
				Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
			})
		}
	}
}

// settle lets no transaction stand for a batch any longer.
func (t *Table) settle(b *batch) {
	for _, xid := range b.xids {
		delete(t.pending, xid)
	}
	b.xids = nil
}

// Message is one of the switch that may concern the table.
func (t *Table) Message(h of13.Header, m of13.Message) {
	switch m := m.(type) {
	case *of13.Plain:
		if b := t.pending[h.XID]; b != nil && m.Kind == of13.TypeBarrierReply {
			delete(t.pending, h.XID)
			match := of13.Match{} // OpenFlow 1.0 asks by nothing else
			if len(b.entries) == 1 {
				match = b.entries[0].Match
			}
			t.await(t.read(b.cookie, ^uint64(0), match), b)
		}
	case *of13.ErrorMessage:
		if b := t.pending[h.XID]; b != nil {
			t.refused(b, of13.Error(uint32(m.Kind)<<16|uint32(m.Code)))
		}
		t.metersRefused(h.XID, of13.Error(uint32(m.Kind)<<16|uint32(m.Code)))
	case *of13.MultipartReply:
		t.shown(h.XID, m)
	case *of13.FlowRemoved:
		t.removed(m)
	}
}

func (t *Table) read(cookie, mask uint64, match of13.Match) uint32 {
	return t.s.Send(&of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{
		Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Cookie: cookie, CookieMask: mask, Match: match,
	}})
}

// refused takes a batch back.
func (t *Table) refused(b *batch, why error) {
	t.Remove(b.cookie)
	if b.done != nil {
		b.done(why)
	}
}

// shown compares what a switch shows with what it must have: of one batch, or of
// all.
func (t *Table) shown(xid uint32, m *of13.MultipartReply) {
	if m.Kind == of13.MultipartMeterConfig && t.meters != nil && xid == t.meters.read {
		t.metersShown(m)
	}
	if m.Kind != of13.MultipartFlow {
		return
	}
	last := m.Flags&of13.MultipartMore == 0
	if b := t.pending[xid]; b != nil {
		t.prove(b, m.Flows)
		if last {
			t.judge(b)
		}
		return
	}
	if t.audit.xid == 0 || xid != t.audit.xid {
		return
	}
	t.compare(m.Flows)
	if last {
		t.conclude()
	}
}

func (t *Table) prove(b *batch, flows []of13.FlowStats) {
	for i := range flows {
		if w, same := t.find(&flows[i]); w != nil && same && w.batch == b {
			b.shown++
		}
	}
}

// find is the wanted entry that one of the switch stands for, and whether it is
// as it must be.
func (t *Table) find(f *of13.FlowStats) (w *wanted, same bool) {
	e := Entry{Table: f.Table, Priority: f.Priority, Idle: f.Idle, Match: f.Match, Instructions: f.Instructions}
	if w = t.wanted[e.key()]; w == nil {
		return nil, false
	}
	return w, f.Cookie == w.batch.cookie && w.does == e.does()
}

// judge ends a proof. Entries that another batch has replaced meanwhile are proven
// by that one.
func (t *Table) judge(b *batch) {
	t.settle(b)
	must := 0
	for _, w := range b.entries {
		if t.wanted[w.key] == w {
			must++
		}
	}
	if b.shown < must {
		t.refused(b, ErrUnproven)
		return
	}
	b.proven, b.round = true, t.audit.n
	if b.done != nil {
		b.done(nil)
	}
}

// compare takes a part of what an audit reads: what is altered is told again, what
// nobody wants is deleted.
func (t *Table) compare(flows []of13.FlowStats) {
	for i := range flows {
		f := &flows[i]
		w, same := t.find(f)
		switch {
		case same:
			w.seen = t.audit.n
		case w != nil:
			w.altered = t.audit.n
		case w == nil && !t.Spare && f.Cookie&runMask == t.run && t.batches[f.Cookie] == nil && t.s.Version() != of10.Version:
			t.s.Send(deletion(f.Cookie, ^uint64(0)))
		}
	}
}

// conclude ends an audit: what was not there as it must be is told again.
func (t *Table) conclude() {
	t.audit.xid = 0
	for _, w := range t.wanted {
		if w.batch.proven && w.batch.round < t.audit.n && w.seen != t.audit.n {
			t.mend(Mended{Cookie: w.batch.cookie, Lost: w.altered != t.audit.n})
			t.tell(w)
		}
	}
}

// removed is an entry that ended: by its idle time, which ends the batch, or by
// another hand, after which it is told again.
func (t *Table) removed(m *of13.FlowRemoved) {
	b := t.batches[m.Cookie]
	if b == nil {
		return
	}
	e := Entry{Table: m.Table, Priority: m.Priority, Match: m.Match}
	w := t.wanted[e.key()]
	if w == nil || w.batch != b {
		return
	}
	if m.Reason == of13.RemovedIdle {
		t.Remove(b.cookie)
		if t.Expired != nil {
			t.Expired(b.cookie)
		}
		return
	}
	if b.proven {
		t.mend(Mended{Cookie: b.cookie, Lost: true})
		t.tell(w)
	}
}

// Tick gives up proofs that take too long, and begins audits.
func (t *Table) Tick(now time.Time) {
	var late []*batch
	for _, b := range t.pending {
		if now.Sub(b.since) > proveWithin {
			late = append(late, b)
		}
	}
	for _, b := range late {
		if t.batches[b.cookie] == b {
			t.refused(b, fmt.Errorf("within %s: %w", proveWithin, ErrUnproven))
		}
	}
	t.metersLate(now)
	silent := now.Sub(t.audit.last)
	if t.audit.xid != 0 && silent < auditDead || silent < max(auditEvery, time.Duration(len(t.wanted))*auditEntry) {
		return
	}
	if t.meters != nil && t.meters.done == nil { // before the entries that need them
		t.readMeters()
	}
	t.audit.n++
	t.audit.last = now
	t.audit.xid = t.read(t.run, runMask, of13.Match{})
}
