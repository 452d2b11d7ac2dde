package sim

import (
	"time"

	"sublet/vnet"
	"sublet/vxswitch/split"
)

// far is the second switch of a split, and the splitter before the first.
type far struct {
	r        *run
	of       *Split
	splitter *split.Splitter
	paths    []farPath
	order    *split.Resequencer[Arrival]
	line     line
	again    time.Duration // when to ask the resequencer next, or never
	last     uint64        // number that left last
	left     bool
	whole    side   // from the first switch's input to the second's output
	reorders uint64 // packets that left after one with a higher number
}

// farPath is one path on its way and at its end.
type farPath struct {
	side
	Path
	travelling []underway // in order of arrival, from first on
	first      int
}

// underway is a packet between the switches.
type underway struct {
	at     time.Duration // of arrival at the second
	number split.Number
	packet Arrival
}

func newFar(r *run) *far {
	s := r.s.Split
	f := &far{r: r, of: s, line: newLine(s.Rate), again: never}
	var weights, buffers []int
	for _, p := range s.Paths {
		weights, buffers = append(weights, p.Weight), append(buffers, int(p.Buffer))
		f.paths = append(f.paths, farPath{Path: p})
	}
	f.splitter = split.NewSplitter(weights)
	f.order = split.NewResequencer[Arrival](buffers, s.Stall)
	return f
}

// owns says whether a packet is of the split link.
func (f *far) owns(a *Arrival) bool { return int(a.Switch) == f.of.Of && int(a.Input) == f.of.Input }

// split chooses the path of a packet.
func (f *far) split(a *Arrival) (output int16, number uint64) {
	path, n := f.splitter.Choose(int(a.Size))
	if a.At >= f.r.s.Warmup {
		f.whole.offered.add(a.Size)
	}
	return int16(f.paths[path].Output), uint64(n)
}

// send takes a packet that the first switch has sent until end.
func (f *far) send(a *Arrival, end time.Duration, number uint64) {
	for i := range f.paths {
		if p := &f.paths[i]; p.Output == int(a.Output) {
			p.travelling = append(p.travelling, underway{end + p.Delay, split.Number(number), *a})
		}
	}
}

// advance does what happens at the second switch until and at a time. At equal
// times packets arrive first, in the order of the paths.
func (f *far) advance(until time.Duration) {
	for {
		p, at := f.earliest()
		if serve := max(f.again, f.line.free); f.again != never && serve < at {
			if serve > until {
				return
			}
			f.serve(serve)
			continue
		}
		if p == nil || at > until {
			return
		}
		f.receive(p)
	}
}

// earliest arrival of all paths.
func (f *far) earliest() (first *farPath, at time.Duration) {
	at = never
	for i := range f.paths {
		if p := &f.paths[i]; p.first < len(p.travelling) && p.travelling[p.first].at < at {
			first, at = p, p.travelling[p.first].at
		}
	}
	return first, at
}

// take removes the first packet of a path's way; the room before it is used
// again when it is half of all.
func (p *farPath) take() underway {
	u := p.travelling[p.first]
	p.first++
	if 2*p.first >= len(p.travelling) {
		n := copy(p.travelling, p.travelling[p.first:])
		p.travelling, p.first = p.travelling[:n], 0
	}
	return u
}

func (f *far) receive(p *farPath) {
	f.r.events++
	u := p.take()
	counted := u.packet.At >= f.r.s.Warmup
	if counted {
		p.offered.add(u.packet.Size)
	}
	if f.order.Push(f.index(p), u.number, int(u.packet.Size), u.packet) {
		p.enter(u.packet.Size)
	} else if counted {
		p.dropped.add(u.packet.Size)
	}
	f.again = u.at
}

func (f *far) index(p *farPath) int {
	for i := range f.paths {
		if p == &f.paths[i] {
			return i
		}
	}
	return -1
}

// serve lets the next packet leave, or learns when to ask again.
func (f *far) serve(now time.Duration) {
	a, ok, again := f.order.Pop(now)
	if !ok {
		f.again = never
		if again > 0 {
			f.again = again
		}
		return
	}
	f.r.events++
	f.again = now // after the line is free
	f.line.send(now, a.Size)
	p := f.pathOf(&a)
	p.leave(a.Size)
	if f.left && a.Sequence < f.last {
		f.reorders++
	}
	f.left, f.last = true, a.Sequence
	d := Departure{At: now, Arrival: a}
	if a.At >= f.r.s.Warmup {
		p.deliver(d.Size, d.Delay(), fineOutput)
		f.whole.deliver(d.Size, d.Delay(), fineOutput)
	}
	if f.r.watch.Departed != nil {
		f.r.watch.Departed(&d, 2)
	}
}

func (f *far) pathOf(a *Arrival) *farPath {
	for i := range f.paths {
		if f.paths[i].Output == int(a.Output) {
			return &f.paths[i]
		}
	}
	return nil
}

// line is a wire that sends one frame at a time.
type line struct {
	rate uint64 // bit/s
	free time.Duration
	part uint64 // of a nanosecond beyond free, in 1/rate
}

func newLine(rate vnet.Rate) line { return line{rate: uint64(rate)} }

// send begins a frame at now; free is when the next one may begin, rounded up.
func (l *line) send(now time.Duration, size int32) {
	const second = uint64(time.Second)
	whole := uint64(size) * 8 * second
	if now == l.free && l.part > 0 { // back to back: what was rounded up is given back
		whole -= l.rate - l.part
	}
	l.free = now + time.Duration(whole/l.rate)
	if l.part = whole % l.rate; l.part > 0 {
		l.free++
	}
}
