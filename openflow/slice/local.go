package slice

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
)

// LocalConfig is what slices of a switch of this process are given.
type LocalConfig struct {
	Below  channel.Datapath // the switch
	Tables int              // that it has
	Miss   bool             // tables of slices begin with an entry that sends what meets no other to controllers
	Near   bool             // see channel.Hub
	Watch  func(fd int) error
	Notify func() // there is something for Turn
	Memory Memory // nil: it is gone with the process
	Unread int64  // bytes of replies that may wait for controllers, each slice's for an equal part of it; 0: see channel.Hub
}

// Memory has what slices know where it outlives the process.
type Memory interface {
	Place(placed []byte) error
	Placed() ([]byte, error) // nil: nothing was
	Group(there uint32, first uint8, own uint32)
	Meter(there uint32, first uint8, own uint32)
	// Numbers are those that are somebody's.
	Numbers(group, meter func(there uint32, first uint8, own uint32)) error
	Clear() error // of numbers
}

// Local are slices of a switch: of one of this process, or of one that a Proxy is
// connected to. Whoever drives the switch calls it. They keep what they have when
// others change, and with a Memory when the process begins anew.
type Local struct {
	config  LocalConfig
	under   ground
	members []*member
	groups  *pool
	meters  *pool
	bundled *atomic.Int64 // see channel.Hub

	features *of13.FeaturesReply
	run      *running // nil: connections are not made yet
}

// running is what connections are made with.
type running struct {
	ctx context.Context
	tls *tls.Config
	log func(error)
	all *sync.WaitGroup
}

// NewLocal makes slices of a switch as they were when the process before this one
// ended. What they had there is there already.
func NewLocal(c LocalConfig) (*Local, error) { return newLocal(c, under{c.Below}) }

func newLocal(c LocalConfig, at ground) (l *Local, err error) {
	l = &Local{config: c, under: at, groups: newPool(), meters: newPool(), bundled: new(atomic.Int64)}
	if l.features, err = features(at); err != nil || c.Memory == nil {
		return l, err
	}
	if err := l.resume(); err != nil {
		return nil, err
	}
	l.groups.keep, l.meters.keep = c.Memory.Group, c.Memory.Meter
	return l, nil
}

// features are what the switch says that it is.
func features(at ground) (*of13.FeaturesReply, error) {
	reply, err := at.ask(&of13.Plain{Kind: of13.TypeFeaturesRequest})
	if err != nil {
		return nil, err
	}
	f, is := reply[0].(*of13.FeaturesReply)
	if !is {
		return nil, fmt.Errorf("the switch answers with a message of type %d instead of its features", reply[0].Type())
	}
	return f, nil
}

// places are where slices of a switch are, for the process after this one.
type places struct {
	DatapathID uint64
	Slices     []placed
}

type placed struct {
	Slice
	First uint8
}

func (l *Local) resume() error {
	raw, err := l.config.Memory.Placed()
	if err != nil {
		return err
	}
	var were places
	if raw == nil || json.Unmarshal(raw, &were) != nil || were.DatapathID != l.features.DatapathID {
		return l.config.Memory.Clear() // of another release or switch: all begin anew
	}
	by := make(map[uint8]*member)
	for _, p := range were.Slices {
		guard, err := newGuard(p.Match)
		if err != nil {
			return fmt.Errorf("slice %s: match: %w", p.Name, err)
		}
		m := l.member(p.First, guard)
		m.become(p.Slice)
		by[p.First], l.members = m, append(l.members, m)
	}
	restore := func(p *pool, of func(*member) *numbers) func(uint32, uint8, uint32) {
		return func(there uint32, first uint8, own uint32) {
			if m := by[first]; m != nil {
				p.used[there] = true
				if own == 0 && p == l.meters {
					m.rated = there
					return
				}
				of(m).set(own, there)
			}
		}
	}
	return l.config.Memory.Numbers(restore(l.groups, (*member).groupNumbers), restore(l.meters, (*member).meterNumbers))
}

