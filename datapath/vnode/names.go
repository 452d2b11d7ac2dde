package vnode

import (
	"bufio"
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// localNames begin every hosts file.
const localNames = "127.0.0.1 localhost\n::1 localhost\n"

func (p *Part) namesPath(key string) string { return filepath.Join(p.host.Dir("hosts"), key) }

// setNames writes a hosts file in place, so that running commands, which have
// it mounted, see the change. The directory is root's: names and addresses of
// a network are nobody else's business.
func (p *Part) setNames(t plan.NameTable) error {
	var b bytes.Buffer
	b.WriteString(localNames)
	for _, n := range t.Names {
		fmt.Fprintf(&b, "%s %s\n", n.Address, n.Name)
	}
	p.busy.RLock() // nobody tidies up meanwhile
	defer p.busy.RUnlock()
	if err := kernel.MkdirAll(p.host.Dir("hosts"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(p.namesPath(t.Key()), b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the names of %s: %w", t.Lease, err)
	}
	return nil
}

func (p *Part) deleteNames(t plan.NameTable) error {
	if err := os.Remove(p.namesPath(t.Key())); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("delete the names of %s: %w", t.Lease, err)
	}
	return nil
}

func (p *Part) observeNames(host *plan.Host) error {
	keys, err := p.host.Names("hosts")
	if err != nil {
		return fmt.Errorf("list hosts files: %w", err)
	}
	for _, key := range keys {
		data, err := os.ReadFile(p.namesPath(key))
		if err != nil {
			return err
		}
		id, _ := plan.ParseFabric(key)
		host.Add(plan.NameTable{Lease: id, Names: parseNames(data)})
	}
	return nil
}

// parseNames reads a hosts file back; a file that Do did not write this way
// gives names that no plan has.
func parseNames(data []byte) []plan.Name {
	rest, whole := bytes.CutPrefix(data, []byte(localNames))
	if !whole {
		return []plan.Name{{Name: "damaged"}}
	}
	var names []plan.Name
	for s := bufio.NewScanner(bytes.NewReader(rest)); s.Scan(); {
		address, name, _ := strings.Cut(s.Text(), " ")
		parsed, _ := netip.ParseAddr(address) // an invalid one differs from any plan
		names = append(names, plan.Name{Name: name, Address: parsed})
	}
	return names
}
