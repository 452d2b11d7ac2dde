package channel

import (
	"encoding/json"

	"sublet/openflow/of13"
)

// Experimenter is whose statistics these are: an identifier that is locally
// administered, since Sublet has none of the IEEE's. KindCache is their type.
const (
	Experimenter uint32 = 0x02534c
	KindCache    uint32 = 1
)

// CacheCounters are of a datapath that does flows by itself.
type CacheCounters struct {
	Packets uint64            `json:"packets"` // that were done by flows
	Bytes   uint64            `json:"bytes"`
	Flows   uint64            `json:"flows"` // at present
	Full    uint64            `json:"full"`  // flows that found no room
	Upcalls map[string]uint64 `json:"upcalls"`
}

// Asks says whether a request asks for them.
func (CacheCounters) Asks(m of13.Message) bool {
	r, ok := m.(*of13.MultipartRequest)
	return ok && r.Kind == of13.MultipartExperimenter && r.Experimenter == Experimenter && r.ExpType == KindCache
}

// Reply has them.
func (c CacheCounters) Reply() (of13.Message, error) {
	text, err := json.Marshal(c)
	return &of13.MultipartReply{Kind: of13.MultipartExperimenter, Experimenter: Experimenter, ExpType: KindCache, Data: text}, err
}

// CacheCounters asks the switch for them.
func (c *Client) CacheCounters() (n CacheCounters, err error) {
	parts, err := c.Ask(&of13.MultipartRequest{Kind: of13.MultipartExperimenter, Experimenter: Experimenter, ExpType: KindCache})
	if err != nil {
		return n, err
	}
	err = json.Unmarshal(parts[0].(*of13.MultipartReply).Data, &n)
	return n, err
}
