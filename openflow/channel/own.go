package channel

import (
	"encoding/json"
	"errors"

	"sublet/openflow/of13"
)

// Experimenter is whose statistics these are: an identifier that is locally
// administered, since Sublet has none of the IEEE's.
const Experimenter uint32 = 0x02534c

// Types of its statistics, which are JSON.
const (
	KindCache  uint32 = 1
	KindTrace  uint32 = 2 // its request: a port in 32 bits, and a frame
	KindStatus uint32 = 3
	KindSlices uint32 = 4 // that slices are to be read anew; "", or what is wrong with them
)

// asks says whether a message asks for a type of them, and with what.
func asks(m of13.Message, kind uint32) (data []byte, ok bool) {
	r, ok := m.(*of13.MultipartRequest)
	if !ok || r.Kind != of13.MultipartExperimenter || r.Experimenter != Experimenter || r.ExpType != kind {
		return nil, false
	}
	return r.Data, true
}

// answer is the reply to such a request.
func answer(kind uint32, value any) (of13.Message, error) {
	text, err := json.Marshal(value)
	return &of13.MultipartReply{Kind: of13.MultipartExperimenter, Experimenter: Experimenter, ExpType: kind, Data: text}, err
}

// own asks the switch for a type of them.
func (c *Client) own(kind uint32, data []byte, value any) error {
	parts, err := c.Ask(&of13.MultipartRequest{Kind: of13.MultipartExperimenter, Experimenter: Experimenter, ExpType: kind, Data: data})
	if err != nil {
		return err
	}
	return json.Unmarshal(parts[0].(*of13.MultipartReply).Data, value)
}

// AsksSlices says whether a request asks that the switch reads its slices anew.
func AsksSlices(m of13.Message) bool {
	_, ok := asks(m, KindSlices)
	return ok
}

// SlicesReply says whether it could.
func SlicesReply(err error) (of13.Message, error) {
	wrong := ""
	if err != nil {
		wrong = err.Error()
	}
	return answer(KindSlices, wrong)
}

// Reslice has the switch read its slices anew.
func (c *Client) Reslice() error {
	var wrong string
	if err := c.own(KindSlices, nil, &wrong); err != nil {
		return err
	}
	if wrong != "" {
		return errors.New(wrong)
	}
	return nil
}
