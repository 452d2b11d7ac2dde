package of13

import "encoding/binary"

// ONF is the experimenter of the Open Networking Foundation, whose extension 230
// has bundles for OpenFlow 1.3.
const ONF uint32 = 0x4f4e4600

// Types of the experimenter messages of bundles.
const (
	ExpBundleControl uint32 = 2300
	ExpBundleAdd     uint32 = 2301
)

// Kinds of bundle control; the reply to one is one more.
const (
	BundleOpen    uint16 = 0
	BundleClose   uint16 = 2
	BundleCommit  uint16 = 4
	BundleDiscard uint16 = 6
)

// Flags of bundles.
const (
	BundleAtomic  uint16 = 1
	BundleOrdered uint16 = 2
)

// typeExperimenter is the error type of extensions.
const typeExperimenter = 0xffff

// Errors of bundles.
const (
	BundleFailedBadID     Error = typeExperimenter<<16 | 2302
	BundleFailedExists    Error = typeExperimenter<<16 | 2303
	BundleFailedClosed    Error = typeExperimenter<<16 | 2304
	BundleFailedOutOf     Error = typeExperimenter<<16 | 2305
	BundleFailedBadType   Error = typeExperimenter<<16 | 2306
	BundleFailedBadFlags  Error = typeExperimenter<<16 | 2307
	BundleFailedMsgBadLen Error = typeExperimenter<<16 | 2308
	BundleFailedMsgBadXID Error = typeExperimenter<<16 | 2309
	BundleFailedMsgUnsup  Error = typeExperimenter<<16 | 2310
	BundleFailedTooMany   Error = typeExperimenter<<16 | 2312
	BundleFailedMsgFailed Error = typeExperimenter<<16 | 2313
)

// Bundle is a message about a bundle.
type Bundle struct {
	ID      uint32
	Kind    uint16 // of control
	Flags   uint16
	Add     bool   // Message is to be added
	Message []byte // part of what was received
}

// Bundle reads a message about a bundle. Errors are of type Error.
func (m *Experimenter) Bundle() (b Bundle, err error) {
	switch {
	case m.Experimenter != ONF:
		return b, BadRequestBadExperimenter
	case m.Kind != ExpBundleControl && m.Kind != ExpBundleAdd:
		return b, BadRequestBadExpType
	case len(m.Data) < 8:
		return b, BadRequestBadLen
	}
	b = Bundle{ID: binary.BigEndian.Uint32(m.Data), Kind: binary.BigEndian.Uint16(m.Data[4:]), Flags: binary.BigEndian.Uint16(m.Data[6:]), Add: m.Kind == ExpBundleAdd}
	if !b.Add {
		return b, nil
	}
	b.Message = m.Data[8:]
	if len(b.Message) < HeaderLen || int(ReadHeader(b.Message).Length) < HeaderLen || int(ReadHeader(b.Message).Length) > len(b.Message) {
		return b, BundleFailedMsgBadLen
	}
	b.Message = b.Message[:ReadHeader(b.Message).Length]
	return b, nil
}

// Experimenter is the bundle's message as it is sent.
func (b Bundle) Experimenter() *Experimenter {
	data := binary.BigEndian.AppendUint32(nil, b.ID)
	data = binary.BigEndian.AppendUint16(data, b.Kind)
	data = binary.BigEndian.AppendUint16(data, b.Flags)
	if b.Add {
		return &Experimenter{ONF, ExpBundleAdd, append(data, b.Message...)}
	}
	return &Experimenter{ONF, ExpBundleControl, data}
}

// Refusal is the error message about a request, with its first 64 bytes. That of
// an extension has the experimenter before them.
func (e Error) Refusal(request []byte) *ErrorMessage {
	m := &ErrorMessage{Kind: e.Type(), Code: e.Code(), Data: request[:min(len(request), 64)]}
	if m.Kind == typeExperimenter {
		m.Data = append(binary.BigEndian.AppendUint32(nil, ONF), m.Data...)
	}
	return m
}
