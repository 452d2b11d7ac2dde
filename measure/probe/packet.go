package probe

import (
	"encoding/binary"

	"sublet/measure"
)

// header begins every datagram and, its first half, every TCP stream. What
// does not carry the run's number is a stranger's and is ignored.
type header struct {
	run   uint64
	flow  uint32
	epoch uint32
	seq   uint64
}

const (
	headerSize = 24
	helloSize  = 12             // run and flow, all that a TCP stream says
	pingSize   = headerSize + 8 // and the time it was sent
	pingFrame  = pingSize + measure.UDPOverhead
)

func (h header) put(b []byte) {
	binary.BigEndian.PutUint64(b, h.run)
	binary.BigEndian.PutUint32(b[8:], h.flow)
	binary.BigEndian.PutUint32(b[12:], h.epoch)
	binary.BigEndian.PutUint64(b[16:], h.seq)
}

// parseHeader reads what put wrote; false if b is too short.
func parseHeader(b []byte) (header, bool) {
	if len(b) < headerSize {
		return header{}, false
	}
	return header{
		run:   binary.BigEndian.Uint64(b),
		flow:  binary.BigEndian.Uint32(b[8:]),
		epoch: binary.BigEndian.Uint32(b[12:]),
		seq:   binary.BigEndian.Uint64(b[16:]),
	}, true
}
