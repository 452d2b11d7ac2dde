package kernel

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Rule has packets looked up in a table before others; what is zero fits all.
type Rule struct {
	Family             uint8 // unix.AF_INET or AF_INET6
	Priority           uint32
	Table              uint32
	Src, Dst           netip.Prefix
	IPProtocol         uint8
	SrcPorts, DstPorts [2]uint16 // first and last
}

// AddRule begins a request for a rule that carries a protocol number.
func AddRule(r Rule, protocol uint8) *Message {
	return ruleMessage(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, r, protocol)
}

// DeleteRule begins a request to remove it.
func DeleteRule(r Rule, protocol uint8) *Message {
	return ruleMessage(unix.RTM_DELRULE, 0, r, protocol)
}

func ruleMessage(kind uint16, flags int, r Rule, protocol uint8) *Message {
	header := make([]byte, 12) // struct fib_rule_hdr
	header[0], header[4], header[7] = r.Family, unix.RT_TABLE_UNSPEC, unix.FR_ACT_TO_TBL
	m := NewMessage(kind, flags, header)
	for _, p := range []struct {
		attr   uint16
		length int
		prefix netip.Prefix
	}{{unix.FRA_DST, 1, r.Dst}, {unix.FRA_SRC, 2, r.Src}} {
		if p.prefix.IsValid() {
			m.data[p.length] = uint8(p.prefix.Bits())
			m.Attr(p.attr, p.prefix.Masked().Addr().AsSlice())
		}
	}
	m.Uint32(unix.FRA_PRIORITY, r.Priority).Uint32(unix.FRA_TABLE, r.Table).Uint8(unix.FRA_PROTOCOL, protocol)
	if r.IPProtocol != 0 {
		m.Uint8(unix.FRA_IP_PROTO, r.IPProtocol)
	}
	for _, p := range []struct {
		attr  uint16
		ports [2]uint16
	}{{unix.FRA_SPORT_RANGE, r.SrcPorts}, {unix.FRA_DPORT_RANGE, r.DstPorts}} {
		if p.ports != [2]uint16{} {
			m.Attr(p.attr, binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, p.ports[0]), p.ports[1]))
		}
	}
	return m
}

// Rules lists the rules of both families that carry a protocol number.
func (c *Conn) Rules(protocol uint8) (rules []Rule, err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		answers, err := c.Dump(NewMessage(unix.RTM_GETRULE, 0, append([]byte{family}, make([]byte, 11)...)))
		if err != nil {
			return nil, err
		}
		for _, b := range answers {
			if r, of := parseRule(b); of == protocol {
				rules = append(rules, r)
			}
		}
	}
	return rules, nil
}

func parseRule(b []byte) (r Rule, protocol uint8) {
	if len(b) < 12 {
		return r, 0
	}
	r.Family = b[0]
	ports := func(v []byte) [2]uint16 {
		return [2]uint16{binary.NativeEndian.Uint16(v), binary.NativeEndian.Uint16(v[2:])}
	}
	EachAttr(b[12:], func(kind uint16, v []byte) {
		switch kind {
		case unix.FRA_DST:
			a, _ := netip.AddrFromSlice(v)
			r.Dst = netip.PrefixFrom(a, int(b[1]))
		case unix.FRA_SRC:
			a, _ := netip.AddrFromSlice(v)
			r.Src = netip.PrefixFrom(a, int(b[2]))
		case unix.FRA_PRIORITY:
			r.Priority = uint32Of(v)
		case unix.FRA_TABLE:
			r.Table = uint32Of(v)
		case unix.FRA_PROTOCOL:
			protocol = v[0]
		case unix.FRA_IP_PROTO:
			r.IPProtocol = v[0]
		case unix.FRA_SPORT_RANGE:
			r.SrcPorts = ports(v)
		case unix.FRA_DPORT_RANGE:
			r.DstPorts = ports(v)
		}
	})
	return r, protocol
}
