package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// maxTrace bounds the arrivals of a trace or capture: half a gigabyte of them.
const maxTrace = 16 << 20

// record is one line of a trace (docs/schema/packet.schema.json).
type record struct {
	Point    *int    `json:"point"`
	Run      *int    `json:"run"`
	Time     *int64  `json:"time_ns"`
	Switch   *string `json:"virtual_switch"`
	Input    *int    `json:"input"`
	Output   *int    `json:"output"`
	Size     *int    `json:"size_bytes"`
	Sequence *uint64 `json:"sequence"`
	Arrival  *int64  `json:"arrival_ns"`
	Hop      *int    `json:"hop"`
}

// ReadTrace reads the arrivals of a trace, in ascending order of time. Numbers
// are kept if every line states one.
func ReadTrace(r io.Reader, s *Scenario) ([]Arrival, error) {
	names := make(map[string]int32)
	for i, v := range s.VirtualSwitches {
		names[v.Name] = int32(i)
	}
	list := []Arrival{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<16)
	numbered := 0
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		a, stated, err := readRecord(text, names, s)
		if err == nil && len(list) > 0 && a.At < list[len(list)-1].At {
			err = errors.New("is earlier than the line before it: sort by time_ns")
		}
		if err == nil && len(list) == maxTrace {
			err = fmt.Errorf("is more than %d arrivals: cut the trace", maxTrace)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if stated {
			numbered++
		}
		list = append(list, a)
	}
	if numbered < len(list) {
		for i := range list {
			list[i].Sequence = uint64(i)
		}
	}
	return list, lines.Err()
}

func readRecord(text []byte, names map[string]int32, s *Scenario) (Arrival, bool, error) {
	var a Arrival
	var rec record
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&rec); err != nil {
		return a, false, fmt.Errorf("is no packet: %w: write one JSON object a line, as --arrivals does", err)
	}
	if rec.Time == nil || rec.Switch == nil || rec.Input == nil || rec.Output == nil || rec.Size == nil {
		return a, false, errors.New("lacks a field: state time_ns, virtual_switch, input, output and size_bytes")
	}
	of, known := names[*rec.Switch]
	if !known {
		return a, false, fmt.Errorf("names the virtual switch %q: use a name of the scenario", *rec.Switch)
	}
	own := s.VirtualSwitches[of].Ports
	switch {
	case rec.Run != nil && *rec.Run != 0 || rec.Point != nil && *rec.Point != 0 || rec.Hop != nil && *rec.Hop != 1:
		return a, false, errors.New("is of another run, point or hop: keep the lines of one, numbered 0")
	case *rec.Time < 0 || *rec.Time > int64(1<<53):
		return a, false, fmt.Errorf("has time_ns %d: count from 0", *rec.Time)
	case !slices.Contains(own, *rec.Input) || !slices.Contains(own, *rec.Output):
		return a, false, fmt.Errorf("goes from port %d to %d, which %q does not both have", *rec.Input, *rec.Output, *rec.Switch)
	case *rec.Size < 1 || *rec.Size > 65535:
		return a, false, fmt.Errorf("has size_bytes %d: choose 1 to 65535", *rec.Size)
	}
	a = Arrival{At: time.Duration(*rec.Time), Switch: of, Input: int16(*rec.Input), Output: int16(*rec.Output), Size: int32(*rec.Size)}
	if rec.Sequence != nil {
		a.Sequence = *rec.Sequence
	}
	return a, rec.Sequence != nil, nil
}

// Writer writes packets as JSON lines. It allocates nothing per line.
type Writer struct {
	out        *bufio.Writer
	names      [][]byte // of virtual switches, as JSON
	point, run int
	line       []byte
}

// NewWriter writes the packets of one run of one point of an experiment.
func NewWriter(w io.Writer, s *Scenario, point, run int) (*Writer, error) {
	made := &Writer{out: bufio.NewWriterSize(w, 1<<16), point: point, run: run}
	for _, v := range s.VirtualSwitches {
		name, err := json.Marshal(v.Name)
		if err != nil {
			return nil, err
		}
		made.names = append(made.names, name)
	}
	return made, nil
}

// Arrived writes a packet that arrives.
func (w *Writer) Arrived(a *Arrival) {
	w.begin(a, a.At)
	w.end()
}

// Departed writes a packet whose transmission begins. Hop is 1, or 2 at the
// second switch of a split.
func (w *Writer) Departed(d *Departure, hop int) {
	w.begin(&d.Arrival, d.At)
	w.put(`,"arrival_ns":`, int64(d.Arrival.At))
	if hop > 1 {
		w.put(`,"hop":`, int64(hop))
	}
	w.end()
}

// Flush writes what is left and returns the first error of all.
func (w *Writer) Flush() error { return w.out.Flush() }

func (w *Writer) begin(a *Arrival, at time.Duration) {
	w.line = w.line[:0]
	w.put(`{"point":`, int64(w.point))
	w.put(`,"run":`, int64(w.run))
	w.put(`,"time_ns":`, int64(at))
	w.line = append(append(w.line, `,"virtual_switch":`...), w.names[a.Switch]...)
	w.put(`,"input":`, int64(a.Input))
	w.put(`,"output":`, int64(a.Output))
	w.put(`,"size_bytes":`, int64(a.Size))
	w.put(`,"sequence":`, int64(a.Sequence))
}

func (w *Writer) put(key string, value int64) {
	w.line = strconv.AppendInt(append(w.line, key...), value, 10)
}

func (w *Writer) end() { _, _ = w.out.Write(append(w.line, '}', '\n')) } // Flush returns its error
