package pipeline

import "sublet/openflow/of13"

// Key has all match fields of a packet, or the values or masks of a match.
// Fields whose prerequisites exclude each other share bits.
type Key [16]uint64

// place is where in a key a field is: its lowest bit, in a word. A field of 128
// bits has the word before it as well.
type place struct{ word, shift uint8 }

var places = [of13.NumFields]place{
	of13.Metadata:   {0, 0},
	of13.TunnelID:   {1, 0},
	of13.InPort:     {2, 32},
	of13.InPhyPort:  {2, 0},
	of13.EthDst:     {3, 16},
	of13.EthType:    {3, 0},
	of13.EthSrc:     {4, 16},
	of13.VLANPCP:    {4, 13},
	of13.VLANVID:    {4, 0},
	of13.IPProto:    {5, 0},
	of13.IPDSCP:     {5, 8},
	of13.IPECN:      {5, 14},
	of13.TCPSrc:     {5, 16},
	of13.UDPSrc:     {5, 16},
	of13.SCTPSrc:    {5, 16},
	of13.ICMPv4Type: {5, 16},
	of13.ICMPv6Type: {5, 16},
	of13.ARPOp:      {5, 16},
	of13.TCPDst:     {5, 32},
	of13.UDPDst:     {5, 32},
	of13.SCTPDst:    {5, 32},
	of13.ICMPv4Code: {5, 32},
	of13.ICMPv6Code: {5, 32},
	of13.IPv6ExtHdr: {5, 48},
	of13.IPv4Src:    {6, 32},
	of13.ARPSPA:     {6, 32},
	of13.IPv4Dst:    {6, 0},
	of13.ARPTPA:     {6, 0},
	of13.IPv6Src:    {8, 0},
	of13.IPv6Dst:    {10, 0},
	of13.NDTarget:   {12, 0},
	of13.NDSLL:      {13, 0},
	of13.ARPSHA:     {13, 0},
	of13.NDTLL:      {14, 0},
	of13.ARPTHA:     {14, 0},
	of13.MPLSLabel:  {15, 0},
	of13.MPLSTC:     {15, 20},
	of13.MPLSBOS:    {15, 23},
	of13.PBBISID:    {15, 0},
	of13.IPv6FLabel: {15, 24},
	of13.NSHSPI:     {6, 0},
	of13.NSHSI:      {6, 24},
	of13.NSHFlags:   {6, 32},
	of13.NSHTTL:     {6, 40},
	of13.NSHMDType:  {6, 48},
	of13.NSHNP:      {6, 56},
	of13.NSHC1:      {7, 32},
	of13.NSHC2:      {7, 0},
	of13.NSHC3:      {8, 32},
	of13.NSHC4:      {8, 0},
}

// put adds a value to a field that is zero.
func (k *Key) put(id of13.FieldID, v uint64) {
	k[places[id].word] |= v << places[id].shift
}

func (k *Key) put128(id of13.FieldID, v of13.U128) {
	if of13.Fields[id].Bits > 64 {
		k[places[id].word-1] |= v.Hi
	}
	k.put(id, v.Lo)
}

// Get gives a field of up to 64 bits.
func (k *Key) Get(id of13.FieldID) uint64 {
	return k[places[id].word] >> places[id].shift & of13.Ones(of13.Fields[id].Bits).Lo
}

func (k *Key) get128(id of13.FieldID) of13.U128 {
	if of13.Fields[id].Bits > 64 {
		return of13.U128{Hi: k[places[id].word-1], Lo: k[places[id].word]}
	}
	return of13.U128{Lo: k.Get(id)}
}

func (k *Key) set(id of13.FieldID, v uint64) {
	k[places[id].word] &^= of13.Ones(of13.Fields[id].Bits).Lo << places[id].shift
	k.put(id, v)
}

// keysOf makes values and masks of a match.
func keysOf(fields []of13.Field) (value, mask Key) {
	for i := range fields {
		f := &fields[i]
		value.put128(f.ID, f.Value.And(f.Mask))
		mask.put128(f.ID, f.Mask)
	}
	return value, mask
}

// canonical copies a match. A mask of all ones is none, and a field with a mask
// of zeros is left out: such matches are the same to strict commands.
func canonical(m of13.Match) (list []of13.Field) {
	if len(m.Fields) > 0 {
		list = make([]of13.Field, 0, len(m.Fields))
	}
	for _, f := range m.Fields {
		if f.Mask.Zero() {
			continue
		}
		if f.Mask == of13.Ones(of13.Fields[f.ID].Bits) {
			f.Masked = false
		}
		list = append(list, f)
	}
	return list
}

// under says whether a packet has the values of a match.
func (k *Key) under(value, mask *Key) bool {
	for i, m := range mask {
		if k[i]&m != value[i] {
			return false
		}
	}
	return true
}

// within says whether a mask has all bits of another.
func (k *Key) within(mask *Key) bool {
	for i, m := range k {
		if m&^mask[i] != 0 {
			return false
		}
	}
	return true
}
