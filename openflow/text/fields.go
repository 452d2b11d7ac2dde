package text

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"sublet/openflow/of13"
)

// Fields reads the fields of a packet as ovs-appctl ofproto/trace has them:
// "in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80". Names are those of ovs-ofctl or of the
// specification; a word for a protocol states its types. Values have no masks.
func Fields(s string) ([]of13.Field, error) { return fieldsOf(s, fieldOf) }

// Masked reads fields as ovs-ofctl has them in matches: values may have masks, as
// "ip,nw_src=10.0.0.0/8" or "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00".
func Masked(s string) ([]of13.Field, error) {
	return fieldsOf(s, func(name, text string, before []of13.Field) (of13.Field, error) {
		value, mask, masked := strings.Cut(text, "/")
		f, err := fieldOf(name, value, before)
		if err != nil || !masked {
			return f, err
		}
		m, ok := parseMask(f.ID, mask)
		if !ok || !of13.Fields[f.ID].Maskable {
			return f, fmt.Errorf("%s=%s: %q is no mask of %s", name, text, mask, of13.Fields[f.ID].Name)
		}
		return of13.WithMask(f.ID, f.Value, m), nil
	})
}

// parseMask reads the length of a prefix, of addresses, or the bits that count.
func parseMask(id of13.FieldID, text string) (m of13.U128, ok bool) {
	bits := of13.Fields[id].Bits
	address := bits == 128 || id == of13.IPv4Src || id == of13.IPv4Dst || id == of13.ARPSPA || id == of13.ARPTPA
	if n, err := strconv.ParseUint(text, 10, 8); err == nil && address {
		return of13.Ones(bits).AndNot(of13.Ones(bits - min(int(n), bits))), int(n) <= bits
	}
	m, ok = parseValue(id, "", text)
	return m, ok && m.Len() <= bits
}

func fieldsOf(s string, one func(name, text string, before []of13.Field) (of13.Field, error)) ([]of13.Field, error) {
	var list []of13.Field
	seen := make(map[of13.FieldID]bool)
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, text, valued := strings.Cut(word, "=")
		fields, err := protocolFields(name)
		if valued {
			var f of13.Field
			f, err = one(name, text, list)
			fields = []of13.Field{f}
		}
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			if seen[f.ID] {
				return nil, fmt.Errorf("%s: %s is stated already", word, of13.Fields[f.ID].Name)
			}
			seen[f.ID] = true
			list = append(list, f)
		}
	}
	return list, nil
}

// protocolFields are what a word for a protocol states.
func protocolFields(word string) ([]of13.Field, error) {
	for _, p := range protocols {
		if p.word == word {
			list := []of13.Field{of13.Exact(of13.EthType, p.ethType)}
			if p.ipProto != 0 {
				list = append(list, of13.Exact(of13.IPProto, p.ipProto))
			}
			return list, nil
		}
	}
	return nil, fmt.Errorf("%q is neither a protocol nor NAME=VALUE: write such as tcp or in_port=1", word)
}

// byName finds a field by one of its names. Several share those of ports and of types
// of ICMP: what the packet is decides, of which fields before tell.
func byName(name string, before []of13.Field) (of13.FieldID, bool) {
	ctx := of13.NewContext()
	for i := range before {
		ctx.Learn(&before[i])
	}
	ctx.InPort = true
	found, any := of13.FieldID(0), false
	for id := range of13.NumFields {
		if name != of13.Fields[id].Name && name != names[id] && name != setNames[id] {
			continue
		}
		if ctx.Allows(id) {
			return id, true
		}
		if !any {
			found, any = id, true
		}
	}
	return found, any
}

func fieldOf(name, text string, before []of13.Field) (of13.Field, error) {
	id, known := byName(name, before)
	if !known {
		return of13.Field{}, fmt.Errorf("there is no field %q", name)
	}
	if strings.Contains(text, "/") {
		return of13.Field{}, fmt.Errorf("%s=%s has a mask: state one value", name, text)
	}
	v, ok := parseValue(id, name, text)
	if !ok || v.Len() > of13.Fields[id].Bits {
		return of13.Field{}, fmt.Errorf("%s=%s: %q is no value of %s", name, text, text, of13.Fields[id].Name)
	}
	return of13.Field{ID: id, Value: v, Mask: of13.Ones(of13.Fields[id].Bits)}, nil
}

func parseValue(id of13.FieldID, name, text string) (v of13.U128, ok bool) {
	switch bits := of13.Fields[id].Bits; {
	case bits == 48:
		b, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
		return of13.ReadU128(b), err == nil && len(b) == 6
	case bits == 128 || strings.Count(text, ".") == 3:
		a, err := netip.ParseAddr(text)
		return of13.ReadU128(a.AsSlice()), err == nil && a.Is6() == (bits == 128) && a.Zone() == ""
	}
	if id == of13.InPort {
		for number, word := range reserved {
			if text == word {
				return of13.U128{Lo: uint64(number)}, true
			}
		}
	}
	n, err := strconv.ParseUint(text, 0, 64)
	switch name {
	case "nw_tos":
		ok, n = n&3 == 0, n>>2
	case "dl_vlan":
		ok, n = n <= 0xfff, n|of13.VLANPresent
	case "vlan_vid":
		ok, n = n <= 0x1fff, n|of13.VLANPresent
	default:
		ok = true
	}
	return of13.U128{Lo: n}, ok && err == nil
}
