package file

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"sublet/vnet"
)

// substrate turns the form into vnet's words.
func (f substrate) substrate() (vnet.Substrate, error) {
	s := vnet.Substrate{}
	for i, w := range f.Switches {
		s.Switches = append(s.Switches, string(w.Name))
		made, speaks, err := w.openFlow("switches[" + strconv.Itoa(i) + "]")
		if err != nil {
			return s, err
		}
		if speaks {
			s.OpenFlow = append(s.OpenFlow, made)
		}
	}
	for _, h := range f.Hosts {
		s.Hosts = append(s.Hosts, vnet.SubstrateNode{
			Name: vnet.HostID(h.Name), Site: string(h.Site), CPU: vnet.CPU(h.CPU),
			Memory: vnet.Bytes(h.Memory), Capacity: vnet.Rate(h.Capacity), Price: h.Price,
		})
	}
	for name, a := range f.Relays {
		if s.Relays == nil {
			s.Relays = make(map[string]netip.Addr, len(f.Relays))
		}
		s.Relays[name] = netip.Addr(a)
	}
	for i, l := range f.Links {
		if l.Encapsulation == "" {
			l.Encapsulation = f.Encapsulation
		}
		made, err := l.link("links[" + strconv.Itoa(i) + "]")
		if err != nil {
			return s, err
		}
		s.Links = append(s.Links, made)
	}
	for _, n := range f.NAT {
		s.NAT = append(s.NAT, n.nat())
	}
	for _, x := range f.Exits {
		s.Exits = append(s.Exits, vnet.Exit{
			Name: string(x.Name), Host: vnet.HostID(x.Host), Interface: x.Interface, VLANs: x.VLAN, Capacity: vnet.Rate(x.Capacity),
		})
	}
	for _, d := range f.Devices {
		s.Devices = append(s.Devices, vnet.Device{Name: d.Name, Host: vnet.HostID(d.Host), Interface: d.Interface})
	}
	for _, j := range f.Joins {
		s.Joins = append(s.Joins, vnet.Join{
			Name: string(j.Name), Host: vnet.HostID(j.Host), Address: netip.Addr(j.Address), Ports: j.Ports, Capacity: vnet.Rate(j.Capacity),
		})
	}
	return s, nil
}

func (f substrateLink) link(path string) (vnet.SubstrateLink, error) {
	l := vnet.SubstrateLink{
		Name: string(f.Name), Ends: f.Ends.strings(), Capacity: vnet.Rate(f.Capacity),
		Latency: time.Duration(f.Latency), Price: f.Price, MTU: f.MTU, Encapsulation: vnet.Encapsulation(f.Encapsulation),
	}
	if f.Share != nil {
		l.Share = int(*f.Share)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Ports)) {
		switch name {
		case string(f.Ends[0]):
			l.Ports[0] = f.Ports[name].port()
		case string(f.Ends[1]):
			l.Ports[1] = f.Ports[name].port()
		default:
			return l, &vnet.FieldError{
				Path:    path + ".ports[" + strconv.Quote(name) + "]",
				Problem: fmt.Sprintf("is no end of this link: name %q or %q", f.Ends[0], f.Ends[1]),
			}
		}
	}
	return l, nil
}

func (f port) port() vnet.Port {
	p := vnet.Port{Interface: f.Interface}
	if f.Address != nil {
		p.Address = netip.Addr(*f.Address)
	}
	return p
}
