package kernel

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Handles of traffic control, major and minor number.
const (
	TCRoot    uint32 = 0xffffffff
	TCClsact  uint32 = 0xfffffff1
	TCIngress uint32 = 0xfffffff2 // clsact's ingress hook
	TCEgress  uint32 = 0xfffffff3 // clsact's egress hook
)

// Handle joins a major and a minor number.
func Handle(major, minor uint16) uint32 { return uint32(major)<<16 | uint32(minor) }

// Qdisc is a queueing discipline as read from the kernel.
type Qdisc struct {
	Index  int
	Handle uint32
	Parent uint32
	Kind   string
	Data   []byte
	// Of what left it since it was made; segments of a large packet count each.
	Bytes, Packets uint64
	Drops          uint32 // packets, since it was made; the count runs over
	Backlog        uint32 // bytes that wait
}

// Statistics of linux/gen_stats.h: struct gnet_stats_basic has bytes first, then
// packets in 32 bits, all of which are beside it if there are more; struct
// gnet_stats_queue has the bytes that wait second, and drops third.
const (
	tcaStats2         = 7
	tcaStatsBasic     = 1
	tcaStatsQueue     = 3
	tcaStatsPackets   = 8
	queueBacklogStart = 4
	queueDropsStart   = 8
)

// TCHeader is struct tcmsg.
func TCHeader(index int, handle, parent, info uint32) []byte {
	b := make([]byte, 20)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], handle)
	binary.NativeEndian.PutUint32(b[12:], parent)
	binary.NativeEndian.PutUint32(b[16:], info)
	return b
}

// SetQdisc begins a request that makes a qdisc or changes it in place.
func SetQdisc(index int, handle, parent uint32, kind string, options func(*Message)) *Message {
	m := NewMessage(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, TCHeader(index, handle, parent, 0))
	m.String(unix.TCA_KIND, kind)
	if options != nil {
		m.Nest(unix.TCA_OPTIONS, func() { options(m) })
	}
	return m
}

// DeleteQdisc removes the qdisc at parent; none there is fine.
func (c *Conn) DeleteQdisc(index int, parent uint32) error {
	err := c.Do(NewMessage(unix.RTM_DELQDISC, 0, TCHeader(index, 0, parent, 0)))
	if NotFound(err) {
		return nil
	}
	return err
}

// SetClsact makes the hook for filters on a device; one there is fine.
func (c *Conn) SetClsact(index int) error {
	m := NewMessage(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL, TCHeader(index, 0xffff0000, TCClsact, 0))
	err := c.Do(m.String(unix.TCA_KIND, "clsact"))
	if Exists(err) {
		return nil
	}
	return err
}

// Qdiscs lists the namespace's qdiscs.
func (c *Conn) Qdiscs() ([]Qdisc, error) {
	return c.qdiscs(NewMessage(unix.RTM_GETQDISC, 0, TCHeader(0, 0, 0, 0)))
}

// RootQdisc reads the root qdisc of one device; its Kind is "" when the
// device has none worth a name.
func (c *Conn) RootQdisc(index int) (Qdisc, error) { return c.QdiscAt(index, TCRoot) }

// QdiscAt reads the qdisc at a class of one device as RootQdisc does at its root.
func (c *Conn) QdiscAt(index int, parent uint32) (Qdisc, error) {
	// Traffic control sends its answer as a notification: without NLM_F_ECHO
	// the one who asks does not get it.
	b, err := c.Get(NewMessage(unix.RTM_GETQDISC, unix.NLM_F_ECHO, TCHeader(index, 0, parent, 0)))
	if errors.Is(err, unix.ENOENT) {
		return Qdisc{}, nil
	}
	if err != nil {
		return Qdisc{}, err
	}
	return parseQdisc(b), nil
}

// Class reads one class of a device; NotFound tells that there is none.
func (c *Conn) Class(index int, id uint32) (Qdisc, error) {
	b, err := c.Get(NewMessage(unix.RTM_GETTCLASS, unix.NLM_F_ECHO, TCHeader(index, id, 0, 0)))
	return parseQdisc(b), err
}

// Classes lists the classes of one device.
func (c *Conn) Classes(index int) ([]Qdisc, error) {
	return c.qdiscs(NewMessage(unix.RTM_GETTCLASS, 0, TCHeader(index, 0, 0, 0)))
}

func (c *Conn) qdiscs(m *Message) ([]Qdisc, error) {
	answers, err := c.Dump(m)
	if err != nil {
		return nil, err
	}
	list := make([]Qdisc, 0, len(answers))
	for _, b := range answers {
		list = append(list, parseQdisc(b))
	}
	return list, nil
}

func parseQdisc(b []byte) Qdisc {
	if len(b) < 20 {
		return Qdisc{}
	}
	q := Qdisc{
		Index:  int(binary.NativeEndian.Uint32(b[4:])),
		Handle: binary.NativeEndian.Uint32(b[8:]),
		Parent: binary.NativeEndian.Uint32(b[12:]),
	}
	EachAttr(b[20:], func(kind uint16, v []byte) {
		switch kind {
		case unix.TCA_KIND:
			q.Kind = stringOf(v)
		case unix.TCA_OPTIONS:
			q.Data = v
		case tcaStats2:
			if basic := attr(v, tcaStatsBasic); len(basic) >= 12 {
				q.Bytes, q.Packets = binary.NativeEndian.Uint64(basic), uint64(binary.NativeEndian.Uint32(basic[8:]))
			}
			if all := attr(v, tcaStatsPackets); len(all) >= 8 {
				q.Packets = binary.NativeEndian.Uint64(all)
			}
			if queue := attr(v, tcaStatsQueue); len(queue) >= queueDropsStart+4 {
				q.Backlog = binary.NativeEndian.Uint32(queue[queueBacklogStart:])
				q.Drops = binary.NativeEndian.Uint32(queue[queueDropsStart:])
			}
		}
	})
	return q
}
