package slice

import (
	"slices"

	"sublet/openflow/of13"
)

// change translates a message that changes something, to one or several. undo, if
// there is one, is called if the switch refuses them.
func (v *view) change(m of13.Message) (there []of13.Message, undo func(), err error) {
	switch m := m.(type) {
	case *of13.FlowMod:
		there, err = v.flowMod(*m)
	case *of13.GroupMod:
		return v.groupMod(*m)
	case *of13.MeterMod:
		return v.meterMod(*m)
	case *of13.PacketOut:
		there, err = v.packetOut(*m)
	case *of13.PortMod:
		there, err = v.portMod(m)
	case *of13.TableMod:
		there, err = v.tableMod(m)
	default:
		err = of13.BadRequestBadType
	}
	return there, nil, err
}

// flowMod translates an entry, or a deletion in all tables to one in each.
func (v *view) flowMod(m of13.FlowMod) (there []of13.Message, err error) {
	if m.Buffer != of13.NoBuffer {
		return nil, of13.BadRequestBufferUnknown
	}
	if err := v.within(&m.Match); err != nil {
		return nil, err
	}
	deletes := m.Command == of13.FlowDelete || m.Command == of13.FlowDeleteStrict
	if group := m.OutGroup; deletes && group != of13.GroupAny {
		var ok bool
		if m.OutGroup, ok = v.groups.there[group]; !ok {
			return nil, nil // no entry has a group that is not there
		}
	}
	if m.Instructions, err = v.instructions(m.Instructions); err != nil {
		return nil, err
	}
	tables := []uint8{m.Table}
	if m.Table == of13.TableAll && deletes {
		tables = v.tables()
	}
	for _, t := range tables {
		one := m
		var ok bool
		if one.Table, ok = v.table(t); !ok {
			return nil, of13.FlowModFailedBadTableID
		}
		there = append(there, &one)
	}
	return there, nil
}

func (v *view) tables() (list []uint8) {
	for t := range v.Tables {
		list = append(list, uint8(t))
	}
	return list
}

// groupMod translates a group. A number is the slice's from the addition to the
// deletion.
func (v *view) groupMod(m of13.GroupMod) (there []of13.Message, undo func(), err error) {
	_, known := v.groups.there[m.Group]
	switch {
	case m.Command == of13.CommandDelete:
		for _, n := range v.groups.release(m.Group, of13.GroupAll) {
			there = append(there, &of13.GroupMod{Command: m.Command, Kind: m.Kind, Group: n})
		}
		return there, nil, nil
	case m.Group > of13.GroupMax:
		return nil, nil, of13.GroupModFailedInvalidGroup
	case m.Command == of13.CommandAdd && known:
		return nil, nil, of13.GroupModFailedGroupExists
	case m.Command == of13.CommandModify && !known:
		return nil, nil, of13.GroupModFailedUnknownGroup
	}
	m.Buckets = slices.Clone(m.Buckets)
	for i := range m.Buckets {
		if err := v.bucket(&m.Buckets[i]); err != nil {
			return nil, nil, err
		}
	}
	var ok bool
	if m.Group, undo, ok = v.groups.place(m.Group); !ok {
		return nil, nil, of13.GroupModFailedOutOfGroups
	}
	return []of13.Message{&m}, undo, nil
}

func (v *view) bucket(b *of13.Bucket) (err error) {
	if p := b.WatchPort; p != of13.PortAny && p != 0 && !v.has(p) {
		return of13.GroupModFailedBadWatch
	}
	if g := b.WatchGroup; g != of13.GroupAny && g != 0 {
		var ok bool
		if b.WatchGroup, ok = v.groups.there[g]; !ok {
			return of13.GroupModFailedBadWatch
		}
	}
	b.Actions, err = v.actions(b.Actions, false)
	return err
}

// meterMod translates a meter, as groupMod does a group.
func (v *view) meterMod(m of13.MeterMod) (there []of13.Message, undo func(), err error) {
	_, known := v.meters.there[m.Meter]
	switch {
	case m.Command == of13.CommandDelete:
		for _, n := range v.meters.release(m.Meter, of13.MeterAll) {
			there = append(there, &of13.MeterMod{Command: m.Command, Meter: n})
		}
		return there, nil, nil
	case m.Meter == 0 || m.Meter > of13.MeterMax:
		return nil, nil, of13.MeterModFailedInvalidMeter
	case m.Command == of13.CommandAdd && known:
		return nil, nil, of13.MeterModFailedMeterExists
	case m.Command == of13.CommandModify && !known:
		return nil, nil, of13.MeterModFailedUnknownMeter
	case v.remarks(m.Bands):
		return nil, nil, of13.MeterModFailedBadBand
	}
	var ok bool
	if m.Meter, undo, ok = v.meters.place(m.Meter); !ok {
		return nil, nil, of13.MeterModFailedOutOfMeters
	}
	return []of13.Message{&m}, undo, nil
}

// remarks says whether bands make packets of the slice those of another one.
func (v *view) remarks(bands []of13.Band) bool {
	return slices.ContainsFunc(v.Match, func(f of13.Field) bool { return f.ID == of13.IPDSCP }) &&
		slices.ContainsFunc(bands, func(b of13.Band) bool { return b.Kind != of13.BandDrop })
}

// packetOut translates a packet, which has to be of the slice.
func (v *view) packetOut(m of13.PacketOut) (there []of13.Message, err error) {
	switch {
	case m.Buffer != of13.NoBuffer:
		return nil, of13.BadRequestBufferUnknown
	case m.InPort != of13.PortController && !v.has(m.InPort):
		return nil, of13.BadRequestBadPort
	case !v.guard.passes(m.Data):
		return nil, of13.BadRequestEPerm
	}
	// At the tables a packet that comes by no port is of no slice that has ports.
	tables := m.InPort != of13.PortController || len(v.Ports) == 0
	if m.Actions, err = v.actions(m.Actions, tables); err != nil {
		return nil, err
	}
	return []of13.Message{&m}, nil
}

// portMod is for ports that no other slice has.
func (v *view) portMod(m *of13.PortMod) ([]of13.Message, error) {
	switch {
	case !v.has(m.Port):
		return nil, of13.PortModFailedBadPort
	case !v.alone(m.Port):
		return nil, of13.PortModFailedEPerm
	}
	return []of13.Message{m}, nil
}

func (v *view) tableMod(m *of13.TableMod) (there []of13.Message, err error) {
	tables := []uint8{m.Table}
	if m.Table == of13.TableAll {
		tables = v.tables()
	}
	for _, t := range tables {
		n, ok := v.table(t)
		if !ok {
			return nil, of13.TableModFailedBadTable
		}
		there = append(there, &of13.TableMod{Table: n, Config: m.Config})
	}
	return there, nil
}
