package iplbd

import (
	"context"
	"net/netip"
	"slices"

	"sublet/multipath"
	"sublet/plan"
)

// tunnel is a leased tunnel and what it carries.
type tunnel struct {
	spread plan.Spread
	bytes  uint64  // when last looked
	rate   float64 // bytes a look
	known  bool
}

// call runs f in the daemon's loop, which owns the table.
func (d *Daemon) call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case d.calls <- func() { f(); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lease notes a tunnel's path, so that other flows go where it leaves room.
func (d *Daemon) lease(s plan.Spread) { d.leased[s.VNI] = &tunnel{spread: s} }

// lookAtLeases measures the tunnels of leases.
func (d *Daemon) lookAtLeases() {
	for vni, t := range d.leased {
		load, err := d.Table.TunnelLoad(uint32(vni))
		if err != nil {
			d.Log.Error("load not read", "err", err)
			continue
		}
		t.rate = 0
		if t.known && load.Bytes > t.bytes {
			t.rate = float64(load.Bytes - t.bytes)
		}
		t.bytes, t.known = load.Bytes, true
	}
}

// leasedOn is what leases load the open paths of a spread with: tunnels to the
// spread's prefixes by the same relays.
func (d *Daemon) leasedOn(spread plan.Spread, open []int) (loads []multipath.Flow) {
	for _, t := range d.leased {
		if t.rate == 0 || !slices.ContainsFunc(prefixesOf(spread), func(p netip.Prefix) bool { return p.Contains(t.spread.Prefix.Addr()) }) {
			continue
		}
		for at, i := range open {
			if slices.Equal(spread.Paths[i].Relays, t.spread.Paths[0].Relays) {
				loads = append(loads, multipath.Flow{Rate: t.rate, Path: at, Fixed: true})
			}
		}
	}
	return loads
}

// leasedStatus lists the tunnels, by number.
func (d *Daemon) leasedStatus() []PrefixStatus {
	var all []PrefixStatus
	for vni, t := range d.leased {
		load, err := d.Table.TunnelLoad(uint32(vni))
		if err != nil {
			d.Log.Error("load not read", "err", err)
		}
		all = append(all, tunnelStatus(t.spread, load.Packets, load.Bytes))
	}
	slices.SortFunc(all, func(a, b PrefixStatus) int { return int(a.VNI) - int(b.VNI) })
	return all
}

func tunnelStatus(s plan.Spread, packets, bytes uint64) PrefixStatus {
	p := s.Paths[0]
	return PrefixStatus{Prefix: s.Prefix, VNI: s.VNI, Mode: s.Mode, By: s.By, Paths: []PathStatus{{
		Relays: slices.Concat([]netip.Addr{}, p.Relays), Weight: 1, Health: Unprobed, Packets: packets, Bytes: bytes, Lease: p.Lease.String(),
	}}}
}
