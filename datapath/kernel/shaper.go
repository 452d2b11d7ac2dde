package kernel

import (
	"encoding/binary"
	"math"

	"golang.org/x/sys/unix"
)

// Shaper is a token bucket: Rate in bytes per second, Burst and Limit (of the
// queue) in bytes.
type Shaper struct {
	Rate  uint64
	Burst uint32
	Limit uint32
}

// Attributes of linux/pkt_sched.h.
const (
	tbfParms, tbfRate64, tbfBurst            = 1, 4, 6
	htbParms, htbInit, htbRate64, htbCeil64  = 1, 2, 6, 7
	linkLayerEthernet                        = 1
	rateSpecSize, tbfParmsSize, htbParmsSize = 12, 36, 44

	rateSpecOverhead                        = 2        // where struct tc_ratespec has it
	htbVersion, htbRateToQuantum, tickShift = 3, 10, 6 // a tick is 64 ns
)

// SetTBF begins a request for a token bucket filter at a device's root.
func SetTBF(index int, s Shaper) *Message {
	return SetQdisc(index, Handle(1, 0), TCRoot, "tbf", func(m *Message) {
		parms := rateSpec(make([]byte, 0, tbfParmsSize), s.Rate)
		parms = append(parms, make([]byte, rateSpecSize)...) // no peak rate
		parms = binary.NativeEndian.AppendUint32(parms, s.Limit)
		parms = append(parms, make([]byte, 8)...) // buffer: by tbfBurst; mtu
		m.Attr(tbfParms, parms).Uint32(tbfBurst, s.Burst)
		if s.Rate > math.MaxUint32 {
			m.Uint64(tbfRate64, s.Rate)
		}
	})
}

// TBF reads the rate (bytes per second) of a token bucket filter.
func (q Qdisc) TBF() uint64 {
	if rate := attr(q.Data, tbfRate64); len(rate) == 8 {
		return binary.NativeEndian.Uint64(rate)
	}
	return rateOf(attr(q.Data, tbfParms))
}

// Shaper reads a token bucket filter back; Burst may be off by a rounding.
func (q Qdisc) Shaper() Shaper {
	s := Shaper{Rate: q.TBF()}
	if parms := attr(q.Data, tbfParms); len(parms) >= tbfParmsSize {
		s.Limit = binary.NativeEndian.Uint32(parms[24:])
		s.Burst = bytesOf(binary.NativeEndian.Uint32(parms[28:]), s.Rate)
	}
	return s
}

// SetHTB begins a request for a hierarchical token bucket at a device's root,
// handle 1:, whose unclassified packets go to class 1:fallback.
func SetHTB(index int, fallback uint16) *Message {
	return SetHTBAt(index, Handle(1, 0), TCRoot, fallback)
}

// SetHTBAt is SetHTB with another handle, at a class.
func SetHTBAt(index int, handle, parent uint32, fallback uint16) *Message {
	return SetQdisc(index, handle, parent, "htb", func(m *Message) {
		b := make([]byte, 0, 20) // struct tc_htb_glob
		for _, v := range []uint32{htbVersion, htbRateToQuantum, uint32(fallback), 0, 0} {
			b = binary.NativeEndian.AppendUint32(b, v)
		}
		m.Attr(htbInit, b)
	})
}

// HTBFallback reads the minor number of the fallback class.
func (q Qdisc) HTBFallback() uint16 {
	b := attr(q.Data, htbInit)
	if len(b) < 12 {
		return 0
	}
	return uint16(binary.NativeEndian.Uint32(b[8:]))
}

// HTBClass is one class: rates in bytes per second, bursts and quantum in
// bytes. Priority 0 borrows first, 7 last.
type HTBClass struct {
	Rate, Ceil        uint64
	Burst, CeilBurst  uint32
	Quantum, Priority uint32
	Overhead          uint16 // bytes that each packet counts more
}

// SetClass begins a request that makes a class or changes it in place. A
// class never moves to another parent.
func SetClass(index int, id, parent uint32, class HTBClass) *Message {
	return setClass(unix.NLM_F_CREATE, index, id, parent, class)
}

