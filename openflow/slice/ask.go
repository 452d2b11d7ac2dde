package slice

import (
	"slices"

	"sublet/openflow/of13"
)

// ask translates a question; none is left where nothing has to be asked.
func (v *view) ask(m *of13.MultipartRequest) (there *of13.MultipartRequest, err error) {
	is := *m
	is.TableFeatures = nil
	switch m.Kind {
	case of13.MultipartFlow, of13.MultipartAggregate:
		return v.askFlows(is)
	case of13.MultipartPort, of13.MultipartQueue:
		if m.Number != of13.PortAny && !v.has(m.Number) {
			return nil, of13.BadRequestBadPort
		}
	case of13.MultipartGroup:
		return askOne(is, v.groups.there, of13.GroupAll)
	case of13.MultipartMeter, of13.MultipartMeterConfig:
		return askOne(is, v.meters.there, of13.MeterAll)
	case of13.MultipartTableFeatures:
		if len(m.TableFeatures) > 0 {
			return nil, of13.TableFeaturesFailedEPerm
		}
	case of13.MultipartDesc, of13.MultipartTable, of13.MultipartGroupDesc, of13.MultipartGroupFeatures, of13.MultipartMeterFeatures, of13.MultipartPortDesc:
	case of13.MultipartExperimenter:
		return nil, of13.BadRequestBadExperimenter
	default:
		return nil, of13.BadRequestBadMultipart
	}
	return &is, nil
}

// askFlows asks for entries: also sums are made of them, of which a switch makes only
// those of one table or of all.
func (v *view) askFlows(m of13.MultipartRequest) (*of13.MultipartRequest, error) {
	m.Kind = of13.MultipartFlow
	if m.Flow.Table != of13.TableAll {
		t, ok := v.table(m.Flow.Table)
		if !ok {
			return nil, of13.BadRequestBadTableID
		}
		m.Flow.Table = t
	}
	if g := m.Flow.OutGroup; g != of13.GroupAny {
		n, ok := v.groups.there[g]
		if !ok {
			return nil, nil
		}
		m.Flow.OutGroup = n
	}
	return &m, nil
}

// askOne asks for one group or meter, or for all.
func askOne(m of13.MultipartRequest, there map[uint32]uint32, all uint32) (*of13.MultipartRequest, error) {
	if m.Number == all {
		return &m, nil
	}
	n, ok := there[m.Number]
	if !ok {
		return nil, nil
	}
	m.Number = n
	return &m, nil
}

// answer translates the parts of an answer to a question into one.
func (v *view) answer(asked *of13.MultipartRequest, parts []*of13.MultipartReply) *of13.MultipartReply {
	r := &of13.MultipartReply{Kind: asked.Kind}
	if asked.Kind == of13.MultipartMeterFeatures {
		r.MeterFeatures.MaxMeters = uint32(v.Meters)
	}
	for _, part := range parts {
		v.flowsOf(r, part)
		v.portsOf(r, part)
		v.groupsOf(r, part)
		v.metersOf(r, part)
		v.tablesOf(r, part)
		if part.Kind == of13.MultipartDesc {
			r.Desc = part.Desc
		}
	}
	return r
}

func (v *view) flowsOf(r, part *of13.MultipartReply) {
	for _, f := range part.Flows {
		own, ok := v.own(f.Table)
		if !ok {
			continue
		}
		if r.Kind == of13.MultipartAggregate {
			r.Aggregate.Flows++
			r.Aggregate.Packets += f.Packets
			r.Aggregate.Bytes += f.Bytes
			continue
		}
		f.Table, f.Body = own, nil
		f.Instructions = v.instructionsBack(f.Instructions)
		r.Flows = append(r.Flows, f)
	}
}

func (v *view) instructionsBack(list []of13.Instruction) []of13.Instruction {
	own := slices.Clone(list)
	for i := range own {
		switch own[i].Type {
		case of13.InstructionGoto:
			own[i].Table -= v.first
		case of13.InstructionMeter:
			own[i].Meter = v.meters.back[own[i].Meter]
		case of13.InstructionWrite, of13.InstructionApply:
			own[i].Actions = v.actionsBack(own[i].Actions)
		}
	}
	return own
}

