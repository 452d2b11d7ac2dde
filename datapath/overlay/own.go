package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"sublet/plan"
)

// ownTable is a table of the operator's own, beside the entries of leases. Its entries
// stand in the kernel under a number of their own, its profile: a change writes all of
// them under a new one, and then has the device go by that, so that a packet meets the
// table before or after the change.
type ownTable struct {
	plan.TunnelTable
	front   front
	profile uint32 // 0: the kernel does not have it, for reason
	reason  string
	slot    uint32 // counters of what came in, and of entries without any of their own
	slots   map[plan.Identifier]uint32
}

// ownSlots is how many counters entries of such tables have at most, beside those of
// leases.
const ownSlots = 2048

func (t *ownTable) path(e plan.TunnelEntry) path {
	return path{t.Interface, t.Local, e.To, t.row().stack}
}

// keepsTables says whether there are tables, in this process or from an earlier one.
func (p *Part) keepsTables() bool {
	if p.TablesFile == "" {
		return len(p.tables) > 0
	}
	_, err := os.Stat(p.TablesFile)
	return err == nil
}

// ChangeTable changes one table, or leaves everything as it is.
func (p *Part) ChangeTable(c plan.TableChange) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Do == plan.TableSet || p.keepsTables() {
		if err := p.open(); err != nil {
			return err
		}
	}
	if p.unread != nil {
		return p.unread
	}
	err := p.changeTable(c)
	if p.table != nil {
		err = errors.Join(err, p.sweepOwn(), p.sweep())
	}
	return err
}

func (p *Part) changeTable(c plan.TableChange) error {
	was := p.tables[c.Table]
	var stated *plan.TunnelTable
	if was != nil {
		stated = &was.TunnelTable
	}
	changed, err := stated.Change(c)
	if err != nil {
		return err
	}
	next := maps.Clone(p.tables)
	if next == nil {
		next = make(map[string]*ownTable)
	}
	if changed == nil {
		delete(next, c.Table)
		if err := p.become(next); err != nil {
			return err
		}
		p.release(was, nil)
		return nil
	}
	if err := p.fits(changed); err != nil {
		return err
	}
	t := &ownTable{TunnelTable: *changed, slots: make(map[plan.Identifier]uint32)}
	if was != nil {
		t.slot, t.slots = was.slot, maps.Clone(was.slots)
	}
	if t.front, err = p.frontOf(changed); err != nil {
		return err
	}
	next[c.Table] = t
	err = p.prepare(t)
	if err == nil {
		err = p.become(next)
	}
	if err == nil {
		err = p.flip(t)
	}
	if err != nil {
		p.undo(was, t)
		return fmt.Errorf("write table %s: %w", t.Name, err)
	}
	return nil
}

// undo gives back what a table took that did not come about, and lets in again what its
// former self did. What else was written goes with sweepOwn.
func (p *Part) undo(was, t *ownTable) {
	had := map[uint32]bool{}
	if was != nil {
		had[was.slot] = true
		for _, slot := range was.slots {
			had[slot] = true
		}
		_ = p.takeIn(was) // an audit looks
	}
	p.release(t, had)
}

// release gives counters of a table back, but for some.
func (p *Part) release(t *ownTable, but map[uint32]bool) {
	for _, slot := range append(slices.Collect(maps.Values(t.slots)), t.slot) {
		if !but[slot] {
			p.table.free(slot)
		}
	}
}

// become notes other tables, in the file first.
func (p *Part) become(next map[string]*ownTable) error {
	if err := p.saveTables(next); err != nil {
		return fmt.Errorf("keep the tables: %w", err)
	}
	p.tables = next
	return nil
}

// fits says whether a table goes with the others there.
func (p *Part) fits(t *plan.TunnelTable) error {
	entries, ends := len(t.Entries), make(map[netip.Addr]bool)
	for _, e := range t.Entries {
		ends[e.To] = true
	}
	mine := maps.Clone(ends)
	tables := 1
	for _, other := range p.tables {
		if other.Name == t.Name {
			continue
		}
		tables++
		entries += len(other.Entries)
		if other.Device == t.Device || other.Interface == t.Device || other.Device == t.Interface {
			return fmt.Errorf("%w: device %s is of table %s", plan.ErrTableConflict, t.Device, other.Name)
		}
		if other.Encapsulation == t.Encapsulation && plan.Numbered(t.Encapsulation) && other.Number == t.Number {
			return fmt.Errorf("%w: table %s has %s and number %d", plan.ErrTableConflict, other.Name, t.Encapsulation, t.Number)
		}
		for _, e := range other.Entries {
			if other.Encapsulation == t.Encapsulation && !plan.Numbered(t.Encapsulation) && mine[e.To] {
				return fmt.Errorf("%w: table %s has %s with %s, and packets bear nothing else to tell them apart", plan.ErrTableConflict, other.Name, t.Encapsulation, e.To)
			}
			ends[e.To] = true
		}
	}
	switch {
	case tables > plan.MaxTunnelTables:
		return plan.BadTable{Err: fmt.Errorf("a host has %d tables at most", plan.MaxTunnelTables)}
	case entries > plan.MaxTunnelEntries:
		return plan.BadTable{Err: fmt.Errorf("the host's tables would have %d entries, more than %d", entries, plan.MaxTunnelEntries)}
	case len(ends) > plan.MaxTunnelEnds:
		return plan.BadTable{Err: fmt.Errorf("the host's tables would lead to %d hosts, more than %d", len(ends), plan.MaxTunnelEnds)}
	}
	return nil
}

// saveTables writes what there shall be, whole or not at all.
func (p *Part) saveTables(next map[string]*ownTable) error {
	if p.TablesFile == "" {
		return nil
	}
	if len(next) == 0 {
		return missing(os.Remove(p.TablesFile))
	}
	list := make([]plan.TunnelTable, 0, len(next))
	for _, name := range slices.Sorted(maps.Keys(next)) {
		list = append(list, next[name].TunnelTable)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.TablesFile), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(p.TablesFile+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), p.TablesFile)
}

// loadTables takes over the tables of an earlier process, with their counters.
func (p *Part) loadTables() error {
	if p.tables != nil || p.TablesFile == "" {
		return nil
	}
	text, err := os.ReadFile(p.TablesFile)
	if errors.Is(err, fs.ErrNotExist) {
		p.tables = make(map[string]*ownTable)
		return p.sweepOwn()
	}
	var list []plan.TunnelTable
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	p.tables = make(map[string]*ownTable, len(list))
	if err == nil {
		p.profile, err = p.lastProfile()
	}
	if err != nil { // leases have nothing to do with it
		p.unread = fmt.Errorf("read the tables of %s: %w", p.TablesFile, err)
		return nil
	}
	for _, stated := range list {
		t := &ownTable{TunnelTable: stated, slots: make(map[plan.Identifier]uint32)}
		p.recall(t)
		p.tables[t.Name] = t
	}
	if err := p.refresh(); err != nil {
		return err
	}
	return p.sweepOwn()
}