// ChangeClass is SetClass of a class that is there; else NotFound.
func ChangeClass(index int, id, parent uint32, class HTBClass) *Message {
	return setClass(0, index, id, parent, class)
}

func setClass(flags, index int, id, parent uint32, class HTBClass) *Message {
	m := NewMessage(unix.RTM_NEWTCLASS, flags, TCHeader(index, id, parent, 0))
	m.String(unix.TCA_KIND, "htb")
	return m.Nest(unix.TCA_OPTIONS, func() {
		b := rateSpec(make([]byte, 0, htbParmsSize), class.Rate)
		b = rateSpec(b, class.Ceil)
		binary.NativeEndian.PutUint16(b[rateSpecOverhead:], class.Overhead)
		binary.NativeEndian.PutUint16(b[rateSpecSize+rateSpecOverhead:], class.Overhead)
		for _, v := range []uint32{ticks(class.Burst, class.Rate), ticks(class.CeilBurst, class.Ceil), class.Quantum, 0, class.Priority} {
			b = binary.NativeEndian.AppendUint32(b, v)
		}
		m.Attr(htbParms, b).Uint64(htbRate64, class.Rate).Uint64(htbCeil64, class.Ceil)
	})
}

// DeleteClass removes a class; a missing one is fine.
func (c *Conn) DeleteClass(index int, id uint32) error {
	err := c.Do(NewMessage(unix.RTM_DELTCLASS, 0, TCHeader(index, id, 0, 0)))
	if NotFound(err) {
		return nil
	}
	return err
}

// HTB reads a class back but for its quantum; bursts may be off by a rounding.
func (q Qdisc) HTB() HTBClass {
	parms := attr(q.Data, htbParms)
	if len(parms) < htbParmsSize {
		return HTBClass{}
	}
	class := HTBClass{Rate: rateOf(parms), Ceil: rateOf(parms[rateSpecSize:]), Priority: binary.NativeEndian.Uint32(parms[40:])}
	if b := attr(q.Data, htbRate64); len(b) == 8 {
		class.Rate = binary.NativeEndian.Uint64(b)
	}
	if b := attr(q.Data, htbCeil64); len(b) == 8 {
		class.Ceil = binary.NativeEndian.Uint64(b)
	}
	class.Overhead = binary.NativeEndian.Uint16(parms[rateSpecOverhead:])
	class.Burst = bytesOf(binary.NativeEndian.Uint32(parms[24:]), class.Rate)
	class.CeilBurst = bytesOf(binary.NativeEndian.Uint32(parms[28:]), class.Ceil)
	return class
}

// SetFIFO begins a request for a queue of limit bytes under a class.
func SetFIFO(index int, handle, parent, limit uint32) *Message {
	return SetQdisc(index, handle, parent, "bfifo", func(m *Message) {
		m.Raw(binary.NativeEndian.AppendUint32(nil, limit))
	})
}

// FIFO reads the limit of such a queue in bytes; 0 of any other.
func (q Qdisc) FIFO() uint32 {
	if q.Kind != "bfifo" {
		return 0
	}
	return uint32Of(q.Data)
}

// rateSpec appends struct tc_ratespec.
func rateSpec(b []byte, rate uint64) []byte {
	spec := make([]byte, rateSpecSize)
	spec[1] = linkLayerEthernet
	binary.NativeEndian.PutUint32(spec[8:], uint32(min(rate, math.MaxUint32)))
	return append(b, spec...)
}

func rateOf(spec []byte) uint64 {
	if len(spec) < rateSpecSize {
		return 0
	}
	return uint64(binary.NativeEndian.Uint32(spec[8:]))
}

// ticks converts bytes at a rate to the kernel's time unit, rounded up.
func ticks(bytes uint32, rate uint64) uint32 {
	if rate == 0 {
		return 0
	}
	return uint32(min((uint64(bytes)*1e9/rate)>>tickShift+1, math.MaxUint32))
}

// bytesOf undoes ticks.
func bytesOf(ticks uint32, rate uint64) uint32 {
	return uint32(min(uint64(ticks)<<tickShift*rate/1e9, math.MaxUint32))
}