func (v *view) actionsBack(list []of13.Action) []of13.Action {
	own := slices.Clone(list)
	for i := range own {
		if own[i].Type == of13.ActionGroup {
			own[i].Number = v.groups.back[own[i].Number]
		}
	}
	return own
}

func (v *view) portsOf(r, part *of13.MultipartReply) {
	for _, p := range part.PortDescs {
		if v.has(p.Number) {
			r.PortDescs = append(r.PortDescs, p)
		}
	}
	for _, p := range part.Ports {
		if v.has(p.Port) {
			r.Ports = append(r.Ports, p)
		}
	}
	for _, q := range part.Queues {
		if v.has(q.Port) {
			r.Queues = append(r.Queues, q)
		}
	}
}

func (v *view) groupsOf(r, part *of13.MultipartReply) {
	for _, g := range part.Groups {
		if own, ok := v.groups.back[g.Group]; ok {
			g.Group = own
			r.Groups = append(r.Groups, g)
		}
	}
	for _, g := range part.GroupDescs {
		own, ok := v.groups.back[g.Group]
		if !ok {
			continue
		}
		g.Group, g.Buckets = own, slices.Clone(g.Buckets)
		for i := range g.Buckets {
			b := &g.Buckets[i]
			b.Actions = v.actionsBack(b.Actions)
			if n, ok := v.groups.back[b.WatchGroup]; ok {
				b.WatchGroup = n
			}
		}
		r.GroupDescs = append(r.GroupDescs, g)
	}
	if part.Kind == of13.MultipartGroupFeatures {
		r.GroupFeatures = part.GroupFeatures
		for i, most := range r.GroupFeatures.Max {
			r.GroupFeatures.Max[i] = min(most, uint32(v.Groups))
		}
	}
}

func (v *view) metersOf(r, part *of13.MultipartReply) {
	for _, m := range part.Meters {
		if own, ok := v.meters.back[m.Meter]; ok {
			m.Meter = own
			r.Meters = append(r.Meters, m)
		}
	}
	for _, m := range part.MeterConfigs {
		if own, ok := v.meters.back[m.Meter]; ok {
			m.Meter = own
			r.MeterConfigs = append(r.MeterConfigs, m)
		}
	}
	if part.Kind == of13.MultipartMeterFeatures {
		r.MeterFeatures = part.MeterFeatures
		r.MeterFeatures.MaxMeters = min(r.MeterFeatures.MaxMeters, uint32(v.Meters))
	}
}

func (v *view) tablesOf(r, part *of13.MultipartReply) {
	for _, t := range part.Tables {
		if own, ok := v.own(t.Table); ok {
			t.Table = own
			r.Tables = append(r.Tables, t)
		}
	}
	for _, t := range part.TableFeatures {
		own, ok := v.own(t.Table)
		if !ok {
			continue
		}
		t.Table, t.MaxEntries = own, min(t.MaxEntries, uint32(v.Entries))
		t.Properties = slices.Clone(t.Properties)
		for i := range t.Properties {
			if k := t.Properties[i].Kind &^ 1; k == of13.PropertyNextTables {
				t.Properties[i].List = v.nextTables(t.Properties[i].List)
			}
		}
		r.TableFeatures = append(r.TableFeatures, t)
	}
}

func (v *view) nextTables(list []uint32) []uint32 {
	own := []uint32{}
	for _, t := range list {
		if n, ok := v.own(uint8(t)); ok {
			own = append(own, uint32(n))
		}
	}
	return own
}

// queuesOf keeps those of the slice's ports.
func (v *view) queuesOf(r of13.QueueConfigReply) *of13.QueueConfigReply {
	r.Queues = slices.DeleteFunc(slices.Clone(r.Queues), func(q of13.Queue) bool { return !v.has(q.Port) })
	return &r
}
