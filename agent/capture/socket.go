package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketBuffer holds about a tenth of a second at 2 Gbit/s while w is slow.
const socketBuffer = 32 << 20

// socket is an AF_PACKET socket bound to one device (packet(7)).
type socket struct {
	file    *os.File
	conn    syscall.RawConn
	buffer  []byte // room for a VLAN tag, then the packet
	control []byte
}

// packet is one frame; data is valid until the next one.
type packet struct {
	data     []byte
	length   int // on the wire
	at       time.Time
	outgoing bool
}

// vlanTag is what the kernel takes out of a tagged frame and we put back.
const vlanTag = 4

// listen opens the socket in the namespace of the calling thread.
func listen(device string, opt Options) (*socket, error) {
	// Protocol 0: nothing is received before bind names the device.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), "packet socket")
	if err := prepare(fd, device, opt.Filter); err != nil {
		file.Close()
		return nil, err
	}
	conn, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &socket{file: file, conn: conn, buffer: make([]byte, vlanTag+opt.SnapLen), control: make([]byte, 256)}, nil
}

func prepare(fd int, device string, filter Filter) error {
	request, err := unix.NewIfreq(device)
	if err != nil {
		return fmt.Errorf("%q is not a device name", device)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request); err != nil {
		return fmt.Errorf("find the device: %w", err)
	}
	options := []struct{ level, name, value int }{
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer},
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
		{unix.SOL_PACKET, unix.PACKET_AUXDATA, 1},
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("set packet socket option %d: %w", o.name, err)
		}
	}
	if err := filter.attach(fd); err != nil {
		return err
	}
	all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}) // in network order
	address := &unix.SockaddrLinklayer{Protocol: all, Ifindex: int(request.Uint32())}
	if err := unix.Bind(fd, address); err != nil {
		return fmt.Errorf("bind a packet socket: %w", err)
	}
	return nil
}

// next returns the next packet. Without wait it may be EAGAIN; with it,
// os.ErrDeadlineExceeded after interrupt. ENETDOWN says that the device went
// down or away.
func (s *socket) next(wait bool) (p packet, err error) {
	read := s.conn.Read(func(fd uintptr) bool {
		p, err = s.receive(int(fd))
		return !wait || err != unix.EAGAIN
	})
	if read != nil {
		return packet{}, read
	}
	return p, err
}

// waiting takes a packet that is there, after an interrupt too; EAGAIN: none is.
func (s *socket) waiting() (p packet, err error) {
	control := s.conn.Control(func(fd uintptr) { p, err = s.receive(int(fd)) })
	return p, errors.Join(control, err)
}

func (s *socket) receive(fd int) (packet, error) {
	for {
		data := s.buffer[vlanTag:]
		n, controls, _, from, err := unix.Recvmsg(fd, data, s.control, unix.MSG_TRUNC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return packet{}, err
		}
		p := packet{data: data[:min(n, len(data))], length: n, at: time.Now()}
		if address, ok := from.(*unix.SockaddrLinklayer); ok {
			p.outgoing = address.Pkttype == unix.PACKET_OUTGOING
		}
		s.readControls(&p, s.control[:controls])
		return p, nil
	}
}

// readControls takes the time stamp and puts a VLAN tag back where it was.
func (s *socket) readControls(p *packet, b []byte) {
	messages, err := unix.ParseSocketControlMessage(b)
	if err != nil {
		return
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})):
			stamp := (*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			p.at = time.Unix(stamp.Unix())
		case m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA && len(m.Data) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})):
			s.putTag(p, (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0])))
		}
	}
}

func (s *socket) putTag(p *packet, aux *unix.TpacketAuxdata) {
	const addresses = 12 // both, before the tag
	if aux.Status&unix.TP_STATUS_VLAN_VALID == 0 || len(p.data) < addresses {
		return
	}
	tpid := uint16(unix.ETH_P_8021Q)
	if aux.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		tpid = aux.Vlan_tpid
	}
	whole := s.buffer[:vlanTag+len(p.data)]
	copy(whole, p.data[:addresses])
	binary.BigEndian.PutUint16(whole[addresses:], tpid)
	binary.BigEndian.PutUint16(whole[addresses+2:], aux.Vlan_tci)
	p.data, p.length = whole, p.length+vlanTag
}

// dropped counts what did not fit the socket's buffer since the last call.
func (s *socket) dropped() (uint64, error) {
	var stats *unix.TpacketStats
	var err error
	if control := s.conn.Control(func(fd uintptr) {
		stats, err = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	}); control != nil {
		return 0, control
	}
	if err != nil {
		return 0, fmt.Errorf("read packet statistics: %w", err)
	}
	return uint64(stats.Drops), nil
}

// interrupt ends a waiting next, and all later ones.
func (s *socket) interrupt() { _ = s.file.SetReadDeadline(time.Unix(1, 0)) }

func (s *socket) close() { s.file.Close() }