func (s *member) groupNumbers() *numbers { return &s.groups }
func (s *member) meterNumbers() *numbers { return &s.meters }

func (l *Local) remember() error {
	if l.config.Memory == nil {
		return nil
	}
	now := places{DatapathID: l.features.DatapathID}
	for _, m := range l.members {
		now.Slices = append(now.Slices, placed{*m.Slice, m.first})
	}
	raw, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return l.config.Memory.Place(raw)
}

// member makes one without a Slice, which begins at a table.
func (l *Local) member(first uint8, guard *guard) *member {
	m := &member{
		view: &view{first: first, groups: newNumbers(l.groups, first, 0), meters: newNumbers(l.meters, first, 0), ports: make(map[uint32]of13.Port), guard: guard},
		hub:  channel.NewHub(l.config.Notify), up: l.under, miss: 128, links: make(map[channel.Target]context.CancelFunc),
	}
	m.alone = func(port uint32) bool {
		return !slices.ContainsFunc(l.members, func(o *member) bool { return o != m && o.has(port) })
	}
	m.hub.Bundled = l.bundled
	m.hub.Least, m.hub.Watch, m.hub.Near = of13.Version, l.config.Watch, l.config.Near
	return m
}

// become gives it another Slice, for which it goes on.
func (s *member) become(is Slice) { s.Slice, s.groups.most, s.meters.most = &is, is.Groups, is.Meters }

// Check says what is wrong with slices of a switch of so many tables.
func Check(list []Slice, tables int) error {
	c := Config{Slices: list}
	if err := c.Check(); err != nil {
		return err
	}
	need := 1
	for i := range list {
		need += list[i].Tables
	}
	if need > tables {
		return fmt.Errorf("slices: they have %d tables together: the switch has %d, of which one is needed to tell slices apart", need-1, tables)
	}
	return nil
}

// Set changes slices to those of a list. One that was there by its name, of the same
// packets, with as many tables and all the ports that it had, goes on with what it
// has; the others begin anew.
func (l *Local) Set(list []Slice) error {
	if err := Check(list, l.config.Tables); err != nil {
		return err
	}
	guards, err := guardsOf(list)
	if err != nil {
		return err
	}
	next, firsts := l.placesFor(list)
	if err := l.leave(next); err != nil {
		return err
	}
	var fresh []*member
	for i := range next {
		if next[i] == nil {
			next[i] = l.member(firsts[i], guards[i])
			fresh = append(fresh, next[i])
		}
		next[i].become(list[i])
		next[i].hub.Most = l.config.Unread / int64(len(next))
	}
	l.members = next
	if err := l.begin(fresh); err != nil {
		return err
	}
	for _, m := range l.members {
		l.connect(m)
	}
	return nil
}

// placesFor says which members go on in the places of a list, and at which tables the
// others begin.
func (l *Local) placesFor(list []Slice) (next []*member, firsts []uint8) {
	next, firsts = make([]*member, len(list)), make([]uint8, len(list))
	for i := range list {
		at := slices.IndexFunc(l.members, func(m *member) bool { return m.goesOn(&list[i]) })
		if at >= 0 {
			next[i] = l.members[at]
		}
	}
	for all := false; ; all = true {
		if all { // there is no gap that is large enough
			clear(next)
		}
		used := make([]bool, l.config.Tables)
		used[0] = true
		for _, m := range next {
			if m != nil {
				occupy(used, int(m.first), m.Tables)
			}
		}
		if placeOthers(used, list, next, firsts) {
			return next, firsts
		}
	}
}

// placeOthers finds tables for those that do not go on.
func placeOthers(used []bool, list []Slice, next []*member, firsts []uint8) bool {
	for i := range list {
		if next[i] != nil {
			continue
		}
		at := gap(used, list[i].Tables)
		if at < 0 {
			return false
		}
		occupy(used, at, list[i].Tables)
		firsts[i] = uint8(at)
	}
	return true
}

