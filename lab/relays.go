package lab

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
)

// setRelays makes every switch take off headers that are for it, as switch
// chips do: the only thing of ours on a switch. The programs are pinned, and
// go with the lab's directory.
func (l *layout) setRelays(run string) error {
	for _, node := range l.substrate.Switches {
		if err := l.setRelay(run, node); err != nil {
			return fmt.Errorf("make %s a relay: %w", node, err)
		}
	}
	return nil
}

// stateRelays tells the substrate that its switches are relays, unless two of
// them are joined twice: then which link is taken cannot be chosen.
func (l *layout) stateRelays() {
	with := l.substrate
	with.Relays = make(map[string]netip.Addr, len(with.Switches))
	for _, node := range with.Switches {
		with.Relays[node], _ = Loopback(with, node)
	}
	if with.Check() == nil {
		l.substrate = with
	}
}

// relayHost is a switch as the owner of pins.
func (l *layout) relayHost(run, node string) (*kernel.Host, error) {
	return kernel.NewHost(kernel.Config{Host: node, Run: dirOf(run), Namespace: filepath.Join(netnsDir, l.namespace(node)), Cgroup: filepath.Join(Cgroup(run), node)})
}

func (l *layout) setRelay(run, node string) error {
	host, err := l.relayHost(run, node)
	if err != nil {
		return err
	}
	defer host.Close()
	own, _ := Loopback(l.substrate, node)
	table, err := iplb.Open(host, own)
	if err != nil {
		return err
	}
	defer table.Close()
	addresses := []netip.Addr{own}
	for i, link := range l.substrate.Links {
		if end := slices.Index(link.Ends[:], node); end >= 0 {
			addresses = append(addresses, l.ports[i][end].Address)
			if err := table.TakeOff(host, l.ports[i][end].Interface); err != nil {
				return err
			}
		}
	}
	return table.SetRelaying(iplb.Relaying{Addresses: addresses, Senders: []netip.Prefix{underlay}, Inside: []netip.Prefix{underlay}, Shortcut: iplb.Never})
}
