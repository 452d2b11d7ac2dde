package server

import (
	"net/http"
	"net/netip"
	"slices"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

// getSubstrate shows the graph; only the operator sees how hosts reach one another.
func (s *Server) getSubstrate(w http.ResponseWriter, _ *http.Request, c *call) error {
	var sub vnet.Substrate
	err := s.look(func(_ time.Time, b *lease.Book) error {
		sub = b.Substrate()
		return nil
	})
	if err != nil {
		return err
	}
	if !c.Operator {
		sub = veiled(sub)
	}
	return answer(w, http.StatusOK, sub)
}

// putSubstrate replaces the substrate while leases run.
func (s *Server) putSubstrate(w http.ResponseWriter, r *http.Request, c *call) error {
	var ask api.SubstrateAsk
	if err := s.decode(w, r, c, &ask); err != nil {
		return err
	}
	ask.Substrate.Fill()
	after := api.Aftermath{Moved: []vnet.LeaseID{}, Lost: []api.LostLease{}, Back: []vnet.LeaseID{}}
	err := s.change(func(now time.Time, b *lease.Book) error {
		b.KeepMeasured(&ask.Substrate)
		if err := ask.Substrate.Check(); err != nil {
			return err
		}
		displaced, err := b.Resubstrate(now, ask.Substrate, ask.Displace, ask.DryRun)
		for _, d := range displaced {
			if d.Ends {
				after.Lost = append(after.Lost, api.LostLease{Lease: d.Lease, Reasons: d.Why})
			} else {
				after.Moved = append(after.Moved, d.Lease)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, after)
}

// Substrate is the present one, for who runs in this process.
func (s *Server) Substrate() (sub vnet.Substrate, err error) {
	err = s.look(func(_ time.Time, b *lease.Book) error {
		sub = b.Substrate()
		return nil
	})
	return sub, err
}

// veiled is a substrate without what is the operator's: which machines, ports
// and networks stand behind it.
func veiled(sub vnet.Substrate) vnet.Substrate {
	sub.Hosts, sub.Links = slices.Clone(sub.Hosts), slices.Clone(sub.Links)
	sub.NAT, sub.Exits = slices.Clone(sub.NAT), slices.Clone(sub.Exits)
	for i := range sub.Hosts {
		sub.Hosts[i].Machine = ""
	}
	for i := range sub.Links {
		sub.Links[i].Ports = [2]vnet.Port{}
	}
	for i := range sub.NAT {
		sub.NAT[i].Interface, sub.NAT[i].Via, sub.NAT[i].Refuse = "", netip.Addr{}, nil
	}
	sub.Joins = slices.Clone(sub.Joins)
	for i := range sub.Joins {
		sub.Joins[i].Address, sub.Joins[i].Ports = netip.Addr{}, vnet.PortRange{}
	}
	sub.Devices = slices.Clone(sub.Devices)
	for i := range sub.Devices {
		sub.Devices[i].Interface = ""
	}
	for i := range sub.Exits {
		sub.Exits[i].Interface = ""
	}
	sub.OpenFlow = slices.Clone(sub.OpenFlow)
	for i := range sub.OpenFlow {
		o := &sub.OpenFlow[i]
		o.Connect, o.Listen, o.DatapathID, o.Ports = netip.AddrPort{}, netip.AddrPort{}, 0, nil
	}
	return sub
}