func occupy(used []bool, first, tables int) {
	for i := range tables {
		used[first+i] = true
	}
}

// gap is where so many tables in a row are free; -1: nowhere.
func gap(used []bool, tables int) int {
	for at := 1; at+tables <= len(used); at++ {
		if !slices.Contains(used[at:at+tables], true) {
			return at
		}
	}
	return -1
}

// goesOn says whether what a slice has is right for another Slice, too.
func (s *member) goesOn(is *Slice) bool {
	return s.Name == is.Name && s.Default == is.Default && s.Tables == is.Tables && reflect.DeepEqual(s.Match, is.Match) &&
		(len(is.Ports) == 0 || len(s.Ports) > 0) && !slices.ContainsFunc(s.Ports, func(p uint32) bool { return len(is.Ports) > 0 && !slices.Contains(is.Ports, p) })
}

// leave has those that do not go on give up what they have, before anything is
// remembered of the others: what is cut short here is done again.
func (l *Local) leave(next []*member) error {
	l.members = slices.DeleteFunc(slices.Clone(l.members), func(m *member) bool {
		if slices.Contains(next, m) {
			return false
		}
		m.disconnect()
		m.groups.release(of13.GroupAll, of13.GroupAll)
		m.meters.release(of13.MeterAll, of13.MeterAll)
		if m.rated != 0 {
			l.meters.give(m.rated)
			l.note(m.rated, 0)
		}
		return true
	})
	return l.settle()
}

// begin has slices get their packets.
func (l *Local) begin(fresh []*member) error {
	if l.config.Miss {
		for _, m := range fresh {
			if err := m.addMisses(); err != nil {
				return err
			}
		}
	}
	if err := l.remember(); err != nil {
		return err
	}
	return l.settle()
}

// addMisses adds the table-miss entry of every table.
func (s *member) addMisses() error {
	for table := range s.Tables {
		err := s.changed(&of13.FlowMod{
			Table: uint8(table), Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
			Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{of13.Output(of13.PortController)}}},
		})
		if err != nil {
			return fmt.Errorf("slice %s: add the table-miss entry of table %d: %w", s.Name, table, err)
		}
	}
	return nil
}

// Begin has all slices be connected until ctx is done, and all count those
// connections.
func (l *Local) Begin(ctx context.Context, conf *tls.Config, log func(error), all *sync.WaitGroup) {
	l.run = &running{ctx, conf, log, all}
	for _, m := range l.members {
		l.connect(m)
	}
}

// connect keeps up the connections that a slice is to have, and no others.
func (l *Local) connect(m *member) {
	if l.run == nil {
		return
	}
	for t, end := range m.links {
		if !slices.Contains(m.Controllers, t) {
			end()
			delete(m.links, t)
		}
	}
	for _, t := range m.Controllers {
		if m.links[t] != nil {
			continue
		}
		ctx, end := context.WithCancel(l.run.ctx)
		m.links[t] = end
		name, hub, run := m.Name, m.hub, l.run
		run.all.Go(func() {
			keepUp(ctx, hub, t, run.tls, func(err error) { run.log(fmt.Errorf("slice %s: %w", name, err)) })
		})
	}
}

