package xsk

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Device is AF_XDP sockets on a network device, one for each of its receive queues.
// A program at the device hands every frame to them; it goes with the files, so
// also when the process dies. What leaves goes by the first queue, in order.
type Device struct {
	Sockets []*Socket
	Link    int // index of the device in its namespace
	turn    int // who is looked at next
	table   *ebpf.Map
	program *ebpf.Program
	attach  link.Link
	guard   int // a packet socket that gets nothing and keeps the device promiscuous
}

// Open opens sockets on a device of the calling thread's namespace.
func Open(name string) (*Device, error) {
	d := &Device{guard: -1}
	if err := d.bind(name); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Over is a device of sockets that are open, for tests.
func Over(sockets ...*Socket) *Device { return &Device{Sockets: sockets, guard: -1} }

func (d *Device) bind(name string) error {
	conn, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	l, err := conn.LinkByName(name)
	if err != nil {
		return err
	}
	d.Link = l.Index
	if d.guard, err = promiscuous(l.Index); err != nil {
		return err
	}
	return d.open(l.Index, l.MTU+ethernet, queues(d.guard, name))
}

// promiscuous keeps a device so as long as the socket that it gives is open.
func promiscuous(link int) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	member := unix.PacketMreq{Ifindex: int32(link), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ethernet is a header with two tags.
const ethernet = 22

func (d *Device) open(link, size, queues int) (err error) {
	d.table, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(queues)})
	if err != nil {
		return err
	}
	for q := range queues {
		s, err := newSocket(size)
		d.Sockets = append(d.Sockets, s)
		if err != nil {
			return err
		}
		if err := s.bind(link, q); err != nil {
			return err
		}
		if err := d.table.Put(uint32(q), uint32(s.fd)); err != nil {
			return fmt.Errorf("table of sockets: %w", err)
		}
	}
	return d.redirect(link)
}

// redirect attaches the program, by the driver where it can.
func (d *Device) redirect(at int) (err error) {
	d.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: toSocket(d.table.FD())})
	if err != nil {
		return fmt.Errorf("load the program for AF_XDP: %w", err)
	}
	if d.attach, err = link.AttachXDP(link.XDPOptions{Program: d.program, Interface: at}); err != nil {
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

// Close gives up the sockets and takes the program away.
func (d *Device) Close() {
	if d.attach != nil {
		d.attach.Close()
	}
	if d.program != nil {
		d.program.Close()
	}
	if d.table != nil {
		d.table.Close()
	}
	for _, s := range d.Sockets {
		s.close()
	}
	if d.guard >= 0 {
		unix.Close(d.guard)
	}
	*d = Device{guard: -1}
}

// Next is a frame that arrived at any queue, and the socket that gave it; it is to
// be released there before the next one is taken from it. nil: there is none.
func (d *Device) Next() ([]byte, *Socket) {
	for range d.Sockets {
		s := d.Sockets[d.turn]
		if d.turn++; d.turn == len(d.Sockets) {
			d.turn = 0
		}
		if b := s.Next(); b != nil {
			return b, s
		}
	}
	return nil, nil
}

// Out is the socket by which frames leave.
func (d *Device) Out() *Socket { return d.Sockets[0] }

// Lost are the frames that found no place since it was asked last.
func (d *Device) Lost() (n uint64) {
	for _, s := range d.Sockets {
		n += s.lost()
	}
	return n
}
