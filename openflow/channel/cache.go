package channel

import "sublet/openflow/of13"

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
	_, ok := asks(m, KindCache)
	return ok
}

// Reply has them.
func (c CacheCounters) Reply() (of13.Message, error) { return answer(KindCache, c) }

// CacheCounters asks the switch for them.
func (c *Client) CacheCounters() (n CacheCounters, err error) {
	err = c.own(KindCache, nil, &n)
	return n, err
}
