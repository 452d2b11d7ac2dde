package slice

import (
	"context"
	"errors"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
)

// member is a slice while the switch is connected: what its controllers talk to.
type member struct {
	*view
	hub      *channel.Hub
	up       ground
	features *of13.FeaturesReply // of the switch
	miss     uint16              // as its controllers set it
	entries  int                 // at least as many as it has
	sends    allowance

	links map[channel.Target]context.CancelFunc // connections that are kept up, of a Local
}

// Do does what a controller's message asks.
func (s *member) Do(m of13.Message) (of13.Message, error) {
	switch m := m.(type) {
	case *of13.MultipartRequest:
		return s.question(m)
	case *of13.QueueConfigRequest:
		return s.queues(m)
	case *of13.Config:
		return s.config(m)
	case *of13.Plain:
		if m.Kind == of13.TypeFeaturesRequest {
			return &of13.FeaturesReply{DatapathID: s.features.DatapathID, Tables: uint8(s.Tables), Capabilities: s.features.Capabilities}, nil
		}
		if m.Kind == of13.TypeGetConfigRequest {
			return &of13.Config{Kind: of13.TypeGetConfigReply, MissSendBytes: s.miss}, nil
		}
		return nil, of13.BadRequestBadType
	}
	return nil, s.changed(m)
}

// Atomic makes changes of which none stays if run fails.
func (s *member) Atomic(run func() error) error {
	groups, meters, entries := s.groups.saved(), s.meters.saved(), s.entries
	err := s.up.atomic(run)
	if err != nil {
		s.groups.restore(groups)
		s.meters.restore(meters)
		s.entries = entries
	}
	return err
}

// changed has the switch do what changes something.
func (s *member) changed(m of13.Message) error {
	there, undo, err := s.change(m)
	if err != nil || len(there) == 0 {
		return err
	}
	if f, is := m.(*of13.FlowMod); is && f.Command == of13.FlowAdd {
		if err := s.room(); err != nil {
			return err
		}
		s.entries++
	}
	if out, is := there[0].(*of13.PacketOut); is { // nobody waits for its end
		if !s.sends.take(s.Rate, out) {
			return of13.BadRequestEPerm
		}
		return s.refusal(s.up.post(there[0]))
	}
	if err = s.up.change(there...); err != nil && undo != nil {
		undo()
	}
	return s.refusal(err)
}

// refusal is what a controller is told: the switch's word, or that it is not there.
func (s *member) refusal(err error) error {
	var refused of13.Error
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return of13.BadRequestEPerm
}

// room says whether there is some for one more entry. Entries end without a word, so
// the switch is asked when there may be too many.
func (s *member) room() error {
	if s.entries < s.Entries {
		return nil
	}
	held, err := s.held()
	if err != nil {
		return s.refusal(err)
	}
	if s.entries = held; held >= s.Entries {
		return of13.FlowModFailedTableFull
	}
	return nil
}

// held is how many entries the switch has of it.
func (s *member) held() (n int, err error) {
	parts, err := askMultipart(s.up, &of13.MultipartRequest{Kind: of13.MultipartTable})
	for _, part := range parts {
		for _, t := range part.Tables {
			if _, own := s.own(t.Table); own {
				n += int(t.Active)
			}
		}
	}
	return n, err
}

func (s *member) question(m *of13.MultipartRequest) (of13.Message, error) {
	there, err := s.ask(m)
	if err != nil || there == nil {
		return &of13.MultipartReply{Kind: m.Kind}, err
	}
	parts, err := askMultipart(s.up, there)
	if err != nil {
		return nil, s.refusal(err)
	}
	return s.answer(m, parts), nil
}

func (s *member) queues(m *of13.QueueConfigRequest) (of13.Message, error) {
	if m.Port != of13.PortAny && !s.has(m.Port) {
		return nil, of13.QueueOpFailedBadPort
	}
	parts, err := s.up.ask(m)
	if err != nil {
		return nil, s.refusal(err)
	}
	r, is := parts[0].(*of13.QueueConfigReply)
	if !is {
		return nil, of13.BadRequestEPerm
	}
	return s.queuesOf(*r), nil
}

// config takes what a slice may set of the switch: nothing that others see.
func (s *member) config(m *of13.Config) (of13.Message, error) {
	if m.Flags != 0 {
		return nil, of13.SwitchConfigFailedEPerm
	}
	s.miss = m.MissSendBytes
	return nil, nil
}

// happened tells the slice's controllers what concerns it.
func (s *member) happened(m of13.Message) {
	switch m := m.(type) {
	case *of13.PacketIn:
		if own, ok := s.own(m.Table); ok {
			in := *m
			in.Table, in.Buffer = own, of13.NoBuffer
			s.hub.PacketIn(&in)
		}
	case *of13.FlowRemoved:
		if own, ok := s.own(m.Table); ok {
			gone := *m
			gone.Table = own
			s.entries--
			s.hub.FlowRemoved(&gone)
		}
	case *of13.PortStatus:
		if !s.has(m.Port.Number) {
			return
		}
		if s.ports[m.Port.Number] = m.Port; m.Reason == of13.PortDeleted {
			delete(s.ports, m.Port.Number)
		}
		s.hub.PortStatus(m)
	}
}
