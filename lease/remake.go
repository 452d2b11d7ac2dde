package lease

import (
	"slices"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// inStore stands for the parts of a lease of which hosts have what the store's plans say.
var inStore = map[vnet.HostID][]plan.Item{}

// asStored says that nobody has made a lease's parts yet, since its hosts have them.
func (e *entry) asStored() bool { return e.parts != nil && len(e.parts) == 0 }

// RemakeLater leaves plans as they are stored, which were made of the same leases, until
// a change concerns their host or Remake comes to it. It is called once, before the first
// Tick of a book that was restored. Hosts of leases that do not run yet are not left: they
// may have to get more.
//
// Where a write to the store broke off, plans may be older than leases, so all are made.
func (b *Book) RemakeLater(now time.Time) {
	if b.unfinished {
		return
	}
	hosts := plan.Hosts(b.sub)
	b.rollout.Retain(now, hosts)
	b.everyHost, b.unmade = false, make(map[vnet.HostID]bool, len(hosts))
	for _, name := range hosts {
		if _, has := b.rollout.Plan(name); has {
			b.unmade[name] = true
		} else {
			b.dirty[name] = true
		}
	}
	for _, e := range b.active {
		if e.onHosts() && e.Move == nil && e.Lost == nil && e.Paused == nil && e.State.Up() {
			e.parts = inStore
		} else {
			e.parts = nil
		}
	}
}

// Remake makes the parts of some more leases, or when all are made what some more hosts
// are to have, and says whether any are left. What differs from the store, as after an
// upgrade, is left to the Tick that follows the last of them: both ends of a link then
// change together.
func (b *Book) Remake(most int) (more bool, err error) {
	made, err := b.remakeLeases(most)
	if made == most || err != nil {
		return true, err
	}
	if err := b.remakeHosts(most); err != nil {
		return true, err
	}
	if len(b.unmade) > 0 {
		return true, nil
	}
	b.changeDiffering()
	return false, nil
}

func (b *Book) remakeLeases(most int) (made int, err error) {
	for _, e := range b.active {
		if made == most {
			break
		}
		if e.asStored() && e.onHosts() {
			made++
			if err := b.compile(e); err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

func (b *Book) remakeHosts(most int) error {
	chosen := make(map[vnet.HostID]bool, most)
	for _, name := range plan.Hosts(b.sub) {
		if b.unmade[name] && len(chosen) < most {
			chosen[name] = true
		}
	}
	on, err := b.madeOn(b.deployed(), chosen)
	if err != nil {
		return err
	}
	for name := range chosen {
		if b.rollout.Differs(target(name, on[name])) {
			b.differ = append(b.differ, name)
		}
		delete(b.unmade, name)
	}
	return nil
}

// changeDiffering has the next Tick set the targets of hosts that are to have something else.
func (b *Book) changeDiffering() {
	for _, name := range b.differ {
		b.dirty[name], b.stale = true, true
	}
	b.differ = nil
}

// madeOn lists by host the leases of which some hosts are to have something, with what
// they are to have.
func (b *Book) madeOn(deployed []*entry, hosts map[vnet.HostID]bool) (map[vnet.HostID][]*entry, error) {
	on := make(map[vnet.HostID][]*entry)
	for _, e := range deployed {
		if e.asStored() && slices.ContainsFunc(e.hosts, func(name vnet.HostID) bool { return hosts[name] }) {
			if err := b.compile(e); err != nil {
				return nil, err
			}
		}
		for name := range e.parts {
			if hosts[name] {
				on[name] = append(on[name], e)
			}
		}
	}
	return on, nil
}

// Unmade is how many hosts are left to Remake.
func (b *Book) Unmade() int { return len(b.unmade) }
