package live

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// xdp is a port by AF_XDP sockets, one for each receive queue of its device. A
// program at the device hands every frame to them; it goes with the files, so
// also when the process dies. What leaves goes by the first queue, in order.
type xdp struct {
	sockets []*xsk
	turn    int // who is looked at next
	table   *ebpf.Map
	program *ebpf.Program
	attach  link.Link
	guard   int // of a packet socket that gets nothing and keeps the device promiscuous
}

// openXDP opens AF_XDP sockets on a device that is there.
func openXDP(c PortConfig) (*device, error) {
	d := &device{fd: -1, xdp: &xdp{guard: -1}, batched: true}
	if err := in(c.Namespace, func() error { return d.bindXDP(c.XDP) }); err != nil {
		d.close()
		return nil, fmt.Errorf("open device %s: %w", c.XDP, err)
	}
	return d, nil
}

func (d *device) bindXDP(name string) error {
	conn, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	l, err := conn.LinkByName(name)
	if err != nil {
		return err
	}
	d.link = l.Index
	x := d.xdp
	if x.guard, err = packetSocket(); err != nil {
		return err
	}
	if err := promiscuous(x.guard, l.Index); err != nil {
		return err
	}
	if err := x.open(l.Index, l.MTU+ethernet, queues(x.guard, name)); err != nil {
		return err
	}
	d.fd = x.sockets[0].fd
	return nil
}

// ethernet is a header with two tags.
const ethernet = 22

func (x *xdp) open(link, size, queues int) (err error) {
	x.table, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(queues)})
	if err != nil {
		return err
	}
	for q := range queues {
		s, err := newXSK(size)
		x.sockets = append(x.sockets, s)
		if err != nil {
			return err
		}
		if err := s.bind(link, q); err != nil {
			return err
		}
		if err := x.table.Put(uint32(q), uint32(s.fd)); err != nil {
			return fmt.Errorf("table of sockets: %w", err)
		}
	}
	return x.redirect(link)
}

// redirect attaches the program, by the driver where it can.
func (x *xdp) redirect(at int) (err error) {
	x.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: toSocket(x.table.FD())})
	if err != nil {
		return fmt.Errorf("load the program for AF_XDP: %w", err)
	}
	if x.attach, err = link.AttachXDP(link.XDPOptions{Program: x.program, Interface: at}); err != nil {
		return fmt.Errorf("attach the program for AF_XDP: %w", err)
	}
	return nil
}

// toSocket is: return bpf_redirect_map(&table, ctx->rx_queue_index, XDP_PASS).
func toSocket(table int) asm.Instructions {
	const queueIndex, pass = 16, 2 // struct xdp_md, enum xdp_action (linux/bpf.h)
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, queueIndex, asm.Word),
		asm.LoadMapPtr(asm.R1, table),
		asm.Mov.Imm(asm.R3, pass),
		asm.FnRedirectMap.Call(),
		asm.Return(),
	}
}

// queues are the receive queues of a device, by struct ethtool_channels of any
// socket; one that cannot say has one.
func queues(fd int, name string) int {
	var channels struct{ cmd, maxRX, maxTX, maxOther, maxCombined, rx, tx, other, combined uint32 }
	channels.cmd = unix.ETHTOOL_GCHANNELS
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&channels)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return 1
	}
	return max(1, int(max(channels.rx, channels.combined)))
}

func (x *xdp) close() {
	if x == nil {
		return
	}
	if x.attach != nil {
		x.attach.Close()
	}
	if x.program != nil {
		x.program.Close()
	}
	if x.table != nil {
		x.table.Close()
	}
	for _, s := range x.sockets {
		s.close()
	}
	if x.guard >= 0 {
		unix.Close(x.guard)
	}
	*x = xdp{guard: -1}
}

// lags says that frames wait for a busy device.
func (d *device) lags() bool {
	return d.xdp != nil && len(d.xdp.sockets) > 0 && d.xdp.sockets[0].busy
}

// take copies the next frame of any queue into f; rest is for a long
// one.
func (x *xdp) take(f *slot, rest []byte) (ok, kept bool) {
	for range x.sockets {
		s := x.sockets[x.turn]
		if x.turn++; x.turn == len(x.sockets) {
			x.turn = 0
		}
		if b := s.next(); b != nil {
			kept = f.set(b, rest)
			s.release()
			return true, kept
		}
	}
	return false, false
}

// set makes f the frame b, which an AF_XDP socket gave. kept says that it is
// longer than the slot's own memory and in rest.
func (f *slot) set(b, rest []byte) (kept bool) {
	f.off, f.len = headroom, virtio+len(b)
	if kept = f.len > small-headroom; kept {
		f.mem = rest
	}
	header := f.header()
	clear(header)
	copy(f.frame(), b)
	if start, offset, is := unfinished(b); is {
		header[0] = flagNeedsCsum
		binary.NativeEndian.PutUint16(header[6:], uint16(start))
		binary.NativeEndian.PutUint16(header[8:], uint16(offset))
	}
	return kept
}

// writeAll is device's.
func (x *xdp) writeAll(all []slot, refs []uint32) (n int, err error) {
	s := x.sockets[0]
	for n < len(refs) && err == nil {
		if err = s.frame(&all[refs[n]]); err == nil {
			n++
		}
	}
	if sent := s.send(); err == nil {
		err = sent
	}
	if err != nil && n == len(refs) {
		n--
	}
	return n, err
}

// frame puts f into the ring, in parts if offload left it whole.
func (s *xsk) frame(f *slot) error {
	header := f.header()
	if header[1]&^gsoECN != gsoNone {
		return s.parts(f)
	}
	n := f.len - virtio
	switch {
	case n > s.chunk:
		return unix.EMSGSIZE
	case s.vacant() == 0:
		return errBusy
	}
	start, offset := int(binary.NativeEndian.Uint16(header[6:])), int(binary.NativeEndian.Uint16(header[8:]))
	needs := header[0]&flagNeedsCsum != 0
	if needs && start+offset+2 > n {
		return unix.EINVAL
	}
	b := s.put(n)
	copy(b, f.frame())
	if needs {
		finish(b, start, offset)
	}
	return nil
}

func (s *xsk) parts(f *slot) error {
	c, ok := cut(f)
	switch {
	case !ok:
		return unix.EINVAL
	case c.size() > s.chunk:
		return unix.EMSGSIZE
	case s.vacant() < c.frames():
		if s.send(); s.vacant() < c.frames() {
			return errBusy
		}
	}
	for n := c.next(); n > 0; n = c.next() {
		c.write(s.put(n))
	}
	return nil
}
