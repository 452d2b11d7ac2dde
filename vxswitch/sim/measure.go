package sim

import (
	"encoding/json"
	"math"
	"strconv"
)

// Measure is one figure of a virtual switch or port.
type Measure int

// What is measured. Packets count in the runs in which they arrive, between
// the warm-up's end and the duration's.
const (
	OfferedPackets Measure = iota
	OfferedBytes
	DeliveredPackets
	DeliveredBytes
	DroppedPackets
	DroppedBytes
	QueuedPackets
	QueuedBytes
	ThroughputPackets
	ThroughputBytes
	LossPackets
	LossBytes
	DeliveredRate
	DelayMean
	DelayStd
	DelayP50
	DelayP99
	DelayMax
	OccupancyMean
	OccupancyMax
	measures
)

// Measures names and explains each; the order is that of the output.
var Measures = [measures]struct{ Name, Means string }{
	{"offered_packets", "Packets that arrived."},
	{"offered_bytes", "Their bytes."},
	{"delivered_packets", "Packets of those that left."},
	{"delivered_bytes", "Their bytes."},
	{"dropped_packets", "Packets of those that were dropped, for whatever reason."},
	{"dropped_bytes", "Their bytes."},
	{"queued_packets", "Packets of those still in the switch at the end: offered less delivered less dropped. 0 if the run drains."},
	{"queued_bytes", "Their bytes."},
	{"throughput_packets", "Delivered packets by offered packets, 0 to 1."},
	{"throughput_bytes", "Delivered bytes by offered bytes, 0 to 1."},
	{"loss_packets", "Dropped packets by offered packets, 0 to 1."},
	{"loss_bytes", "Dropped bytes by offered bytes, 0 to 1."},
	{"delivered_bps", "Delivered bits by the measured time, in bit/s of Ethernet frames."},
	{"delay_mean_ns", "Mean time from arrival to the beginning of transmission."},
	{"delay_std_ns", "Standard deviation of that time."},
	{"delay_p50_ns", "Its median, to 0.8 %; of inputs to 1.6 %."},
	{"delay_p99_ns", "Its 99th percentile, to 0.8 %; of inputs to 1.6 %."},
	{"delay_max_ns", "Its maximum."},
	{"occupancy_mean_bytes", "Bytes in the buffers, mean over time."},
	{"occupancy_max_bytes", "Bytes in the buffers, maximum."},
}

func (m Measure) String() string { return Measures[m].Name }

// MeasureNamed finds a measure by its name.
func MeasureNamed(name string) (Measure, bool) {
	for m, about := range Measures {
		if about.Name == name {
			return Measure(m), true
		}
	}
	return 0, false
}

// Figures is a value of every measure; one that is not defined, such as a
// delay of no packets, is NaN.
type Figures [measures]float64

// MarshalJSON writes the measures by name; null is a value not defined.
func (f Figures) MarshalJSON() ([]byte, error) { return append(f.fields([]byte{'{'}), '}'), nil }

func (f Figures) fields(b []byte) []byte {
	for m, v := range f {
		if m > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, Measures[m].Name...)
		b = append(b, '"', ':')
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, v, 'f', -1, 64)
		}
	}
	return b
}

// Estimate is the means of the measures over runs, and the half-widths of
// their 95 % confidence intervals. One run has no interval.
type Estimate struct {
	Mean Figures
	Half *Figures
}

// fields writes the means beside other fields of an object, and the
// half-widths by the same names under ci95.
func (e Estimate) fields(b []byte) []byte {
	b = e.Mean.fields(b)
	if e.Half != nil {
		b = append(e.Half.fields(append(b, `,"ci95":{`...)), '}')
	}
	return b
}

// Port is one side of a port of a virtual switch.
type Port struct {
	Port        int
	BufferBytes int64 // of the crosspoint buffers behind it, together
	Estimate
}

// MarshalJSON writes one flat object.
func (p Port) MarshalJSON() ([]byte, error) {
	b := append(strconv.AppendInt([]byte(`{"port":`), int64(p.Port), 10), `,"buffer_bytes":`...)
	b = append(strconv.AppendInt(b, p.BufferBytes, 10), ',')
	return append(p.Estimate.fields(b), '}'), nil
}

// Switch is the outcome of one virtual switch.
type Switch struct {
	Name        string
	BufferBytes int64 // of one crosspoint
	Estimate
	Inputs, Outputs []Port // those that packets were offered to
}

// MarshalJSON writes one object, the figures of the whole switch first.
func (s Switch) MarshalJSON() ([]byte, error) {
	name, err := json.Marshal(s.Name)
	if err != nil {
		return nil, err
	}
	inputs, err := json.Marshal(s.Inputs)
	if err != nil {
		return nil, err
	}
	outputs, err := json.Marshal(s.Outputs)
	if err != nil {
		return nil, err
	}
	b := append(append([]byte(`{"name":`), name...), `,"crosspoint_buffer_bytes":`...)
	b = append(strconv.AppendInt(b, s.BufferBytes, 10), ',')
	b = s.Estimate.fields(b)
	b = append(append(b, `,"inputs":`...), inputs...)
	b = append(append(b, `,"outputs":`...), outputs...)
	return append(b, '}'), nil
}

// MarshalJSON writes the means, and the half-widths under ci95.
func (e Estimate) MarshalJSON() ([]byte, error) { return append(e.fields([]byte{'{'}), '}'), nil }
