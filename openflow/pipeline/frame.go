package pipeline

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"sublet/openflow/of13"
)

// Frame makes a packet that has fields, and of all others zeros: the shortest of its
// protocols. A field that such packets do not have is an error.
func Frame(fields []of13.Field) ([]byte, error) {
	var p packet
	p.load(bare(fields), 0)
	for i := range fields {
		f := &fields[i]
		switch f.ID {
		case of13.InPort, of13.InPhyPort, of13.EthType, of13.IPProto, of13.ICMPv4Type, of13.ICMPv6Type, of13.NSHMDType, of13.NSHNP:
			continue // of the port, or made with the packet
		case of13.VLANVID:
			if f.Value.Lo&of13.VLANPresent == 0 {
				continue
			}
		}
		if f.Masked {
			return nil, fmt.Errorf("%s has a mask: a packet has one value of it", of13.Fields[f.ID].Name)
		}
		if of13.Fields[f.ID].ReadOnly || f.ID == of13.Metadata || f.ID == of13.TunnelID || !p.setField(f) {
			return nil, fmt.Errorf("a packet of these protocols has no %s", of13.Fields[f.ID].Name)
		}
	}
	return append([]byte(nil), p.finish()...), nil
}

// bare is a packet of the protocols of fields, without addresses.
func bare(fields []of13.Field) []byte {
	has := make(map[of13.FieldID]uint64)
	for _, f := range fields {
		has[f.ID] = f.Value.Lo
	}
	b := make([]byte, 12, minFrame)
	if has[of13.VLANVID]&of13.VLANPresent != 0 {
		b = append(b, 0x81, 0, 0, 0)
	}
	kind := uint16(has[of13.EthType])
	b = binary.BigEndian.AppendUint16(b, kind)
	l4 := bareTransport(byte(has[of13.IPProto]), has)
	switch kind {
	case 0x0800:
		b = append(b, 0x45, 0, 0, byte(20+len(l4)), 0, 0, 0, 0, 64, byte(has[of13.IPProto]))
		b = append(append(b, make([]byte, 10)...), l4...)
	case 0x86dd:
		b = append(b, 0x60, 0, 0, 0, 0, byte(len(l4)), byte(has[of13.IPProto]), 64)
		b = append(append(b, make([]byte, 32)...), l4...)
	case 0x0806:
		b = append(b, 0, 1, 8, 0, 6, 4, 0, 1)
	case 0x8847, 0x8848:
		b = append(b, 0, 0, 1, 64)
	case of13.EthTypeNSH:
		kind, next := has[of13.NSHMDType], has[of13.NSHNP]
		b = appendNSH(b, uint8(max(kind, 1)), uint8(cmp.Or(next, nextEthernet)))
	}
	return append(b, make([]byte, max(minFrame-len(b), 0))...)
}

// bareTransport is a header above IP.
func bareTransport(proto byte, has map[of13.FieldID]uint64) []byte {
	switch proto {
	case 6:
		b := make([]byte, 20)
		b[12] = 0x50
		return b
	case 17:
		return []byte{0, 0, 0, 0, 0, 8, 0, 0}
	case 132:
		return make([]byte, 12)
	case 1:
		return append([]byte{byte(has[of13.ICMPv4Type])}, make([]byte, 7)...)
	case 58:
		b := append([]byte{byte(has[of13.ICMPv6Type])}, make([]byte, 31)...)
		if b[0] == 135 || b[0] == 136 {
			b[24], b[25] = b[0]-134, 1
		}
		return b
	}
	return nil
}
