package iplb

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// probeText is the length of what the programs read behind a probe's UDP header.
const probeText = 24

// Watch begins to listen for the probes of the i-th path to a prefix that
// carry a secret, and gives the number that they must carry too. Probes heard
// before are forgotten.
func (t *Table) Watch(prefix netip.Prefix, i int, secret uint64) (path uint32, err error) {
	_, id, err := t.member(prefix, i)
	if err != nil {
		return 0, err
	}
	if err := t.c.Maps["probes"].Put(id, iplbProbe{Secret: secret}); err != nil {
		return 0, fmt.Errorf("watch path %d to %s: %w", i, prefix, err)
	}
	return id, nil
}

// Heard is the number of the last probe of a path that came back.
func (t *Table) Heard(path uint32) (uint32, error) {
	var p iplbProbe
	if err := t.c.Maps["probes"].Lookup(path, &p); err != nil {
		return 0, fmt.Errorf("read the probe of path %d: %w", path, err)
	}
	return p.Heard, nil
}

// HeardAt is Heard with the time it came, on the kernel's monotonic clock.
func (t *Table) HeardAt(path uint32) (uint32, time.Duration, error) {
	var p iplbProbe
	err := t.c.Maps["probes"].Lookup(path, &p)
	return p.Heard, time.Duration(p.At), err
}

// Now is the clock of HeardAt.
func Now() time.Duration {
	now, _ := kernelNow() // it fails for unknown clocks only
	return time.Duration(now)
}

// Probe is a packet that follows a path to its last switch and comes back to
// the sender, taken along by nothing but the relays' ordinary forwarding: the
// reflector is the fabric itself (compare RFC 9747).
type Probe struct {
	packet []byte
	text   int // where its number is
	first  netip.Addr
}

// NewProbe makes the probe of a path (by the number of Watch) from source over
// the relays to turn, and by back to source.
func NewProbe(source netip.Addr, relays []netip.Addr, turn netip.Addr, back []netip.Addr, path uint32, secret uint64) *Probe {
	stack := slices.Compact(slices.Concat(relays, []netip.Addr{turn}, back))
	length := 20*len(stack) + 20 + 8 + probeText
	b := make([]byte, length)
	for i, to := range stack {
		probeHeader(b[20*i:], 4, source, to, length-20*i)
	}
	inner := b[20*len(stack):]
	probeHeader(inner, unix.IPPROTO_UDP, source, source, len(inner))
	binary.BigEndian.PutUint16(inner[20:], bpf.PortProbe)
	binary.BigEndian.PutUint16(inner[22:], bpf.PortProbe)
	binary.BigEndian.PutUint16(inner[24:], 8+probeText) // checksum 0: none
	text := inner[28:]
	binary.NativeEndian.PutUint32(text, bpf.ProbeMagic)
	binary.NativeEndian.PutUint32(text[4:], path)
	binary.NativeEndian.PutUint64(text[8:], secret)
	return &Probe{packet: b, text: 20*len(stack) + 28 + 16, first: stack[0]}
}

func probeHeader(b []byte, protocol byte, from, to netip.Addr, length int) {
	b[0], b[1], b[8], b[9] = 0x45, bpf.TOSProbe, outerTTL, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(length))
	copy(b[12:], from.AsSlice())
	copy(b[16:], to.AsSlice())
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
}

// Prober sends probes out of a host's device.
type Prober struct{ fd int }

// NewProber opens its socket.
func NewProber(host *kernel.Host, device string) (*Prober, error) {
	p := &Prober{fd: -1}
	err := kernel.In(host.Home(), func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
		if err != nil {
			return os.NewSyscallError("socket", err)
		}
		p.fd = fd
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, bpf.MarkProbe); err != nil {
			return os.NewSyscallError("mark", err)
		}
		if device == "" {
			return nil
		}
		return os.NewSyscallError("bind to "+device, unix.BindToDevice(fd, device))
	})
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("open a socket for probes: %w", err)
	}
	return p, nil
}

// Close closes the socket.
func (p *Prober) Close() {
	if p.fd >= 0 {
		unix.Close(p.fd)
	}
	p.fd = -1
}

// Send sends a probe with a number.
func (p *Prober) Send(probe *Probe, number uint32) error {
	binary.NativeEndian.PutUint32(probe.packet[probe.text:], number)
	to := unix.SockaddrInet4{Addr: probe.first.As4()}
	return os.NewSyscallError("send a probe", unix.Sendto(p.fd, probe.packet, 0, &to))
}
