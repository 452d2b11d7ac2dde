package pipeline

import (
	"maps"
	"slices"

	"sublet/openflow/of13"
)

func (s *Switch) multipart(now int64, m *of13.MultipartRequest) (of13.Message, error) {
	r := &of13.MultipartReply{Kind: m.Kind}
	var err error
	switch m.Kind {
	case of13.MultipartDesc:
		r.Desc = of13.Desc{Manufacturer: "Sublet", Hardware: "process", Software: "Sublet", Serial: "none", Datapath: "none"}
	case of13.MultipartFlow, of13.MultipartAggregate:
		err = s.flowStats(now, r, &m.Flow)
	case of13.MultipartTable:
		for i := range s.tables {
			t := &s.tables[i]
			r.Tables = append(r.Tables, of13.TableStats{Table: uint8(i), Active: uint32(t.size), Lookups: t.lookups, Matched: t.matched})
		}
	case of13.MultipartPort, of13.MultipartPortDesc:
		err = s.portStats(now, r, m.Number)
	case of13.MultipartQueue:
		_, err = s.portsOf(m.Number)
		if err == nil && m.Queue != of13.QueueAll {
			err = of13.QueueOpFailedBadQueue
		}
	case of13.MultipartTableFeatures:
		err = s.tableFeatures(r, m)
	case of13.MultipartExperimenter:
		err = of13.BadRequestBadExperimenter
	default:
		err = s.groupsAndMeters(now, r, m.Number)
	}
	return r, err
}

func (s *Switch) flowStats(now int64, r *of13.MultipartReply, q *of13.FlowRequest) error {
	list, err := s.flowsOf(q)
	for _, e := range list {
		if r.Kind == of13.MultipartFlow {
			r.Flows = append(r.Flows, e.stats(now))
		}
		r.Aggregate.Packets += e.Packets
		r.Aggregate.Bytes += e.Bytes
		r.Aggregate.Flows++
	}
	return err
}

func (s *Switch) portStats(now int64, r *of13.MultipartReply, number uint32) error {
	if r.Kind == of13.MultipartPortDesc {
		number = of13.PortAny
	}
	list, err := s.portsOf(number)
	for _, p := range list {
		p.stats.Port, p.stats.Life = p.Number, lifetime(now, p.created)
		if r.Kind == of13.MultipartPort {
			r.Ports = append(r.Ports, p.stats)
		} else {
			r.PortDescs = append(r.PortDescs, p.Port)
		}
	}
	return err
}

// groupsAndMeters answers what is asked of one of them, or of all.
func (s *Switch) groupsAndMeters(now int64, r *of13.MultipartReply, number uint32) error {
	switch r.Kind {
	case of13.MultipartGroup:
		for _, g := range some(s.groups, number, of13.GroupAll) {
			uses := len(s.everyEntry(func(e *Entry) bool { return e.uses(of13.ActionGroup, g.Group) }))
			r.Groups = append(r.Groups, g.stats(now, uint32(uses)+s.groupReferences(g.Group)))
		}
	case of13.MultipartGroupDesc:
		for _, g := range some(s.groups, 0, 0) {
			r.GroupDescs = append(r.GroupDescs, g.GroupDesc)
		}
	case of13.MultipartGroupFeatures:
		r.GroupFeatures = s.groupFeatures()
	case of13.MultipartMeterFeatures:
		r.MeterFeatures = of13.MeterFeatures{MaxMeters: uint32(s.config.Meters), BandTypes: 1<<of13.BandDrop | 1<<of13.BandDSCPRemark, Capabilities: 15, MaxBands: maxBands}
	default:
		return s.meterStats(now, r, number)
	}
	return nil
}

func (s *Switch) meterStats(now int64, r *of13.MultipartReply, number uint32) error {
	if number != of13.MeterAll && s.meters[number] == nil {
		return of13.MeterModFailedUnknownMeter
	}
	for _, m := range some(s.meters, number, of13.MeterAll) {
		if r.Kind == of13.MultipartMeterConfig {
			r.MeterConfigs = append(r.MeterConfigs, m.MeterConfig)
			continue
		}
		uses := len(s.everyEntry(func(e *Entry) bool { return e.does.meter == m.Meter }))
		r.Meters = append(r.Meters, m.stats(now, uint32(uses)))
	}
	return nil
}

// some gives the element of a number, or all in order if the number stands for all.
func some[T any](m map[uint32]*T, number, all uint32) (list []*T) {
	for _, n := range slices.Sorted(maps.Keys(m)) {
		if number == all || n == number {
			list = append(list, m[n])
		}
	}
	return list
}

func (s *Switch) groupFeatures() of13.GroupFeatures {
	const actions = 1<<of13.ActionOutput | 0x7f<<of13.ActionSetMPLSTTL | 0x3f<<of13.ActionGroup | 3<<of13.ActionCopyTTLOut
	f := of13.GroupFeatures{Types: 15, Capabilities: 1 | 2 | 4 | 8} // weights, liveness, chaining, checks
	for i := range f.Max {
		f.Max[i], f.Actions[i] = uint32(s.config.Groups), actions
	}
	return f
}

// tableFeatures says what tables can do: all the same, and nothing of it can be changed.
func (s *Switch) tableFeatures(r *of13.MultipartReply, m *of13.MultipartRequest) error {
	if len(m.TableFeatures) > 0 {
		return of13.TableFeaturesFailedEPerm
	}
	for i := range s.tables {
		f := of13.TableFeatures{Table: uint8(i), Name: "table", MetadataMatch: ^uint64(0), MetadataMask: ^uint64(0), MaxEntries: uint32(s.config.Entries)}
		for kind := of13.PropertyInstructions; kind <= of13.PropertyApplySetField+1; kind++ {
			if list, told := s.property(kind, i); told {
				f.Properties = append(f.Properties, of13.TableProperty{Kind: kind, List: list})
			}
		}
		r.TableFeatures = append(r.TableFeatures, f)
	}
	return nil
}

// property lists what a table can do. Odd kinds are of the table-miss entry,
// which differs from others in nothing but its match.
func (s *Switch) property(kind uint16, table int) (list []uint32, told bool) {
	miss := kind&1 != 0
	switch kind &^ 1 {
	case of13.PropertyInstructions:
		list = []uint32{1, 2, 3, 4, 5, 6}
	case of13.PropertyNextTables:
		for next := table + 1; next < len(s.tables); next++ {
			list = append(list, uint32(next))
		}
	case of13.PropertyWriteActions, of13.PropertyApplyActions:
		for _, a := range setOrder {
			list = append(list, uint32(a))
		}
		slices.Sort(list)
	case of13.PropertyMatch, of13.PropertyWildcards:
		for id := range of13.NumFields {
			list = append(list, of13.OXMHeader(id, of13.Fields[id].Maskable && kind == of13.PropertyMatch))
		}
		return list, !miss
	case of13.PropertyWriteSetField, of13.PropertyApplySetField:
		for id := range of13.NumFields {
			if !of13.Fields[id].ReadOnly {
				list = append(list, of13.OXMHeader(id, false))
			}
		}
	}
	return list, true
}
