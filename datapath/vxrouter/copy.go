package vxrouter

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
)

// tableCopy is the program's copy of what one family's tables say.
type tableCopy struct {
	*family
	version *ebpf.Program
	fib     *ebpf.Map

	table map[netip.Prefix]fastpathNexthop // as the map is
	view  view
	read  uint32 // the kernel's version at which view was read
	fresh bool   // the map was changed since the program was told
	off   string // why the stack forwards; "" when it does not
}

// number reads the version of the kernel's table in the thread's namespace.
func (t *tableCopy) number() (uint32, error) {
	version, err := t.version.Run(&ebpf.RunOptions{Data: make([]byte, 64)})
	if err != nil {
		return 0, fmt.Errorf("read the version of the kernel's %s table: %w", t.name, err)
	}
	return version, nil
}

// recall reads what an earlier agent left, so that only what changed since is
// written.
func (t *tableCopy) recall() error {
	t.table = make(map[netip.Prefix]fastpathNexthop)
	var key []byte
	var next fastpathNexthop
	all := t.fib.Iterate()
	for all.Next(&key, &next) {
		t.table[prefixOf(key)] = next
	}
	return all.Err()
}

// refresh brings the copy to what the kernel has now, in the thread's
// namespace; off is what keeps the whole router from the fast path.
func (t *tableCopy) refresh(c *kernel.Conn, ports map[int]port, off string) {
	err := t.survey(c, ports)
	if t.off = cmp.Or(off, t.off); err == nil && t.off == "" {
		err = t.write(t.view.nexthops())
	}
	if err != nil {
		t.off = unfollowed(err)
	}
}

func (t *tableCopy) survey(c *kernel.Conn, ports map[int]port) (err error) {
	if t.read, err = t.number(); err != nil {
		return err
	}
	// Who has just increased it may not have changed the table yet, but holds
	// the lock that this change, of nothing, waits for. (A table of IPv6 has a
	// lock of its own, which reading it waits for.)
	if err := c.Do(kernel.ChangeLink(loopback)); err != nil {
		return err
	}
	t.view, t.off, err = survey(c, t.family, ports, int(t.fib.MaxEntries()))
	return err
}

// loopback is the index of every namespace's first device.
const loopback = 1

// write changes what differs in the program's table. While routes differ the
// program does not use it: the kernel's version is another than the copy's.
func (t *tableCopy) write(want map[netip.Prefix]fastpathNexthop) error {
	for prefix := range t.table {
		if _, stays := want[prefix]; stays {
			continue
		}
		t.fresh = true
		if err := t.fib.Delete(key(prefix)); err != nil {
			return fmt.Errorf("take a route: %w", err)
		}
		delete(t.table, prefix)
	}
	for prefix, next := range want {
		if have, there := t.table[prefix]; there && have == next {
			continue
		}
		t.fresh = true
		if err := t.fib.Put(key(prefix), next); err != nil {
			return fmt.Errorf("put a route: %w", err)
		}
		t.table[prefix] = next
	}
	return nil
}

// row is what the program is told of the copy.
func (t *tableCopy) row() fastpathCopy {
	row := fastpathCopy{Version: t.read}
	if t.off == "" {
		row.On = 1
	}
	return row
}

// missing lists the neighbours that routes lead to and that are not known.
func (t *tableCopy) missing() (list []neighbour) {
	for n := range t.view.wanted() {
		if _, known := t.view.neighbours[n]; !known {
			list = append(list, n)
		}
	}
	return list
}