// keepUp tries again where it cannot listen: another slice may have let go of the
// address just now.
func keepUp(ctx context.Context, hub *channel.Hub, t channel.Target, conf *tls.Config, log func(error)) {
	for ctx.Err() == nil {
		if err := hub.Run(ctx, t, conf, log); err != nil && ctx.Err() == nil {
			log(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(firstRetry):
		}
	}
}

// disconnect ends the connections of a slice.
func (s *member) disconnect() {
	for _, end := range s.links {
		end()
	}
	s.hub.Close()
}

// Close ends all connections.
func (l *Local) Close() {
	for _, m := range l.members {
		m.disconnect()
	}
}

// settle has the switch lead packets to the slices that there are, and have nothing
// that is nobody's.
func (l *Local) settle() error {
	var tables [int(of13.TableAll) + 1]bool
	for _, m := range l.members {
		for i := range m.Tables {
			tables[int(m.first)+i] = true
		}
	}
	meters, err := l.meterConfigs()
	if err != nil {
		return err
	}
	list := append([]of13.Message{&of13.Config{Kind: of13.TypeSetConfig, MissSendBytes: of13.NoMaxLen}}, l.rates(meters)...)
	unled, err := l.unled()
	if err != nil {
		return err
	}
	list = append(list, unled...)
	for t := 1; t < l.config.Tables; t++ {
		if !tables[t] {
			list = append(list, &of13.FlowMod{Command: of13.FlowDelete, Table: uint8(t), Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny})
		}
	}
	strangers, err := l.strangers(meters)
	if err != nil {
		return err
	}
	if err := l.under.change(append(list, strangers...)...); err != nil {
		return err
	}
	return l.look()
}

// unled are the changes that make the entries of table 0 those that lead to slices.
func (l *Local) unled() (list []of13.Message, err error) {
	parts, err := askMultipart(l.under, &of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{OutPort: of13.PortAny, OutGroup: of13.GroupAny}})
	if err != nil {
		return nil, err
	}
	there, replaced := make(map[string]*of13.FlowMod), make(map[string]bool)
	for _, part := range parts {
		for _, f := range part.Flows {
			m := &of13.FlowMod{Command: of13.FlowDeleteStrict, Priority: f.Priority, Match: of13.Match{Fields: slices.Clone(f.Match.Fields)}, Instructions: f.Instructions, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny}
			there[led(m)] = m
			m.Instructions = nil
		}
	}
	var fresh []of13.Message
	for _, m := range l.members {
		for _, e := range m.leading() {
			key := led(e.(*of13.FlowMod))
			if there[key] == nil {
				fresh = append(fresh, e)
				replaced[ledBy(e.(*of13.FlowMod))] = true
			}
			delete(there, key)
		}
	}
	for _, m := range there {
		if !replaced[ledBy(m)] { // what is added takes the place of the others at once
			list = append(list, m)
		}
	}
	return append(list, fresh...), nil
}

// led tells entries of table 0 from each other.
func led(m *of13.FlowMod) string {
	key := ledBy(m)
	for _, i := range m.Instructions {
		key += fmt.Sprint(" ", i.Type, i.Table, i.Meter)
	}
	return key
}

// ledBy tells those that take each other's place.
func ledBy(m *of13.FlowMod) string {
	fields := slices.Clone(m.Match.Fields)
	slices.SortFunc(fields, func(a, b of13.Field) int { return int(a.ID) - int(b.ID) })
	key := fmt.Sprint(m.Priority)
	for _, f := range fields {
		key += fmt.Sprint(" ", f.ID, f.Value, f.Mask)
	}
	return key
}

// strangers are the deletions of groups and meters that are no slice's. Numbers for
// which there is none any more are given up.
func (l *Local) strangers(meters []of13.MeterConfig) (list []of13.Message, err error) {
	parts, err := askMultipart(l.under, &of13.MultipartRequest{Kind: of13.MultipartGroupDesc})
	if err != nil {
		return nil, err
	}
	there := make(map[uint32]bool)
	for _, part := range parts {
		for _, g := range part.GroupDescs {
			if there[g.Group] = l.somebodys((*member).groupNumbers, g.Group); !there[g.Group] {
				list = append(list, &of13.GroupMod{Command: of13.CommandDelete, Kind: g.Kind, Group: g.Group})
			}
		}
	}
	l.giveUp((*member).groupNumbers, there)
	clear(there)
	for _, m := range meters {
		there[m.Meter] = l.somebodys((*member).meterNumbers, m.Meter)
		if !there[m.Meter] && !slices.ContainsFunc(l.members, func(s *member) bool { return s.rated == m.Meter }) {
			list = append(list, &of13.MeterMod{Command: of13.CommandDelete, Meter: m.Meter})
		}
	}
	l.giveUp((*member).meterNumbers, there)
	return list, nil
}

