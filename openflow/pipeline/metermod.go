package pipeline

import "sublet/openflow/of13"

// maxBands of a meter.
const maxBands = 8

func (s *Switch) meterMod(now int64, m *of13.MeterMod) error {
	if m.Command == of13.CommandDelete {
		return s.deleteMeters(now, m.Meter)
	}
	old := s.meters[m.Meter]
	switch {
	case m.Command > of13.CommandDelete:
		return of13.MeterModFailedBadCommand
	case m.Meter == 0 || m.Meter > of13.MeterMax && m.Meter != of13.MeterController:
		return of13.MeterModFailedInvalidMeter
	case m.Command == of13.CommandAdd && old != nil:
		return of13.MeterModFailedMeterExists
	case m.Command == of13.CommandModify && old == nil:
		return of13.MeterModFailedUnknownMeter
	case old == nil && len(s.meters) >= s.config.Meters:
		return of13.MeterModFailedOutOfMeters
	}
	if err := checkBands(m); err != nil {
		return err
	}
	t := newMeter(now, m, s.Meters, s.config.Hold)
	if old != nil {
		t.created = old.created
		s.invalidate(func(f *Flow) bool { return f.meter == old.state })
	}
	put(s, s.meters, m.Meter, t)
	return nil
}

func checkBands(m *of13.MeterMod) error {
	const known = of13.MeterKBPS | of13.MeterPKTPS | of13.MeterBurst | of13.MeterStatsFlag
	switch {
	case m.Flags&^known != 0, m.Flags&of13.MeterKBPS != 0 && m.Flags&of13.MeterPKTPS != 0:
		return of13.MeterModFailedBadFlags
	case len(m.Bands) > maxBands:
		return of13.MeterModFailedOutOfBands
	}
	for i := range m.Bands {
		switch b := &m.Bands[i]; {
		case b.Kind != of13.BandDrop && b.Kind != of13.BandDSCPRemark:
			return of13.MeterModFailedBadBand
		case b.Rate == 0:
			return of13.MeterModFailedBadRate
		case b.Kind == of13.BandDSCPRemark && b.Precedence > 2:
			return of13.MeterModFailedBadBandValue
		case m.Flags&of13.MeterBurst != 0 && b.Burst == 0:
			return of13.MeterModFailedBadBurst
		}
	}
	return nil
}

// deleteMeters deletes a meter, or all, and the entries that use them.
func (s *Switch) deleteMeters(now int64, number uint32) error {
	if number == 0 || number > of13.MeterMax && number < of13.MeterSlowPath {
		return of13.MeterModFailedInvalidMeter
	}
	for n := range s.meters {
		if number != of13.MeterAll && n != number {
			continue
		}
		s.drop(now, of13.RemovedDelete, s.everyEntry(func(e *Entry) bool { return e.does.meter == n })...)
		put(s, s.meters, n, nil)
	}
	return nil
}
