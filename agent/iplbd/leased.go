package iplbd

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"

	"sublet/datapath/iplb"
	"sublet/fabric/spread"
	"sublet/plan"
	"sublet/vnet"
)

// tunnel is a leased tunnel and what it carries.
type tunnel struct {
	spread plan.Spread
	bytes  uint64  // when last looked
	rate   float64 // bytes a round
	known  bool
}

// AddTunnel notes a tunnel's path, so that other flows go where it leaves room.
func (d *Daemon) AddTunnel(s plan.Spread) { d.leased[s.VNI] = &tunnel{spread: s} }

// RemoveTunnel forgets a tunnel.
func (d *Daemon) RemoveTunnel(vni vnet.VNI) { delete(d.leased, vni) }

// readTunnelLoads measures the tunnels of leases.
func (d *Daemon) readTunnelLoads() {
	for vni, t := range d.leased {
		load, err := d.Table.TunnelLoad(uint32(vni))
		if err != nil {
			d.Log.Error("load not read", "err", err)
			continue
		}
		if t.known {
			t.rate = spread.Smooth(t.rate, float64(load.Bytes-min(t.bytes, load.Bytes)))
		}
		t.bytes, t.known = load.Bytes, true
	}
}

// leaseLoads is what leases load the open paths of a spread with: tunnels to the
// spread's prefixes by the same relays.
func (d *Daemon) leaseLoads(split plan.Spread, open []int) (loads []spread.Flow) {
	for _, t := range d.leased {
		if t.rate == 0 || !slices.ContainsFunc(prefixesOf(split), func(p netip.Prefix) bool { return p.Contains(t.spread.Prefix.Addr()) }) {
			continue
		}
		for at, i := range open {
			if slices.Equal(split.Paths[i].Relays, t.spread.Paths[0].Relays) {
				loads = append(loads, spread.Flow{Rate: t.rate, Path: at, Fixed: true})
			}
		}
	}
	return loads
}

// tunnelStatuses lists tunnels and what they carried, by number; of one whose
// load cannot be read, only the path.
func tunnelStatuses(table *iplb.Table, tunnels []plan.Spread) (all []PrefixStatus, err error) {
	slices.SortFunc(tunnels, func(a, b plan.Spread) int { return cmp.Compare(a.VNI, b.VNI) })
	for _, s := range tunnels {
		load, missed := table.TunnelLoad(uint32(s.VNI))
		err = errors.Join(err, missed)
		p := s.Paths[0]
		all = append(all, PrefixStatus{Prefix: s.Prefix, VNI: s.VNI, Mode: s.Mode, By: s.By, Paths: []PathStatus{{
			Relays: listed(p.Relays), Weight: 1, Health: Unprobed, Packets: load.Packets, Bytes: load.Bytes, Lease: p.Lease.String(), Owner: p.Lease,
		}}})
	}
	return all, err
}