// somebodys says whether a number of the switch's is a slice's.
func (l *Local) somebodys(of func(*member) *numbers, there uint32) bool {
	return slices.ContainsFunc(l.members, func(m *member) bool { _, is := of(m).back[there]; return is })
}

// giveUp has slices keep no numbers but those that are there.
func (l *Local) giveUp(of func(*member) *numbers, there map[uint32]bool) {
	for _, m := range l.members {
		n := of(m)
		for own, number := range maps.Clone(n.there) {
			if !there[number] {
				n.remove(own)
			}
		}
	}
}

// look has slices know the switch and its ports.
func (l *Local) look() error {
	parts, err := askMultipart(l.under, &of13.MultipartRequest{Kind: of13.MultipartPortDesc})
	if err != nil {
		return err
	}
	for _, m := range l.members {
		m.features = l.features
		clear(m.ports)
		for _, part := range parts {
			for _, p := range part.PortDescs {
				if m.has(p.Number) {
					m.ports[p.Number] = p
				}
			}
		}
		m.entries = m.Entries // at least as many as it has: the switch is asked when there is one more
	}
	return nil
}

// Turn does one message of each slice; more says that some may wait.
func (l *Local) Turn() (more bool) {
	for _, m := range l.members {
		if in, ok := m.hub.Next(); ok {
			m.hub.Handle(in, m)
			more = true
		}
	}
	return more
}

// Happened tells the slices that it concerns what the switch tells.
func (l *Local) Happened(m of13.Message) {
	for _, s := range l.members {
		s.happened(m)
	}
}

// Of names the slice that has a table; "": none.
func (l *Local) Of(table uint8) string {
	for _, m := range l.members {
		if _, own := m.own(table); own {
			return m.Name
		}
	}
	return ""
}

// Share is which tables share room with a table, and how many entries these may have.
func (l *Local) Share(table uint8) (first, tables, entries int) {
	for _, m := range l.members {
		if _, own := m.own(table); own {
			return int(m.first), m.Tables, m.Entries
		}
	}
	return 0, 1, 0 // table 0 is nobody's
}

// ShareGroups is which groups of the switch share room with one, and how many these may be.
func (l *Local) ShareGroups(number uint32) (mine func(number uint32) bool, groups int) {
	for _, m := range l.members {
		if _, own := m.groups.back[number]; own {
			return func(n uint32) bool { _, own := m.groups.back[n]; return own }, m.Groups
		}
	}
	return func(uint32) bool { return false }, 0 // it is nobody's
}

// Ready, Tick, Flush and Hurry are those of channel.Hub, of all slices.
func (l *Local) Ready(fd int, events uint32) {
	for _, m := range l.members {
		m.hub.Ready(fd, events)
	}
}

// Tick is called several times a second.
func (l *Local) Tick(now time.Time) {
	for _, m := range l.members {
		m.hub.Tick(now)
	}
}

// Flush is called before the driver waits.
func (l *Local) Flush() {
	for _, m := range l.members {
		m.hub.Flush()
	}
}

// Hurry is called when controllers may be reached that were not.
func (l *Local) Hurry() {
	for _, m := range l.members {
		m.hub.Hurry()
	}
}

// Member is a slice, for who looks at the switch.
type Member struct {
	Slice
	First                   int // of its tables at the switch
	Entries, Groups, Meters int // that it has
	Hub                     *channel.Hub
}

// Members lists the slices.
func (l *Local) Members() (list []Member, err error) {
	for _, m := range l.members {
		held, err := m.held()
		if err != nil {
			return nil, err
		}
		list = append(list, Member{Slice: *m.Slice, First: int(m.first), Entries: held, Groups: len(m.groups.there), Meters: len(m.meters.there), Hub: m.hub})
	}
	return list, nil
}
