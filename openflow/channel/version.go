package channel

import (
	"slices"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// wire reads and writes messages of the version that both ends speak.
type wire struct {
	version   uint8 // 1.3 until the greeting has ended
	decoder   of13.Decoder
	decoder10 of10.Decoder
}

func (w *wire) decode(raw []byte) (of13.Header, of13.Message, error) {
	if len(raw) >= of13.HeaderLen && slices.Contains(ofSwitches, w.kind(raw)) {
		return of13.ReadHeader(raw), nil, of13.BadRequestBadType // whatever is in it
	}
	if w.version == of10.Version {
		return w.decoder10.Decode(raw)
	}
	return w.decoder.Decode(raw)
}

// ofSwitches are the types of messages that switches alone send.
var ofSwitches = []uint8{
	of13.TypeFeaturesReply, of13.TypeGetConfigReply, of13.TypePacketIn, of13.TypeFlowRemoved, of13.TypePortStatus,
	of13.TypeMultipartReply, of13.TypeBarrierReply, of13.TypeQueueGetConfigReply, of13.TypeRoleReply, of13.TypeGetAsyncReply,
}

func (w *wire) append(b []byte, xid uint32, m of13.Message) ([]byte, error) {
	if w.version == of10.Version {
		return of10.Append(b, xid, m)
	}
	return of13.Append(b, xid, m)
}

// kind is the type of a message, by that of 1.3 that stands for it.
func (w *wire) kind(raw []byte) uint8 {
	if w.version == of10.Version {
		return of10.Kind(raw[1])
	}
	return raw[1]
}

// withPorts completes what a switch says of itself for OpenFlow 1.0, where a
// controller asks for ports in no other way.
func withPorts(m *of13.FeaturesReply, d Datapath) (of13.Message, error) {
	reply, err := d.Do(&of13.MultipartRequest{Kind: of13.MultipartPortDesc})
	if err != nil {
		return nil, err
	}
	return &of10.FeaturesReply{FeaturesReply: *m, Ports: reply.(*of13.MultipartReply).PortDescs}, nil
}

// Unmatched says whether a controller is connected that gets the packets which met
// no entry: those that speak OpenFlow 1.0 do.
func (h *Hub) Unmatched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		if c.wire.version == of10.Version && !c.manages {
			return true
		}
	}
	return false
}
