package kernel

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Link is a network device as read from the kernel.
type Link struct {
	Index int
	Name  string
	Alias string
	Kind  string // veth, vxlan, ...
	Up    bool
	Runs  bool // it is up and has a carrier
	All   bool // it takes frames for any address (promiscuous), as somebody set
	MTU   int
	GSO   int // largest segment the stack builds, bytes
	Peer  int // index of a veth's other end, in its namespace
	// PeerNS is the id, in the reading namespace, of the namespace of Peer;
	// -1: the same, or unknown.
	PeerNS int
	// Hardware is its Ethernet address; zero if it has another kind or none.
	Hardware [6]byte
}

// LinkHeader is struct ifinfomsg.
func LinkHeader(index int, flags, change uint32) []byte {
	b := make([]byte, 16)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], flags)
	binary.NativeEndian.PutUint32(b[12:], change)
	return b
}

// GSO attributes of newer kernels than the headers of x/sys know.
const iflaGSOIPv4MaxSize = 63

// SetGSO appends the size limit of segments to a link message.
func SetGSO(m *Message, size int) {
	m.Uint32(unix.IFLA_GSO_MAX_SIZE, uint32(size))
	m.Uint32(iflaGSOIPv4MaxSize, uint32(size))
}

// NewLink begins a request to make a device.
func NewLink(name, kind string, data func(*Message)) *Message {
	return NewLinkAt(0, name, kind, data)
}

// NewLinkAt is NewLink with the device's number; 0: the next free one. A
// number that is taken is EBUSY.
func NewLinkAt(index int, name, kind string, data func(*Message)) *Message {
	m := NewMessage(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, LinkHeader(index, 0, 0))
	m.String(unix.IFLA_IFNAME, name)
	return m.Nest(unix.IFLA_LINKINFO, func() {
		m.String(unix.IFLA_INFO_KIND, kind)
		if data != nil {
			m.Nest(unix.IFLA_INFO_DATA, func() { data(m) })
		}
	})
}

// ChangeLink begins a change of a device, which stays up or down.
func ChangeLink(index int) *Message {
	return NewMessage(unix.RTM_NEWLINK, 0, LinkHeader(index, 0, 0))
}

// UpLink begins a change of a device that also brings it up.
func UpLink(index int) *Message {
	return NewMessage(unix.RTM_NEWLINK, 0, LinkHeader(index, unix.IFF_UP, unix.IFF_UP))
}

// DownLink begins a change of a device that takes it down.
func DownLink(index int) *Message {
	return NewMessage(unix.RTM_NEWLINK, 0, LinkHeader(index, 0, unix.IFF_UP))
}

// Quiet keeps a device from making an IPv6 address for itself. A kernel without
// IPv6 has nothing to set.
func (c *Conn) Quiet(index int) error {
	const generateMode, generateNone = 8, 1 // IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE
	m := ChangeLink(index)
	m.Nest(unix.IFLA_AF_SPEC, func() { m.Nest(unix.AF_INET6, func() { m.Uint8(generateMode, generateNone) }) })
	err := c.Do(m)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// DeleteLink removes a device; a missing one is fine.
func (c *Conn) DeleteLink(index int) error {
	err := c.Do(NewMessage(unix.RTM_DELLINK, 0, LinkHeader(index, 0, 0)))
	if NotFound(err) {
		return nil
	}
	return err
}

// dying marks devices to delete together; nothing else uses this group.
const dying = 0x5ab1e7

// DeleteLinks removes devices all at once, which takes the kernel hardly
// longer than one; missing ones are fine.
func (c *Conn) DeleteLinks(indexes []int) error {
	for _, index := range indexes {
		err := c.Do(ChangeLink(index).Uint32(unix.IFLA_GROUP, dying))
		if err != nil && !NotFound(err) {
			return err
		}
	}
	err := c.Do(NewMessage(unix.RTM_DELLINK, 0, LinkHeader(0, 0, 0)).Uint32(unix.IFLA_GROUP, dying))
	if NotFound(err) {
		return nil
	}
	return err
}

// skipStats asks for links without their counters (RTEXT_FILTER_SKIP_STATS).
const skipStats = 1 << 3

// Links lists the namespace's devices.
func (c *Conn) Links() ([]Link, error) {
	m := NewMessage(unix.RTM_GETLINK, 0, LinkHeader(0, 0, 0)).Uint32(unix.IFLA_EXT_MASK, skipStats)
	answers, err := c.Dump(m)
	if err != nil {
		return nil, err
	}
	links := make([]Link, 0, len(answers))
	for _, b := range answers {
		links = append(links, parseLink(b))
	}
	return links, nil
}

// LinkByName reads one device; NotFound tells that there is none.
func (c *Conn) LinkByName(name string) (Link, error) {
	m := NewMessage(unix.RTM_GETLINK, 0, LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, name)
	b, err := c.Get(m.Uint32(unix.IFLA_EXT_MASK, skipStats))
	if err != nil {
		return Link{}, err
	}
	return parseLink(b), nil
}

// LinkByIndex is LinkByName by number.
func (c *Conn) LinkByIndex(index int) (Link, error) {
	b, err := c.Get(NewMessage(unix.RTM_GETLINK, 0, LinkHeader(index, 0, 0)).Uint32(unix.IFLA_EXT_MASK, skipStats))
	if err != nil {
		return Link{}, err
	}
	return parseLink(b), nil
}

func parseLink(b []byte) Link {
	l := Link{PeerNS: -1}
	if len(b) < 16 {
		return l
	}
	l.Index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	l.Up = binary.NativeEndian.Uint32(b[8:])&unix.IFF_UP != 0
	l.All = binary.NativeEndian.Uint32(b[8:])&unix.IFF_PROMISC != 0
	l.Runs = l.Up && binary.NativeEndian.Uint32(b[8:])&unix.IFF_LOWER_UP != 0
	EachAttr(b[16:], l.attr)
	return l
}

func (l *Link) attr(kind uint16, v []byte) {
	switch kind {
	case unix.IFLA_IFNAME:
		l.Name = stringOf(v)
	case unix.IFLA_IFALIAS:
		l.Alias = stringOf(v)
	case unix.IFLA_ADDRESS:
		if len(v) == len(l.Hardware) {
			l.Hardware = [6]byte(v)
		}
	case unix.IFLA_MTU:
		l.MTU = int(uint32Of(v))
	case unix.IFLA_LINK:
		l.Peer = int(uint32Of(v))
	case unix.IFLA_LINK_NETNSID:
		l.PeerNS = int(int32(uint32Of(v)))
	case unix.IFLA_GSO_MAX_SIZE:
		l.GSO = int(uint32Of(v))
	case unix.IFLA_LINKINFO:
		l.Kind = stringOf(attr(v, unix.IFLA_INFO_KIND))
	}
}

// NamespaceID is the id by which this namespace knows another one, as in
// Link.PeerNS; -1: it does not.
func (c *Conn) NamespaceID(fd uintptr) (int, error) {
	m := NewMessage(unix.RTM_GETNSID, 0, make([]byte, 4)) // struct rtgenmsg, padded
	b, err := c.Get(m.Uint32(unix.NETNSA_FD, uint32(fd)))
	if err != nil || len(b) < 4 {
		return -1, err
	}
	return int(int32(uint32Of(attr(b[4:], unix.NETNSA_NSID)))), nil
}
