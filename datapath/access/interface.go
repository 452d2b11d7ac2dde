package access

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// usable says why an interface cannot lead to an exit now. Without tags all of its
// frames are the lease's, so the host cannot have an address there.
func usable(home *kernel.Conn, below kernel.Link, vlan uint16) error {
	if !below.Up {
		return fmt.Errorf("interface %s of the exit is down: bring it up", below.Name)
	}
	if vlan != 0 {
		return nil
	}
	all, err := home.Addresses(below.Index)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !a.Local.IsLinkLocalUnicast() {
			return fmt.Errorf("interface %s has the host's address %s: an exit without VLANs needs an interface of its own", below.Name, a.Local)
		}
	}
	return nil
}

// promiscuous begins the marks of interfaces that the part made take all frames.
const promiscuous = "promiscuous:"

// listen makes an interface take frames for the addresses of leases.
func (p *Part) listen(home *kernel.Conn, below kernel.Link) error {
	if below.All {
		return nil
	}
	if err := p.makeMark(promiscuous + below.Name); err != nil {
		return err
	}
	return home.Do(setAll(below.Index, unix.IFF_PROMISC))
}

func setAll(index int, flag uint32) *kernel.Message {
	return kernel.NewMessage(unix.RTM_NEWLINK, 0, kernel.LinkHeader(index, flag, unix.IFF_PROMISC))
}

// settle takes away what is of ports and interfaces that are gone or not used any
// more.
func (p *Part) settle(home *kernel.Conn) error {
	t, err := p.tables()
	if err != nil {
		return err
	}
	busy, err := t.sweep(home)
	if err != nil {
		return err
	}
	names, err := p.host.Names(marks)
	if err != nil {
		return err
	}
	for _, mark := range names {
		name, ours := strings.CutPrefix(mark, promiscuous)
		if !ours {
			continue
		}
		l, err := home.LinkByName(name)
		if err != nil && !kernel.NotFound(err) {
			return err
		}
		if err == nil && busy[l.Index] {
			continue
		}
		if err == nil && l.All {
			if err := home.Do(setAll(l.Index, 0)); err != nil {
				return err
			}
		}
		if err := os.Remove(p.mark(mark)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
