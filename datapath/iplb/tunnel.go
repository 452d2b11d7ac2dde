package iplb

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"sublet/plan"
	"sublet/vnet"
)

// tunnelSet is the set of the paths of tunnels, which are in none.
const tunnelSet = 1<<32 - 1

func tunnelKey(vni uint32) pathKey { return pathKey{tunnelSet, fmt.Sprint("tunnel ", vni)} }

// SetTunnel makes all packets of a tunnel over UDP (VXLAN, Geneve) take one path,
// whatever rules there are for their target: as a list between the tunnel's own
// headers. No relays: the fabric's own way.
func (t *Table) SetTunnel(vni uint32, relays []netip.Addr) error {
	if vni == 0 || vni > vnet.MaxVNI {
		return fmt.Errorf("tunnel %d: numbers are 1 to %d", vni, vnet.MaxVNI)
	}
	if err := checkTunnel(relays); err != nil {
		return fmt.Errorf("tunnel %d: %w", vni, err)
	}
	old, known := t.tunnels[vni]
	if known {
		delete(t.paths, tunnelKey(vni))
	}
	id, _, err := t.path(tunnelKey(vni), relays, plan.ByUDP)
	if err != nil {
		return err
	}
	if err := t.c.Maps["tunnels"].Put(vni, id); err != nil {
		return fmt.Errorf("put the path of tunnel %d: %w", vni, err)
	}
	t.tunnels[vni] = id
	if err := t.update(func(s *iplbState) { s.Tunnels = 1; s.Generation++ }); err != nil || !known {
		return err
	}
	return t.sweepNumber(old)
}

func checkTunnel(relays []netip.Addr) error {
	if i := slices.IndexFunc(relays, func(a netip.Addr) bool { return !a.Is4() }); i >= 0 {
		return fmt.Errorf("relay %s is not an IPv4 address", relays[i])
	}
	return checkRelays(relays)
}

// RemoveTunnel takes a tunnel's path out.
func (t *Table) RemoveTunnel(vni uint32) error {
	id, known := t.tunnels[vni]
	if !known {
		return nil
	}
	if err := t.c.Maps["tunnels"].Delete(vni); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove the path of tunnel %d: %w", vni, err)
	}
	delete(t.tunnels, vni)
	delete(t.paths, tunnelKey(vni))
	return errors.Join(t.changed(), t.sweepNumber(id))
}

// Tunnels lists the relays of the tunnels that have a path, as the kernel has
// them.
func (t *Table) Tunnels() (map[uint32][]netip.Addr, error) {
	all := make(map[uint32][]netip.Addr)
	var vni, id uint32
	it := t.c.Maps["tunnels"].Iterate()
	for it.Next(&vni, &id) {
		var p iplbPath
		if err := t.c.Maps["paths"].Lookup(id, &p); err != nil {
			return nil, fmt.Errorf("read the path of tunnel %d: %w", vni, err)
		}
		all[vni] = addressesOf(p)
	}
	return all, it.Err()
}

// TunnelLoad is what a tunnel has carried on its path.
func (t *Table) TunnelLoad(vni uint32) (Load, error) {
	id, known := t.tunnels[vni]
	if !known {
		return Load{}, fmt.Errorf("tunnel %d has no path", vni)
	}
	return t.load(id)
}

// readTunnels reads what an earlier process left.
func (t *Table) readTunnels() error {
	var vni, id uint32
	it := t.c.Maps["tunnels"].Iterate()
	for it.Next(&vni, &id) {
		t.tunnels[vni] = id
		t.paths[tunnelKey(vni)], t.taken[id] = id, tunnelKey(vni)
	}
	return it.Err()
}
