package pipeline

import (
	"maps"
	"slices"

	"sublet/openflow/of13"
)

// mostTold bounds the entries in an answer of which the memory is kept for the next.
const mostTold = 16384

func (s *Switch) multipart(now int64, m *of13.MultipartRequest) (of13.Message, error) {
	r := &of13.MultipartReply{Kind: m.Kind}
	var err error
	s.fold()
	switch m.Kind {
	case of13.MultipartDesc:
		r.Desc = of13.Desc{Manufacturer: "Sublet", Hardware: s.config.Datapath, Software: "Sublet", Serial: "none", Datapath: "none"}
	case of13.MultipartFlow, of13.MultipartAggregate:
		err = s.flowStats(now, r, &m.Flow)
	case of13.MultipartTable:
		for i := range s.tables {
			t := &s.tables[i]
			r.Tables = append(r.Tables, of13.TableStats{Table: uint8(i), Active: uint32(t.size), Lookups: t.lookups, Matched: t.matched, MaxEntries: uint32(s.config.Entries)})
		}
	case of13.MultipartPort, of13.MultipartPortDesc:
		err = s.portStats(now, r, m.Number)
	case of13.MultipartQueue:
		err = s.queueStats(r, m.Number, m.Queue)
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
	r.Flows = s.told[:0]
	for e := range list {
		if r.Kind == of13.MultipartFlow {
			r.Flows = append(r.Flows, e.stats(now))
		}
		r.Aggregate.Packets += e.Packets
		r.Aggregate.Bytes += e.Bytes
		r.Aggregate.Flows++
	}
	if s.told = nil; cap(r.Flows) <= mostTold {
		s.told = r.Flows
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
			r.Ports = append(r.Ports, *p.stats)
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
