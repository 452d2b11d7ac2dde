package ofswitch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/openflow/channel"
	"sublet/openflow/inband"
	"sublet/openflow/of13"
)

// priorityControl is TC_PRIO_CONTROL: queues with classes of priority send such frames first.
const priorityControl = 7

// InBand has control pass the switch by the ports of data (openflow/inband). The
// stack that connects to controllers is behind port LOCAL.
type InBand struct {
	Controllers []netip.AddrPort
	Gateways    []netip.Addr // by which controllers are reached, if they are elsewhere
	Ports       []uint32     // by which control may pass; nil: all
}

// MaxGateways bounds those of a switch in band.
const MaxGateways = inband.MaxGateways

// InBandOf takes the controllers of targets: control of another kind than connections
// to addresses is not told from data.
func InBandOf(targets []channel.Target) (list []netip.AddrPort, err error) {
	for _, t := range targets {
		at, err := netip.ParseAddrPort(t.Address)
		if t.Passive || err != nil {
			return nil, fmt.Errorf("in band, controller %s: write tcp:ADDRESS:PORT or tls:ADDRESS:PORT", t.Address)
		}
		list = append(list, at)
	}
	if len(list) > inband.MaxControllers {
		return nil, fmt.Errorf("in band, %d controllers are more than %d", len(list), inband.MaxControllers)
	}
	return list, nil
}

// band is control in band. It has sockets of its own, which data cannot fill, and is
// served before data.
type band struct {
	*inband.Bridge
	filter  *inband.Filter
	program []bpf.RawInstruction
	only    map[uint32]bool // ports by which control passes; nil: all
	up      map[uint32]bool
	ports   []uint32 // of those
	next    int64    // when there may be questions
	to      []uint32
}

// newBand makes it; nil: control is out of band.
func newBand(c *InBand, hub *channel.Hub, found func()) (*band, error) {
	if c == nil {
		return nil, nil
	}
	b := &band{filter: inband.NewFilter(c.Controllers, c.Gateways), up: make(map[uint32]bool)}
	if c.Ports != nil {
		b.only = map[uint32]bool{of13.PortLocal: true}
		for _, port := range c.Ports {
			b.only[port] = true
		}
	}
	b.Bridge = inband.NewBridge(b.filter, of13.PortLocal, maphash.MakeSeed())
	b.Found, hub.Near = found, true
	var err error
	b.program, err = b.filter.Program()
	return b, err
}

// has says whether a frame is control, which the sockets of control have got.
func (b *band) has(frame []byte) bool {
	if b == nil {
		return false
	}
	_, is := b.filter.Look(frame)
	return is
}

// look takes note of whether a port has a link.
func (b *band) look(now int64, d *device, up bool) {
	if b == nil || d.control == nil || b.up[d.number] == up {
		return
	}
	b.up[d.number] = up
	b.ports = b.ports[:0]
	for port, up := range b.up {
		if up {
			b.ports = append(b.ports, port)
		}
	}
	b.Changed(now, d.number, up)
	b.next = now
}

// listenControl opens a port for control. At one by which control does not pass it is
// received, and goes nowhere.
func (s *Switch) listenControl(d *device) error {
	if s.band == nil {
		return nil
	}
	fd, err := packetSocket(d.index, false, s.band.program)
	if err != nil {
		return fmt.Errorf("packet socket for control on %s: %w", d.name, err)
	}
	d.control = &device{name: d.name, number: d.number, index: d.index, fd: fd, buf: make([]byte, len(d.buf))}
	return errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, priorityControl),
		unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: tagControl, Pad: int32(d.number)}),
	)
}

// first has what a socket of control sends leave before data: by the class of control,
// if its port has one.
func (d *device) first(class bool) {
	if d == nil {
		return
	}
	priority := priorityControl
	if class {
		priority = int(kernel.Handle(queueMajor, bandClass))
	}
	_ = unix.SetsockoptInt(d.fd, unix.SOL_SOCKET, unix.SO_PRIORITY, priority) // of a socket that is open it fails for nobody who may send
}

// untilControl is how many milliseconds there are until questions are due, at most so many.
func (s *Switch) untilControl(most int) int {
	if s.band == nil {
		return most
	}
	left := (s.band.next - s.now()) / int64(time.Millisecond)
	return int(min(max(left+1, 0), int64(most)))
}

// control carries what has come of control, and asks what is due.
func (s *Switch) control(events []unix.EpollEvent) {
	if s.band == nil {
		return
	}
	for _, e := range events {
		if d := s.device(uint32(e.Pad)); e.Fd == tagControl && d != nil && d.control != nil {
			s.controlOf(d.control)
		}
	}
	if now := s.now(); now >= s.band.next {
		var list [][]byte
		list, s.band.next = s.band.Questions(now)
		s.band.next = max(s.band.next, now+int64(time.Millisecond))
		for _, q := range list {
			s.carry(now, of13.PortLocal, q, nil)
		}
	}
}

func (s *Switch) controlOf(d *device) {
	var r received
	now := s.now()
	for range framesOfTurn {
		if !d.read(&r) {
			return
		}
		s.carry(now, d.number, r.frame, &r)
	}
}

// carry sends a frame of control on.
func (s *Switch) carry(now int64, from uint32, frame []byte, r *received) {
	if !s.band.passes(from) {
		return
	}
	s.band.to = s.band.Receive(now, from, frame, s.band.ports, s.band.to[:0])
	for _, port := range s.band.to {
		if d := s.device(port); d != nil && d.control != nil && s.band.passes(port) {
			d.control.write(frame, r)
		}
	}
}

func (b *band) passes(port uint32) bool { return b.only == nil || b.only[port] }

// leaveControl has programs hand over what may be control, which is then in the
// sockets of control as well.
func (c *cache) leaveControl(b *band) {
	if b == nil {
		return
	}
	for i, at := range b.filter.Controllers() {
		c.setting.Control[i] = addressWords(at.Addr())
	}
	c.setting.Controls = uint64(len(b.filter.Controllers()))
}

// addressWords is an address as programs have it.
func addressWords(a netip.Addr) [2]uint64 {
	if a.Is4() {
		b := a.As4()
		return [2]uint64{0, uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return [2]uint64{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}
