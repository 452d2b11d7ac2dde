package profile

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"sublet/agent/control"
	"sublet/measure/pktgen"
)

// Spec says what is measured.
type Spec struct {
	Argv   []string // with an absolute path
	Shares []float64
	Sizes  []int // bytes of frames, without checksum
	Window time.Duration
}

// Bounds of a Spec.
const (
	LeastSize, MostSize = 60, 1514
	LeastShare          = 0.01
)

// Result is a profile with what it was made of.
type Result struct {
	Function   []string        `json:"function"`
	Profile    control.Profile `json:"profile"`
	WorstError float64         `json:"worst_error"` // of the profile at a point, relative
	Points     []Point         `json:"points"`
	Missing    []Missing       `json:"missing"` // meters that are not here
}

// Missing is a meter that this machine has not.
type Missing struct {
	Meter string `json:"meter"`
	Why   string `json:"why"`
}

// Point is what was measured with one share and size.
type Point struct {
	Share   float64 `json:"share"`      // of a processor, that was given
	Used    float64 `json:"used_share"` // that was used
	Bytes   int     `json:"bytes"`
	Packets float64 `json:"packets_per_s"`
	Rate    float64 `json:"rate_bps"`
	Cost    float64 `json:"cost_s"`             // of a processor, a packet
	Memory  float64 `json:"memory_bytes"`       // at the end
	Energy  float64 `json:"energy_j,omitempty"` // a packet, of the whole machine
}

// patience bounds how long the first frame may take, and how long a window in
// which nothing came is measured again.
const patience = 10 * time.Second

// Measure does, and leaves nothing behind.
func Measure(ctx context.Context, s Spec) (r Result, err error) {
	b, err := newBed()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	loader, worker := 0, runtime.NumCPU()-1
	p, err := start(s.Argv, b.function, s.Shares[len(s.Shares)-1], worker)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	counter, err := pktgen.CountIn(b.out)
	if err != nil {
		return r, err
	}
	defer counter.Close()
	r.Function = s.Argv
	for _, size := range s.Sizes {
		if err := r.size(ctx, s, b, p, counter, size, loader); err != nil {
			return r, err
		}
	}
	r.Missing = missing()
	return r, r.fit()
}

// missing are the meters that are not here.
func missing() []Missing {
	list := []Missing{}
	for _, m := range Meters() {
		if _, err := m.Read(nil); errors.Is(err, ErrNotHere) {
			list = append(list, Missing{m.Name(), err.Error()})
		}
	}
	return list
}

// size measures all shares with frames of a size.
func (r *Result) size(ctx context.Context, s Spec, b *bed, p *program, counter *pktgen.Counter, size, cpu int) (err error) {
	load, err := pktgen.StartTo(b.in, b.out, b.entry.Attrs().HardwareAddr, size, cpu, pktgen.Discard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, load.Stop()) }()
	for _, share := range s.Shares {
		if err := p.give(share); err != nil {
			return err
		}
		if err := p.forwards(ctx, counter); err != nil {
			return err
		}
		point, err := p.point(ctx, s.Window, counter)
		if err != nil {
			return err
		}
		point.Share, point.Bytes = share, size
		point.Rate = point.Packets * float64(size) * 8
		r.Points = append(r.Points, point)
	}
	return nil
}

// give sets the share.
func (p *program) give(share float64) error { return p.group.SetQuota(control.Quota(share)) }

// forwards waits until a frame comes out.
func (p *program) forwards(ctx context.Context, counter *pktgen.Counter) error {
	before, end := counter.Packets(), time.Now().Add(patience)
	for counter.Packets() == before {
		if time.Now().After(end) {
			return fmt.Errorf("nothing came out of eth1 in %s: a function takes every frame from eth0 and sends it out of eth1", patience)
		}
		if err := p.wait(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return p.wait(ctx, settle)
}

// settle is for the periods of the quota before and of queues.
const settle = 100 * time.Millisecond

// wait waits, unless the program or the caller ends.
func (p *program) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-p.ended:
		return p.died()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reading of all meters, by name, and of packets.
type reading struct {
	at      time.Time
	packets uint64
	values  map[string]float64
}

func (p *program) read(counter *pktgen.Counter) (reading, error) {
	r := reading{at: time.Now(), packets: counter.Packets(), values: map[string]float64{}}
	pids, err := p.group.Processes()
	if err != nil {
		return r, err
	}
	for _, m := range Meters() {
		v, err := m.Read(pids)
		if err != nil && !errors.Is(err, ErrNotHere) {
			return r, err
		}
		r.values[m.Name()] = v
	}
	return r, nil
}

// point measures a window, and a longer one if nothing came.
func (p *program) point(ctx context.Context, window time.Duration, counter *pktgen.Counter) (Point, error) {
	for ; ; window *= 2 {
		before, err := p.read(counter)
		if err != nil {
			return Point{}, err
		}
		if err := p.wait(ctx, window); err != nil {
			return Point{}, err
		}
		after, err := p.read(counter)
		if err != nil {
			return Point{}, err
		}
		if point, ok := between(before, after); ok {
			return point, nil
		}
		if window > patience {
			return Point{}, fmt.Errorf("in %s the function forwarded nothing: measure again when the machine is less busy", window)
		}
	}
}

// between is what happened from one reading to another; false: nothing.
func between(before, after reading) (Point, bool) {
	seconds := after.at.Sub(before.at).Seconds()
	packets := float64(after.packets - before.packets)
	delta := map[string]float64{}
	for _, m := range Meters() {
		delta[m.Name()] = after.values[m.Name()]
		if m.Sums() {
			delta[m.Name()] -= before.values[m.Name()]
		}
	}
	if packets == 0 || delta["processor"] <= 0 {
		return Point{}, false
	}
	return Point{
		Used: delta["processor"] / seconds, Packets: packets / seconds, Cost: delta["processor"] / packets,
		Memory: delta["memory"], Energy: max(0, delta["energy"]) / packets, // a counter of energy that began anew says nothing
	}, true
}

// fit makes the profile of the points.
func (r *Result) fit() (err error) {
	var points []control.Point
	for _, p := range r.Points {
		points = append(points, control.Point{Bytes: float64(p.Bytes), Cost: p.Cost})
	}
	r.Profile, r.WorstError, err = control.Fit(points)
	return err
}
