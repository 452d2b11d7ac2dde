// Package access builds the ports of switches that lead to VLANs of interfaces of
// the host.
//
//	switch's namespace: ethN ==veth== sx... [access_out: put the tag on] ==> interface
//	                    ethN <==============[access_in: take it off] <====== interface
//
// Programs of traffic control tag, since they need no device for each VLAN and see
// every frame: one with a tag of its own, or that claims to be from the host, is
// dropped. Frames of VLANs that nobody has pass on to the host. The interface takes
// frames for any address meanwhile. A file in $RUN/access/HOST marks each port from
// before it is made until it is gone.
package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// Part does accesses, one at a time.
type Part struct {
	host   *kernel.Host
	mu     sync.Mutex
	loaded *tables
}

// New makes the part for one host.
func New(host *kernel.Host) *Part { return &Part{host: host} }

// Kinds is access.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindAccess} }

// Close lets go of what is open. What is pinned stays and forwards.
func (p *Part) Close() {
	if p.loaded != nil {
		p.loaded.all.Close()
		p.loaded = nil
	}
}

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := step.Item.(plan.Access)
	if !ok {
		return fmt.Errorf("access does not do %s", step.Item.Kind())
	}
	do := p.set
	if step.Op == plan.Delete {
		do = p.delete
	}
	home, err := p.host.Dial("")
	if err != nil {
		return err
	}
	defer home.Close()
	if err := do(home, a); err != nil {
		return fmt.Errorf("%s access %s: %w", step.Op, a.Key(), err)
	}
	return nil
}

const marks = "access" // kind of files

func (p *Part) mark(name string) string { return filepath.Join(p.host.Dir(marks), name) }

func (p *Part) makeMark(name string) error {
	if err := kernel.MkdirAll(p.host.Dir(marks), 0o700); err != nil {
		return err
	}
	return os.WriteFile(p.mark(name), nil, 0o600)
}

// set makes the port, with its programs before it is up.
func (p *Part) set(home *kernel.Conn, a plan.Access) error {
	below, err := home.LinkByName(a.Interface)
	if err != nil {
		return fmt.Errorf("interface %s of the exit: %w", a.Interface, err)
	}
	if err := usable(home, below, a.VLAN); err != nil {
		return err
	}
	if err := p.makeMark(a.Key()); err != nil {
		return err
	}
	t, err := p.tables()
	if err != nil {
		return err
	}
	ns, err := p.host.Open(a.Key())
	if err != nil {
		return err
	}
	defer ns.Close()
	inside, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer inside.Close()
	device, err := p.device(home, inside, ns, a, below.MTU)
	if err != nil {
		return err
	}
	if err := t.lead(p.host.Home(), device.Index, below, a.VLAN); err != nil {
		return err
	}
	if err := inside.Do(kernel.UpLink(device.Peer)); err != nil {
		return err
	}
	if err := home.Do(up(device.Index)); err != nil {
		return err
	}
	if err := p.listen(home, below); err != nil {
		return err
	}
	return p.settle(home)
}

// up brings a device up that asks for no neighbours and answers none.
func up(index int) *kernel.Message {
	return kernel.NewMessage(unix.RTM_NEWLINK, 0, kernel.LinkHeader(index, unix.IFF_UP|unix.IFF_NOARP, unix.IFF_UP|unix.IFF_NOARP))
}

// lead joins a port's device and a VLAN of an interface.
func (t *tables) lead(home *os.File, device int, below kernel.Link, vlan uint16) error {
	if err := t.outlets.Put(uint32(device), accessOutlet{Index: uint32(below.Index), Vlan: vlan, Mac: below.Hardware}); err != nil {
		return fmt.Errorf("lead frames out: %w", err)
	}
	if err := t.pins.Attach(outPin(device), bpf.Hook{Namespace: home, Index: device, Attach: ebpf.AttachTCXIngress, First: true}, t.out); err != nil {
		return err
	}
	if err := t.inlets.Put(accessInletKey{Index: uint32(below.Index), Vlan: uint32(vlan)}, uint32(device)); err != nil {
		return fmt.Errorf("lead frames in: %w", err)
	}
	return t.pins.Attach(inPin(below.Index), bpf.Hook{Namespace: home, Index: below.Index, Attach: ebpf.AttachTCXIngress, First: true}, t.in)
}

// device makes the pair unless it is right; it is returned as it is at home.
func (p *Part) device(home, inside *kernel.Conn, ns *os.File, a plan.Access, mtu int) (kernel.Link, error) {
	have, err := home.LinkByName(a.Device())
	if err == nil {
		if port, err := p.portOf(home, inside, ns, have); err != nil || port == a.Port && have.MTU == mtu {
			return have, err
		}
		err = home.DeleteLink(have.Index)
	}
	if err != nil && !kernel.NotFound(err) {
		return have, err
	}
	if old, err := inside.LinkByName(a.Port); err == nil {
		if err := inside.DeleteLink(old.Index); err != nil {
			return have, fmt.Errorf("delete the old %s: %w", a.Port, err)
		}
	}
	const vethPeer = 1 // VETH_INFO_PEER, linux/veth.h
	m := kernel.NewLink(a.Device(), "veth", func(m *kernel.Message) {
		m.Nest(vethPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, a.Port)
			m.Uint32(unix.IFLA_MTU, uint32(mtu)).Uint32(unix.IFLA_NET_NS_FD, uint32(ns.Fd()))
		})
	}).Uint32(unix.IFLA_MTU, uint32(mtu))
	if err := home.Do(m); err != nil {
		return have, fmt.Errorf("make its device: %w", err)
	}
	if have, err = home.LinkByName(a.Device()); err != nil {
		return have, err
	}
	return have, home.Quiet(have.Index)
}

// portOf names the port that a device at home leads to; "": to none of the switch.
func (p *Part) portOf(home, inside *kernel.Conn, ns *os.File, l kernel.Link) (string, error) {
	id, err := home.NamespaceID(ns.Fd())
	if err != nil || l.Kind != "veth" || id < 0 || l.PeerNS != id {
		return "", err
	}
	port, err := inside.LinkByIndex(l.Peer)
	if kernel.NotFound(err) {
		return "", nil
	}
	return port.Name, err
}

// delete takes the port, and with the last one all that the part has on the host.
func (p *Part) delete(home *kernel.Conn, a plan.Access) error {
	l, err := home.LinkByName(a.Device())
	if err == nil {
		err = home.DeleteLink(l.Index)
	}
	if err != nil && !kernel.NotFound(err) {
		return err
	}
	if left, err := bpf.Left(p.host, pinsPart); err != nil {
		return err
	} else if left {
		if err := p.settle(home); err != nil {
			return err
		}
	}
	names, err := p.host.Names(marks)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(names, func(name string) bool { return name != a.Key() && !strings.HasPrefix(name, promiscuous) }) {
		if err := p.unload(); err != nil {
			return err
		}
	}
	if err := os.Remove(p.mark(a.Key())); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
