package slice

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/openflow/of13"
)

// A slice with a rate has a meter that all its packets pass before its tables. Of the
// numbers of meters that are a slice's, it is the controller's 0, which no meter of a
// controller has.

// leastBurst is in kbit: some ten long frames.
const leastBurst = 120

// rateMeter is that of a slice.
func (v *view) rateMeter(command uint16) *of13.MeterMod {
	kbps := v.Rate / 1000
	return &of13.MeterMod{
		Command: command, Flags: of13.MeterKBPS | of13.MeterBurst, Meter: v.rated,
		Bands: []of13.Band{{Kind: of13.BandDrop, Rate: uint32(kbps), Burst: uint32(max(kbps/10, leastBurst))}}, // of 100 ms
	}
}

// rates are the changes that make the meters of slices' rates what they are to be.
// Those that are nobody's any more are strangers.
func (l *Local) rates(there []of13.MeterConfig) (list []of13.Message) {
	for _, m := range l.members {
		switch {
		case m.Rate == 0 && m.rated != 0:
			l.meters.give(m.rated)
			l.note(m.rated, 0)
			m.rated = 0
			continue
		case m.Rate == 0:
			continue
		case m.rated == 0:
			m.rated = l.meters.take()
			l.note(m.rated, m.first)
		}
		is := slices.IndexFunc(there, func(c of13.MeterConfig) bool { return c.Meter == m.rated })
		switch want := m.rateMeter(of13.CommandAdd); {
		case is < 0:
			list = append(list, want)
		case len(there[is].Bands) != 1 || there[is].Bands[0].Rate != want.Bands[0].Rate || there[is].Bands[0].Burst != want.Bands[0].Burst:
			list = append(list, m.rateMeter(of13.CommandModify))
		}
	}
	return list
}

// note remembers whose rate a meter is.
func (l *Local) note(meter uint32, first uint8) {
	if l.meters.keep != nil {
		l.meters.keep(meter, first, 0)
	}
}

// meterConfigs are those of the switch; one without meters has none.
func (l *Local) meterConfigs() (list []of13.MeterConfig, err error) {
	parts, err := askMultipart(l.under, &of13.MultipartRequest{Kind: of13.MultipartMeterConfig, Number: of13.MeterAll})
	var refused of13.Error
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	for _, part := range parts {
		list = append(list, part.MeterConfigs...)
	}
	return list, nil
}

// allowance bounds what controllers of a slice with a rate send by packet-outs, which
// pass no meter.
type allowance struct {
	bits int64
	at   time.Time
}

// take says whether a packet may go, as often as its actions send it.
func (a *allowance) take(rate int64, m *of13.PacketOut) bool {
	if rate == 0 {
		return true
	}
	now := time.Now()
	most := max(rate/10, leastBurst*1000)
	a.bits = min(most, a.bits+int64(now.Sub(a.at).Seconds()*float64(rate)))
	if a.at.IsZero() {
		a.bits = most
	}
	a.at = now
	bits := int64(8 * len(m.Data) * max(1, len(m.Actions)))
	if bits > a.bits {
		return false
	}
	a.bits -= bits
	return true
}

func (s *Slice) checkRate() error {
	if s.Rate != 0 && (s.Rate < 1000 || s.Rate/1000 > 1<<32-1) {
		return fmt.Errorf("rate: %d bit/s cannot be metered: state 1kbit to 4Tbit", s.Rate)
	}
	return nil
}
