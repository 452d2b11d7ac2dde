package pipeline

import "slices"

// flowIndex finds the Flows that a new entry concerns without asking all of them. At a
// table they are grouped by the bits that are known of their packets; in a group, for
// each mask of entries that was asked about, they are by the bits that both have.
type flowIndex struct {
	groups map[knownBits]*flowGroup
	tables map[uint8][]*flowGroup
}

type knownBits struct {
	table uint8
	mask  Key
}

// flowGroup is the Flows of which the same bits are known at a table. Those that
// ended stay in the lists until most have.
type flowGroup struct {
	knownBits
	all   []flowAt
	live  int
	views []*flowView
	asked uint64
}

// flowAt is a Flow at one of its tables.
type flowAt struct {
	*Flow
	at *lookup
}

// flowView has the Flows of a group by some bits of their keys.
type flowView struct {
	mask    Key
	words   []uint8 // of the mask that are not zero
	buckets map[uint64]*flowBucket
	size    int
	last    uint64 // when it was asked, by count of the group's questions
}

// flowBucket is Flows of one hash.
type flowBucket struct {
	flows []flowAt
	least int // no entry of theirs has a lower priority; -1: none at all
}

const (
	mostViews = 8  // of a group
	fewFlows  = 32 // in a group, which are asked one by one
	longAgo   = 64 // questions, after which a view may make room
)

// Keep has the Switch know of a Flow that its Cache has taken, until Forget.
func (s *Switch) Keep(f *Flow) {
	f.kept = true
	for i := range f.lookups {
		l := &f.lookups[i]
		s.flows.add(f, l)
		if l.entry != nil {
			l.entry.flows.add(f)
		}
	}
}

// Forget is called for a Flow that was kept and has ended.
func (s *Switch) Forget(f *Flow) {
	f.kept = false
	for i := range f.lookups {
		l := &f.lookups[i]
		s.flows.remove(l)
		if l.entry != nil {
			l.entry.flows.lost()
		}
	}
}

// known are the bits that are known of a Flow's packets at a table. Metadata and
// tunnel are known wholly: they are 0 at first.
func (f *Flow) known() Key {
	m := f.Mask
	m[0], m[1] = ^uint64(0), ^uint64(0)
	return m
}

func (x *flowIndex) add(f *Flow, l *lookup) {
	by := knownBits{l.table, f.known()}
	g := x.groups[by]
	if g == nil {
		g = &flowGroup{knownBits: by}
		if x.groups == nil {
			x.groups, x.tables = make(map[knownBits]*flowGroup), make(map[uint8][]*flowGroup)
		}
		x.groups[by], x.tables[by.table] = g, append(x.tables[by.table], g)
	}
	l.group = g
	g.all, g.live = append(g.all, flowAt{f, l}), g.live+1
	for _, v := range g.views {
		v.add(flowAt{f, l})
	}
}

// remove takes a Flow out that is kept no more.
func (x *flowIndex) remove(l *lookup) {
	g := l.group
	if g.live--; g.live == 0 {
		delete(x.groups, g.knownBits)
		x.tables[g.table] = slices.DeleteFunc(x.tables[g.table], func(o *flowGroup) bool { return o == g })
		return
	}
	most := 2*g.live + fewFlows
	if len(g.all) <= most {
		return
	}
	g.all = slices.DeleteFunc(g.all, func(a flowAt) bool { return !a.kept })
	for _, v := range g.views {
		if v.size > most {
			v.fill(g)
		}
	}
}

// changedBy gives the Flows on some of whose packets an entry may decide that is the
// newest of all.
func (x *flowIndex) changedBy(e *Entry) (list []*Flow) {
	for _, g := range x.tables[e.Table] {
		for _, a := range g.near(e) {
			if a.kept && e.before(a.at.entry) && g.meets(a.at, e) {
				list = append(list, a.Flow)
			}
		}
	}
	return list
}

// meets says whether nothing that is known of a Flow's packets keeps them from an entry.
func (g *flowGroup) meets(l *lookup, e *Entry) bool {
	for w := range l.key {
		if (l.key[w]^e.value[w])&g.mask[w]&e.mask[w] != 0 {
			return false
		}
	}
	return true
}

// near gives Flows that may meet an entry: all that do are among them. Of entries of
// one priority the older one decides, so the newest decides on no Flow of these.
func (g *flowGroup) near(e *Entry) []flowAt {
	g.asked++
	if len(g.all) <= fewFlows {
		return g.all
	}
	v := g.view(e)
	if v == nil {
		return g.all
	}
	v.last = g.asked
	b := v.buckets[v.hash(&e.value)]
	if b == nil || int(e.Priority) <= b.least {
		return nil
	}
	return b.flows
}

// view gives the Flows by the bits that an entry looks at; nil: there are too many
// other views in use.
func (g *flowGroup) view(e *Entry) *flowView {
	mask := g.mask
	for w := range mask {
		mask[w] &= e.mask[w]
	}
	oldest := -1
	for i, v := range g.views {
		if v.mask == mask {
			return v
		}
		if oldest < 0 || v.last < g.views[oldest].last {
			oldest = i
		}
	}
	v := &flowView{mask: mask}
	for w, m := range mask {
		if m != 0 {
			v.words = append(v.words, uint8(w))
		}
	}
	switch {
	case len(g.views) < mostViews:
		g.views = append(g.views, v)
	case g.views[oldest].last+longAgo < g.asked:
		g.views[oldest] = v
	default:
		return nil
	}
	v.fill(g)
	return v
}

func (v *flowView) fill(g *flowGroup) {
	v.buckets, v.size = make(map[uint64]*flowBucket), 0
	for _, a := range g.all {
		if a.kept {
			v.add(a)
		}
	}
}

func (v *flowView) add(a flowAt) {
	h, least := v.hash(&a.at.key), -1
	if a.at.entry != nil {
		least = int(a.at.entry.Priority)
	}
	b := v.buckets[h]
	if b == nil {
		b = &flowBucket{least: least}
		v.buckets[h] = b
	}
	b.flows, b.least = append(b.flows, a), min(b.least, least)
	v.size++
}

func (v *flowView) hash(k *Key) uint64 {
	h := hashStart
	for _, w := range v.words {
		h = mix(h ^ k[w]&v.mask[w])
	}
	return h
}

// flowsOfEntry are the Flows that an entry decides on, and some that have ended.
type flowsOfEntry struct {
	list []*Flow
	gone int
}

func (o *flowsOfEntry) add(f *Flow) { o.list = append(o.list, f) }

// lost notes that one has ended.
func (o *flowsOfEntry) lost() {
	if o.gone++; o.gone > len(o.list)/2 {
		o.list, o.gone = slices.DeleteFunc(o.list, func(f *Flow) bool { return !f.kept }), 0
	}
}
