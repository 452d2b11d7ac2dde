package of10

import (
	"encoding/binary"

	"sublet/openflow/of13"
)

// Types of actions.
const (
	actionOutput uint16 = iota
	actionSetVLAN
	actionSetPCP
	actionStripVLAN
	actionSetEthSrc
	actionSetEthDst
	actionSetIPSrc
	actionSetIPDst
	actionSetToS
	actionSetSource
	actionSetTarget
	actionEnqueue
	actionVendor uint16 = 0xffff

	allActions = 1<<(actionEnqueue+1) - 1
	tagType    = 0x8100
)

// readActions reads the actions in b. Fields are set where packets have them.
func (c *coder) readActions(b []byte, list []of13.Action) []of13.Action {
	for len(b) > 0 && c.err == nil {
		if len(b) < 8 {
			c.fail(of13.BadActionBadLen)
			break
		}
		kind, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if n != actionLen(kind) && kind <= actionEnqueue || n < 8 || n%8 != 0 || n > len(b) {
			c.fail(of13.BadActionBadLen)
			break
		}
		list = c.readAction(kind, b[4:n], list, n < len(b))
		b = b[n:]
	}
	return list
}

func actionLen(kind uint16) int {
	switch kind {
	case actionSetEthSrc, actionSetEthDst, actionEnqueue:
		return 16
	}
	return 8
}

// readAction adds what stands for one action; more follow, or not.
func (c *coder) readAction(kind uint16, b []byte, list []of13.Action, follow bool) []of13.Action {
	short, long := binary.BigEndian.Uint16(b), binary.BigEndian.Uint32(b)
	set := func(id of13.FieldID, v uint64) of13.Action {
		return of13.Action{Type: of13.ActionSetField, Field: of13.Exact(id, v), Loose: true}
	}
	push := of13.Action{Type: of13.ActionPushVLAN, EtherType: tagType, Loose: true}
	switch kind {
	case actionOutput:
		return append(list, of13.Action{Type: of13.ActionOutput, Number: wide(short), MaxLen: binary.BigEndian.Uint16(b[2:])})
	case actionSetVLAN:
		c.argument(short <= 0xfff)
		return append(list, push, set(of13.VLANVID, of13.VLANPresent|uint64(short)))
	case actionSetPCP:
		c.argument(b[0] <= 7)
		return append(list, push, set(of13.VLANPCP, uint64(b[0])))
	case actionStripVLAN:
		return append(list, of13.Action{Type: of13.ActionPopVLAN})
	case actionSetEthSrc, actionSetEthDst:
		id := of13.EthSrc
		if kind == actionSetEthDst {
			id = of13.EthDst
		}
		return append(list, set(id, of13.ReadU128(b[:6]).Lo))
	case actionSetIPSrc, actionSetIPDst:
		return append(list, set(of13.IPv4Src+of13.FieldID(kind-actionSetIPSrc), uint64(long)))
	case actionSetToS:
		c.argument(b[0]&3 == 0)
		return append(list, set(of13.IPDSCP, uint64(b[0]>>2)))
	case actionSetSource, actionSetTarget:
		which := of13.FieldID(kind - actionSetSource)
		return append(list, set(of13.TCPSrc+which, uint64(short)), set(of13.UDPSrc+which, uint64(short)))
	case actionEnqueue:
		return readEnqueue(b, list, follow)
	case actionVendor:
		c.fail(of13.BadActionBadExperimenter)
	default:
		c.fail(of13.BadActionBadType)
	}
	return list
}

func (c *coder) argument(ok bool) {
	if !ok {
		c.fail(of13.BadActionBadArgument)
	}
}

// readEnqueue adds an output by a queue. What follows leaves by none.
func readEnqueue(b []byte, list []of13.Action, follow bool) []of13.Action {
	list = append(list, of13.Action{Type: of13.ActionSetQueue, Number: binary.BigEndian.Uint32(b[8:])}, of13.Output(wide(binary.BigEndian.Uint16(b))))
	if follow {
		list = append(list, of13.Action{Type: of13.ActionSetQueue, Loose: true})
	}
	return list
}

// writeActions writes actions as far as there are such.
func (c *coder) writeActions(list []of13.Action) {
	for i := 0; i < len(list); i++ {
		switch a := &list[i]; a.Type {
		case of13.ActionOutput:
			b := c.action(actionOutput)
			binary.BigEndian.PutUint16(b, narrow(a.Number))
			binary.BigEndian.PutUint16(b[2:], a.MaxLen)
		case of13.ActionSetQueue:
			if !a.Loose && i+1 < len(list) && list[i+1].Type == of13.ActionOutput {
				i++
				b := c.action(actionEnqueue)
				binary.BigEndian.PutUint16(b, narrow(list[i].Number))
				binary.BigEndian.PutUint32(b[8:], a.Number)
			}
		case of13.ActionPopVLAN:
			c.action(actionStripVLAN)
		case of13.ActionSetField:
			c.writeSet(&a.Field)
			if i+1 < len(list) && samePort(a, &list[i+1]) {
				i++
			}
		}
	}
}

// samePort says whether two actions stand for one that sets a port of TCP or UDP.
func samePort(a, b *of13.Action) bool {
	tcp := a.Field.ID == of13.TCPSrc || a.Field.ID == of13.TCPDst
	return tcp && a.Loose && b.Loose && b.Type == of13.ActionSetField && b.Field.ID == a.Field.ID+2 && b.Field.Value == a.Field.Value
}

// action begins one, and gives what is behind its length.
func (c *coder) action(kind uint16) []byte {
	n := actionLen(kind)
	b := c.bytes(n)
	binary.BigEndian.PutUint16(b, kind)
	binary.BigEndian.PutUint16(b[2:], uint16(n))
	return b[4:]
}

func (c *coder) writeSet(f *of13.Field) {
	v := f.Value.Lo
	switch f.ID {
	case of13.VLANVID:
		binary.BigEndian.PutUint16(c.action(actionSetVLAN), uint16(v)&0xfff)
	case of13.VLANPCP:
		c.action(actionSetPCP)[0] = uint8(v)
	case of13.EthSrc:
		f.Value.Put(c.action(actionSetEthSrc)[:6])
	case of13.EthDst:
		f.Value.Put(c.action(actionSetEthDst)[:6])
	case of13.IPv4Src, of13.IPv4Dst:
		binary.BigEndian.PutUint32(c.action(actionSetIPSrc+uint16(f.ID-of13.IPv4Src)), uint32(v))
	case of13.IPDSCP:
		c.action(actionSetToS)[0] = uint8(v) << 2
	case of13.TCPSrc, of13.UDPSrc:
		binary.BigEndian.PutUint16(c.action(actionSetSource), uint16(v))
	case of13.TCPDst, of13.UDPDst:
		binary.BigEndian.PutUint16(c.action(actionSetTarget), uint16(v))
	}
}
