package bridge

import (
	"bytes"
	"encoding/binary"
	"slices"

	"sublet/plan"
	"sublet/vnet"
)

// said6 is what a station says of its link-local address.
type said6 struct {
	said
	router bool
}

// ndSum is the Internet checksum's sum of an IPv6 packet's addresses, length,
// protocol and message.
func ndSum(ip []byte) uint16 {
	words := slices.Concat(ip[8:40], ip[4:6], []byte{0, ip[6]}, ip[40:])
	var s uint32
	for i := 0; i+1 < len(words); i += 2 {
		s += uint32(binary.BigEndian.Uint16(words[i:]))
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// resolve6 says what becomes of neighbour discovery.
func (w *reference) resolve6(in int, f []byte) (verdict uint32, counted string, answer []byte) {
	if len(f) < 78 || f[20] != 58 || f[21] != 255 || f[14]>>4 != 6 || f[55] != 0 {
		return 0, "", nil
	}
	ip, kind := f[14:], f[54]
	src, group, target := [16]byte(ip[8:24]), [16]byte(ip[24:40]), [16]byte(ip[48:64])
	if kind == 134 {
		if s := w.locals[src]; s != nil && s.port == in {
			s.router = true
		}
		return 0, "", nil
	}
	size := int(binary.BigEndian.Uint16(ip[4:]))
	if kind != 135 && kind != 136 || size != 24 && size != 32 || len(ip) != size+40 || size == 32 && ip[65] != 1 || ndSum(ip) != 0xffff {
		return 0, "", nil
	}
	option := func(kind byte) []byte {
		if size == 32 && ip[64] == kind {
			return ip[66:72]
		}
		return nil
	}
	if kind == 136 {
		w.listen6(in, target, option(2))
		if s := w.locals[target]; s != nil && s.port == in {
			s.router = ip[44]&0x80 != 0
		}
		return 0, "", nil
	}
	w.listen6(in, src, option(1))
	s := w.locals[target]
	asked := slices.Concat([]byte{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}, target[13:])
	probe := src == [16]byte{}
	asks := bytes.Equal(option(1), f[6:12]) && src != target
	if probe {
		asks = size == 24 || option(14) != nil
	}
	if s == nil || f[0]&1 == 0 || !bytes.Equal(group[:], asked) || !asks || s.claimed || s.port == in {
		return 0, "", nil
	}
	if !w.sends(in, s.port) || !w.sends(s.port, in) {
		return dropped, "isolated", nil
	}
	return redirected, "answer", s.advertisement(f[6:12], src, target)
}

func (w *reference) listen6(in int, address [16]byte, mac []byte) {
	s := w.locals[address]
	if s == nil {
		return
	}
	s.claimed = s.port != in
	if s.port == in && mac != nil {
		s.now = plan.Hardware(mac)
	}
}

// advertisement is what the switch sends for a station.
func (s *said6) advertisement(asker []byte, src, target [16]byte) []byte {
	to, flags := asker, byte(0x60)
	if src == [16]byte{} {
		to, src, flags = []byte{0x33, 0x33, 0, 0, 0, 1}, [16]byte{0: 0xff, 1: 2, 15: 1}, 0x20
	}
	if s.router {
		flags |= 0x80
	}
	f := slices.Concat(to, s.now[:], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255}, target[:], src[:],
		[]byte{136, 0, 0, 0, flags, 0, 0, 0}, target[:], []byte{2, 1}, s.now[:])
	binary.BigEndian.PutUint16(f[56:], ^ndSum(f[14:]))
	return f
}

// nd is random neighbour discovery that often means something.
func (r frames) nd() []byte {
	to, from := r.mac(), r.mac()
	local := func() [16]byte { return vnet.LinkLocal(mac(r.IntN(r.count + 1))).As16() }
	src, target := local(), local()
	if r.IntN(3) == 0 {
		src = [16]byte{}
	}
	dst := [16]byte{0xff, 2, 11: 1, 12: 0xff, 13: target[13], 14: target[14], 15: target[15]}
	if r.IntN(6) == 0 {
		dst = local()
	} else {
		to = plan.Hardware{0x33, 0x33, 0xff, target[13], target[14], target[15]}
	}
	kind := []byte{135, 135, 135, 136, 134}[r.IntN(5)]
	message := slices.Concat([]byte{kind, 0, 0, 0, byte(r.Uint32()), 0, 0, 0}, target[:])
	if n := r.IntN(8); n > 0 {
		sender := from
		if n == 1 {
			sender = r.mac()
		}
		message = append(message, []byte{1, 1, 1, 2, 2, 14, 14}[r.IntN(7)], 1)
		message = append(message, sender[:]...)
	}
	ip := slices.Concat([]byte{0x60, 0, 0, 0, 0, byte(len(message)), 58, 255}, src[:], dst[:], message)
	if r.IntN(12) == 0 {
		ip[r.IntN(8)] ^= 1 << r.IntN(8)
	}
	binary.BigEndian.PutUint16(ip[42:], ^ndSum(ip))
	if r.IntN(12) == 0 {
		ip[40+r.IntN(len(message))] ^= 1 << r.IntN(8)
	}
	if r.IntN(20) == 0 { // padding, or too short
		ip = append(ip, make([]byte, 20)...)[:40+r.IntN(60)]
	}
	return slices.Concat(to[:], from[:], []byte{0x86, 0xdd}, ip)
}
