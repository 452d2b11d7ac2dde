package of10

import "sublet/openflow/of13"

// wireErrors are the errors that 1.0 has at another place than 1.3.
//
//lint:file-ignore SA4016 types and codes are written as the specification's tables have them, also 0
var wireErrors = map[of13.Error]of13.Error{
	of13.FlowModFailedTableFull:  3<<16 | 0,
	of13.FlowModFailedOverlap:    3<<16 | 1,
	of13.FlowModFailedEPerm:      3<<16 | 2,
	of13.FlowModFailedBadTimeout: 3<<16 | 3,
	of13.FlowModFailedBadCommand: 3<<16 | 4,
	of13.FlowModFailedUnknown:    unsupported,
	of13.PortModFailedBadPort:    4<<16 | 0,
	of13.PortModFailedBadHWAddr:  4<<16 | 1,
	of13.QueueOpFailedBadPort:    5<<16 | 0,
	of13.QueueOpFailedBadQueue:   5<<16 | 1,
	of13.QueueOpFailedEPerm:      5<<16 | 2,
}

const (
	unsupported of13.Error = 3<<16 | 5
	notAllowed             = of13.BadRequestEPerm
)

// known is how many codes a type of error has that is the same in both.
var known = [...]uint16{2, 9, 9}

// wireError is the error that says it in 1.0, or the nearest to it.
func wireError(e of13.Error) of13.Error {
	if int(e.Type()) < len(known) && e.Code() < known[e.Type()] {
		return e
	}
	if w, ok := wireErrors[e]; ok {
		return w
	}
	switch e.Type() {
	case of13.BadInstructionUnknownInst.Type(), of13.BadMatchBadType.Type(), of13.FlowModFailedUnknown.Type():
		return unsupported
	case of13.BadActionBadType.Type():
		return of13.BadActionBadArgument
	}
	return notAllowed
}

// readError is the error of 1.3 that one of 1.0 stands for.
func readError(w of13.Error) of13.Error {
	for e, is := range wireErrors {
		if is == w {
			return e
		}
	}
	return w
}

func (c *coder) errorMessage(m *of13.ErrorMessage) {
	e := wireError(of13.Error(uint32(m.Kind)<<16 | uint32(m.Code)))
	kind, code := e.Type(), e.Code()
	c.u16(&kind)
	c.u16(&code)
	if !c.write {
		e = readError(of13.Error(uint32(kind)<<16 | uint32(code)))
		m.Kind, m.Code = e.Type(), e.Code()
	}
	c.tail(&m.Data)
}
