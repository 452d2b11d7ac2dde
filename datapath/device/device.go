// Package device gives interfaces of the host to nodes, each to one at a time.
//
//	node's namespace: tester ==macvlan, passthru== interface of the host
//
// The interface itself stays where it is: whoever has it in a namespace of theirs
// may write its firmware and settings by ethtool, and it would be lost, or end in
// another namespace, with theirs. A macvlan in passthru mode has all its frames, is
// the only one on it, and goes with the namespace; the kernel then gives the
// interface back its own Ethernet address and mode (drivers/net/macvlan.c). Rules keep
// the host's own stack from what comes there (silence.go). A file in $RUN/device/HOST
// marks each device from before it is made until it is gone.
package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// Part does devices. Do may be called concurrently for different items; Observe
// waits until no Do is running.
type Part struct {
	host *kernel.Host
	busy sync.RWMutex // Do: read, Observe: write
}

// New makes the part for one host.
func New(host *kernel.Host) *Part { return &Part{host: host} }

// Kinds is device.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindDevice} }

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	d, ok := step.Item.(plan.Device)
	if !ok {
		return fmt.Errorf("device does not do %s", step.Item.Kind())
	}
	do := p.set
	if step.Op == plan.Delete {
		do = p.delete
	}
	if err := do(d); err != nil {
		return fmt.Errorf("%s device %s: %w", step.Op, d.Key(), err)
	}
	return nil
}

func (p *Part) mark(key string) string { return filepath.Join(p.host.Dir(kind), key) }

const kind = "device" // of files

// set makes the device unless it is right. What else has its name in the node is
// the tenant's, and goes.
func (p *Part) set(d plan.Device) error {
	if err := os.MkdirAll(p.host.Dir(kind), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(p.mark(d.Key()), nil, 0o600); err != nil {
		return err
	}
	s, err := p.open(d.Key())
	if err != nil {
		return err
	}
	defer s.close()
	below, err := s.home.LinkByName(d.Interface)
	if err != nil {
		return fmt.Errorf("interface %s of the host: %w", d.Interface, err)
	}
	if err := usable(s.home, below); err != nil {
		return err
	}
	if err := silence(s.host, p.table(d.Key()), d.Interface); err != nil {
		return err
	}
	have, err := s.devices()
	if err != nil {
		return err
	}
	for _, l := range have {
		if l.Name == d.Name && l.Peer == below.Index {
			return s.inside.Do(kernel.UpLink(l.Index))
		}
	}
	if err := s.clear(d.Name); err != nil {
		return err
	}
	return s.make(d, below)
}

// delete needs no namespace: the device goes with it. The host hears the interface
// again once it is gone.
func (p *Part) delete(d plan.Device) error {
	s, err := p.open(d.Key())
	if err == nil {
		defer s.close()
		err = s.clear("")
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := hear(p.host.Home(), p.table(d.Key())); err != nil {
		return err
	}
	if err := os.Remove(p.mark(d.Key())); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// table is the name of the rules of a device.
func (p *Part) table(key string) string { return "sublet_" + p.host.Host + "/" + key }

// sides are a node's namespace and the host's.
type sides struct {
	host         *os.File
	ns           *os.File
	inside, home *kernel.Conn
}

func (p *Part) open(key string) (*sides, error) {
	s := &sides{host: p.host.Home()}
	var err error
	if s.ns, err = p.host.Open(key); err != nil {
		return nil, err
	}
	if s.inside, err = kernel.DialIn(s.ns); err != nil {
		s.close()
		return nil, err
	}
	if s.home, err = p.host.Dial(""); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sides) close() {
	s.ns.Close()
	for _, c := range []*kernel.Conn{s.inside, s.home} {
		if c != nil {
			c.Close()
		}
	}
}

// devices are those of the node that are on interfaces of the host, under whatever
// name the tenant gave them. What the tenant makes on others has no parent there.
func (s *sides) devices() ([]kernel.Link, error) {
	id, err := s.inside.NamespaceID(s.host.Fd())
	if err != nil {
		return nil, err
	}
	all, err := s.inside.Links()
	if err != nil {
		return nil, err
	}
	var list []kernel.Link
	for _, l := range all {
		if l.Kind == "macvlan" && id >= 0 && l.PeerNS == id {
			list = append(list, l)
		}
	}
	return list, nil
}

// clear takes the node's devices, and what has a name that one needs.
func (s *sides) clear(name string) error {
	list, err := s.devices()
	if err != nil {
		return err
	}
	if l, err := s.inside.LinkByName(name); name != "" && err == nil {
		list = append(list, l)
	}
	for _, l := range list {
		if err := s.inside.DeleteLink(l.Index); err != nil && !kernel.NotFound(err) {
			return err
		}
	}
	return nil
}

// Attribute and value of linux/if_link.h.
const (
	macvlanMode     = 1 // IFLA_MACVLAN_MODE
	macvlanPassthru = 8 // MACVLAN_MODE_PASSTHRU
)

func (s *sides) make(d plan.Device, below kernel.Link) error {
	err := s.home.Do(kernel.NewLink(d.Name, "macvlan", func(m *kernel.Message) { m.Uint32(macvlanMode, macvlanPassthru) }).
		Uint32(unix.IFLA_LINK, uint32(below.Index)).Uint32(unix.IFLA_NET_NS_FD, uint32(s.ns.Fd())))
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("interface %s of the host is used by something else there: take it off (%w)", d.Interface, err)
	}
	if err != nil {
		return fmt.Errorf("make a macvlan device on %s: %w", d.Interface, err)
	}
	l, err := s.inside.LinkByName(d.Name)
	if err != nil {
		return err
	}
	return s.inside.Do(kernel.UpLink(l.Index))
}

// usable says why an interface cannot be a node's now. All of its frames are the
// node's, so the host cannot have an address there.
func usable(home *kernel.Conn, below kernel.Link) error {
	if !below.Up {
		return fmt.Errorf("interface %s of the host is down: bring it up", below.Name)
	}
	all, err := home.Addresses(below.Index)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !a.Local.IsLinkLocalUnicast() {
			return fmt.Errorf("interface %s has the host's address %s: a device needs an interface without", below.Name, a.Local)
		}
	}
	return alone(home, below)
}

// alone refuses an interface that others of the host's stand on: the kernel hands
// tagged frames to those of VLANs first.
func alone(home *kernel.Conn, below kernel.Link) error {
	links, err := home.Links()
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Peer == below.Index && l.PeerNS < 0 && l.Kind != "veth" {
			return fmt.Errorf("interface %s of the host is used by %s there: take it off", below.Name, l.Name)
		}
	}
	return nil
}
