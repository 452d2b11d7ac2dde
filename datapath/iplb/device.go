package iplb

import (
	"fmt"
	"net"
	"net/netip"

	"sublet/datapath/kernel"
)

// Devices lists a host's devices, lo apart, and all its IPv4 addresses but
// those of the machine itself (127.0.0.0/8).
func Devices(h *kernel.Host) (devices []string, addresses []netip.Addr, err error) {
	err = eachDevice(h, func(d net.Interface, its []netip.Prefix) {
		if d.Flags&net.FlagLoopback == 0 {
			devices = append(devices, d.Name)
		}
		for _, p := range its {
			addresses = append(addresses, p.Addr())
		}
	})
	return devices, addresses, err
}

// CheckDevice says what is wrong with the name of a device.
func CheckDevice(h *kernel.Host, device string) error {
	there := false
	err := eachDevice(h, func(d net.Interface, _ []netip.Prefix) { there = there || d.Name == device })
	if err == nil && !there {
		err = fmt.Errorf("there is no device %s: ip link lists them", device)
	}
	return err
}

// SourceOf is the address by which a host is known to the fabric: a single
// one on lo, else the first of the device.
func SourceOf(h *kernel.Host, device string) (source netip.Addr, err error) {
	err = eachDevice(h, func(d net.Interface, its []netip.Prefix) {
		for _, p := range its {
			loopback := d.Flags&net.FlagLoopback != 0
			if loopback && p.IsSingleIP() || d.Name == device && !source.IsValid() {
				source = p.Addr()
			}
		}
	})
	if err == nil && !source.IsValid() {
		err = fmt.Errorf("device %s has no IPv4 address: state --source", device)
	}
	return source, err
}

func eachDevice(h *kernel.Host, visit func(net.Interface, []netip.Prefix)) error {
	return kernel.In(h.Home(), func() error {
		all, err := net.Interfaces()
		if err != nil {
			return fmt.Errorf("list devices: %w", err)
		}
		for _, d := range all {
			texts, err := d.Addrs()
			if err != nil {
				return fmt.Errorf("list addresses of %s: %w", d.Name, err)
			}
			visit(d, ipv4(texts))
		}
		return nil
	})
}

func ipv4(texts []net.Addr) (all []netip.Prefix) {
	for _, t := range texts {
		if p, err := netip.ParsePrefix(t.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			all = append(all, p)
		}
	}
	return all
}
