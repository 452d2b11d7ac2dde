package pipeline

import (
	"bytes"

	"sublet/openflow/of13"
)

// keptPackets is how many packets are kept for controllers: of these the last
// ones, whoever asks.
const keptPackets = 256

// kept is a packet of which controllers have got the beginning.
type kept struct {
	number uint32
	frame  []byte // nil: it has been asked for
	inPort uint32
}

// buffers has packets by their numbers, modulo its length.
type buffers struct {
	slots [keptPackets]kept
	last  uint32
}

// keep gives a packet a number.
func (b *buffers) keep(frame []byte, inPort uint32) uint32 {
	if b.last++; b.last == of13.NoBuffer {
		b.last = 1
	}
	b.slots[b.last%keptPackets] = kept{b.last, bytes.Clone(frame), inPort}
	return b.last
}

// take gives a packet to who asks for it first.
func (b *buffers) take(number uint32) (kept, error) {
	slot := &b.slots[number%keptPackets]
	switch {
	case slot.number != number || number == 0:
		return kept{}, of13.BadRequestBufferUnknown
	case slot.frame == nil:
		return kept{}, of13.BadRequestBufferEmpty
	}
	k := *slot
	slot.frame = nil
	return k, nil
}

// resume takes a packet that was kept through the tables.
func (s *Switch) resume(now int64, number uint32) error {
	k, err := s.kept.take(number)
	if err != nil {
		return err
	}
	s.afterwards(func() {
		r := s.begin()
		r.load(k.frame, k.inPort)
		r.now = now
		s.classify(r)
	})
	return nil
}
