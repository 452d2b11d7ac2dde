package profile

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"sublet/datapath/kernel"
	"sublet/measure/pktgen"
)

// bed is the two namespaces.
type bed struct {
	function, load *os.File
	in, out        pktgen.Place
	entry          netlink.Link // eth0
}

// Addresses in the frames, of the net for benchmarks (RFC 2544).
var from, to = netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("198.19.0.1")

func newBed() (*bed, error) {
	b := &bed{}
	var err error
	if b.function, err = kernel.NewNamespace(quiet); err == nil {
		b.load, err = kernel.NewNamespace(quiet)
	}
	if err == nil {
		err = b.connect()
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.in, b.out = pktgen.Place{NS: b.load, Device: "in", Addr: from}, pktgen.Place{NS: b.load, Device: "out", Addr: to}
	return b, nil
}

// quiet keeps the kernel from sending frames of its own.
func quiet() error {
	return errors.Join(kernel.Sysctl("ipv6/conf/all/disable_ipv6", "1"), kernel.Sysctl("ipv6/conf/default/disable_ipv6", "1"))
}

// connect makes both pairs.
func (b *bed) connect() error {
	load, err := netlink.NewHandleAt(netns.NsHandle(b.load.Fd()))
	if err != nil {
		return err
	}
	defer load.Close()
	function, err := netlink.NewHandleAt(netns.NsHandle(b.function.Fd()))
	if err != nil {
		return err
	}
	defer function.Close()
	for _, pair := range [][2]string{{"in", "eth0"}, {"out", "eth1"}} {
		v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: pair[0], TxQLen: 1000}, PeerName: pair[1], PeerNamespace: netlink.NsFd(int(b.function.Fd()))}
		if err := load.LinkAdd(v); err != nil {
			return fmt.Errorf("make interface %s: %w", pair[1], err)
		}
		if err := up(load, pair[0]); err != nil {
			return err
		}
		if err := up(function, pair[1]); err != nil {
			return err
		}
	}
	if err := up(function, "lo"); err != nil {
		return err
	}
	b.entry, err = function.LinkByName("eth0")
	return err
}

func up(h *netlink.Handle, name string) error {
	l, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkSetUp(l)
	}
	if err != nil {
		return fmt.Errorf("set interface %s up: %w", name, err)
	}
	return nil
}

// close removes both, with all that is in them.
func (b *bed) close() (err error) {
	for _, ns := range []*os.File{b.function, b.load} {
		if ns != nil {
			err = errors.Join(err, ns.Close())
		}
	}
	return err
}
