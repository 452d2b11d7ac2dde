package pipeline

import "sublet/openflow/of13"

// capabilities: statistics of flows, tables, ports, groups and queues.
const capabilities = 1 | 2 | 4 | 8 | 64

// Do does what a controller's message asks. reply is nil if none is due; err is
// of type of13.Error. Messages about connections (hello, echo, barrier, roles,
// asynchronous configuration) are not for a Switch. reply is valid until the next
// message.
func (s *Switch) Do(now int64, m of13.Message) (reply of13.Message, err error) {
	switch m := m.(type) {
	case *of13.FlowMod:
		return nil, s.flowMod(now, m)
	case *of13.GroupMod:
		return nil, s.groupMod(now, m)
	case *of13.MeterMod:
		return nil, s.meterMod(now, m)
	case *of13.PortMod:
		return nil, s.portMod(m)
	case *of13.TableMod:
		return nil, s.tableMod(m)
	case *of13.PacketOut:
		return nil, s.packetOut(now, m)
	case *of13.MultipartRequest:
		return s.multipart(now, m)
	case *of13.QueueConfigRequest:
		return s.queueConfig(m)
	}
	return s.describe(m)
}

func (s *Switch) describe(m of13.Message) (of13.Message, error) {
	switch m.Type() {
	case of13.TypeFeaturesRequest:
		return &of13.FeaturesReply{DatapathID: s.config.DatapathID, Buffers: keptPackets, Tables: uint8(len(s.tables)), Capabilities: capabilities}, nil
	case of13.TypeGetConfigRequest:
		return &of13.Config{Kind: of13.TypeGetConfigReply, Flags: s.flags, MissSendBytes: s.miss}, nil
	case of13.TypeSetConfig:
		c := m.(*of13.Config)
		if c.Flags&^of13.FragDrop != 0 { // nothing is reassembled, as its capabilities say
			return nil, of13.SwitchConfigFailedBadFlags
		}
		if s.miss = c.MissSendBytes; s.flags != c.Flags {
			s.flags = c.Flags
			s.invalidate(every)
		}
		return nil, nil
	}
	return nil, of13.BadRequestBadType
}

func (s *Switch) tableMod(m *of13.TableMod) error {
	if m.Table != of13.TableAll && int(m.Table) >= len(s.tables) {
		return of13.TableModFailedBadTable
	}
	if m.Config&^configKnown != 0 {
		return of13.TableModFailedBadConfig
	}
	for i := range s.tables {
		if m.Table == of13.TableAll || int(m.Table) == i {
			t := &s.tables[i]
			was := t.config
			s.undo(func() { t.config = was; s.keepTable(i) })
			t.config = m.Config
			s.keepTable(i)
		}
	}
	return nil
}

func (s *Switch) packetOut(now int64, m *of13.PacketOut) error {
	if s.ports[m.InPort] == nil && m.InPort != of13.PortController {
		return of13.BadRequestBadPort
	}
	frame := m.Data
	if m.Buffer != of13.NoBuffer {
		k, err := s.kept.take(m.Buffer)
		if err != nil {
			return err
		}
		frame = k.frame
	}
	if len(frame) < 14 {
		return of13.BadRequestBadPacket
	}
	r := s.begin()
	r.load(frame, m.InPort)
	r.now, r.table, r.entry, r.reason = now, 0, nil, of13.PacketAction
	if err := s.checkActions(m.Actions, r.context()); err != nil {
		return err
	}
	s.apply(r, m.Actions, 0)
	return nil
}
