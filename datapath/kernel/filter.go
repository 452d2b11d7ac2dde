package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Attributes of cls_bpf (linux/pkt_cls.h).
const (
	bpfFD, bpfName, bpfFlags = 6, 7, 8
	bpfDirectAction          = 1
)

// filterInfo is priority 1, every protocol (ETH_P_ALL in network order).
const filterInfo = 1<<16 | 0x0300

// SetFilter begins a request that attaches a program to a device's ingress,
// or replaces the one there without a gap. name is kept by the kernel.
func SetFilter(index, program int, name string) *Message {
	m := NewMessage(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE, TCHeader(index, 1, TCIngress, filterInfo))
	m.String(unix.TCA_KIND, "bpf")
	return m.Nest(unix.TCA_OPTIONS, func() {
		m.Uint32(bpfFD, uint32(program)).String(bpfName, name).Uint32(bpfFlags, bpfDirectAction)
	})
}

// Filter is the name of the first program attached to a device's ingress, and
// how many filters there are.
func (c *Conn) Filter(index int) (name string, count int, err error) {
	answers, err := c.Dump(NewMessage(unix.RTM_GETTFILTER, 0, TCHeader(index, 0, TCIngress, 0)))
	for _, b := range answers {
		if len(b) < 20 || binary.NativeEndian.Uint32(b[8:]) == 0 {
			continue // the chain's own line, without a handle
		}
		count++
		if options := attr(b[20:], unix.TCA_OPTIONS); count == 1 {
			name = stringOf(attr(options, bpfName))
		}
	}
	return name, count, err
}
