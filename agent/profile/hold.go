package profile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"sublet/agent/control"
	"sublet/measure/pktgen"
)

// Phase is load of frames of one size.
type Phase struct {
	Size   int
	Length time.Duration
}

// Moment is an interval of a function whose rate was held.
type Moment struct {
	Phase   int
	Seconds float64
	Offered float64 // bit/s that arrived
	Rate    float64 // bit/s that came out
	Share   float64 // of a processor, that was given
	Used    float64 // of a processor
	Changed bool    // the share, afterwards
}

// interval between samples: five periods of a quota.
const interval = 100 * time.Millisecond

// Hold runs a function under more load than it is to carry, and has the
// controller give it what holds a rate in bit/s: a chain of one function.
func Hold(ctx context.Context, argv []string, p control.Profile, rate float64, phases []Phase) (list []Moment, err error) {
	h := holder{rate: rate}
	if h.bed, err = newBed(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.bed.close()) }()
	packets := rate / 8 / float64(phases[0].Size)
	begin := min(1, max(LeastShare, p.Cost(packets, rate/8)))
	if h.law, err = control.New([]control.Function{{Name: "function", Profile: p, Share: begin}}, []control.Chain{{Name: "chain", Rate: rate, Via: []int{0}}}, 1); err != nil {
		return nil, err
	}
	if h.program, err = start(argv, h.bed.function, begin, runtime.NumCPU()-1); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.program.stop()) }()
	if h.counter, err = pktgen.CountIn(h.bed.out); err != nil {
		return nil, err
	}
	defer h.counter.Close()
	for i, phase := range phases {
		if err := h.phase(ctx, i, phase); err != nil {
			return h.moments, err
		}
	}
	return h.moments, nil
}

// holder is a function that is held at a rate.
type holder struct {
	bed     *bed
	program *program
	counter *pktgen.Counter
	law     *control.Controller
	rate    float64
	moments []Moment
}

func (h *holder) phase(ctx context.Context, number int, p Phase) (err error) {
	load, err := pktgen.StartTo(h.bed.in, h.bed.out, h.bed.entry.Attrs().HardwareAddr, p.Size, 0, pktgen.Discard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, load.Stop()) }()
	if number == 0 {
		if err := h.program.forwards(ctx, h.counter); err != nil {
			return err
		}
	}
	before, err := h.sample()
	for end := time.Now().Add(p.Length); err == nil && time.Now().Before(end); {
		if err := h.program.wait(ctx, interval); err != nil {
			return err
		}
		after, err := h.sample()
		if err != nil {
			return err
		}
		m := h.step(before, after)
		m.Phase = number
		h.moments = append(h.moments, m)
		if m.Changed {
			if err := h.program.give(h.law.Shares()[0]); err != nil {
				return err
			}
		}
		before = after
	}
	return err
}

// sample is a reading with what both interfaces counted.
type sample struct {
	reading
	in, out control.Count
}

func (h *holder) sample() (s sample, err error) {
	if s.reading, err = h.program.read(h.counter); err == nil {
		s.in, err = received(h.bed.function, "eth0")
	}
	if err == nil {
		s.out, err = received(h.bed.load, "out")
	}
	return s, err
}

// received is what an interface counted.
func received(ns *os.File, name string) (control.Count, error) {
	handle, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()))
	if err != nil {
		return control.Count{}, err
	}
	defer handle.Close()
	link, err := handle.LinkByName(name)
	if err != nil || link.Attrs().Statistics == nil {
		return control.Count{}, errors.Join(err, fmt.Errorf("interface %s counts nothing", name))
	}
	counted := link.Attrs().Statistics
	return control.Count{Packets: float64(counted.RxPackets), Bytes: float64(counted.RxBytes)}, nil
}

func minus(a, b control.Count) control.Count {
	return control.Count{Packets: a.Packets - b.Packets, Bytes: a.Bytes - b.Bytes}
}

// queued is what may wait in a socket from one sample to the next, in packets.
const queued = 512

// step tells the controller.
func (h *holder) step(before, after sample) Moment {
	seconds := after.at.Sub(before.at).Seconds()
	in, out := minus(after.in, before.in), minus(after.out, before.out)
	used := after.values["processor"] - before.values["processor"]
	share := h.law.Shares()[0]
	changed := h.law.Step(seconds, []control.Count{in}, []control.Sample{{
		Used: used, Arrived: []control.Count{in}, Served: []control.Count{out}, Dropped: max(0, in.Packets-out.Packets-queued),
	}})
	return Moment{Seconds: seconds, Offered: 8 * in.Bytes / seconds, Rate: 8 * out.Bytes / seconds, Share: share, Used: used / seconds, Changed: changed}
}
