package control

// Bounds of what samples say.
const (
	idle     = 0.1    // of the planned work, below which a sample says nothing
	used     = 0.985  // of the quota, from which on a function may be polling
	gainMost = 1.15   // of a quota: kernels give a few percent more or less
	gainLow  = 0.9    // below it others take the time, and more quota is no help
	leak     = 0.0002 // of a factor that samples only bound, in each: too much is found out by giving less
	spare    = 0.05   // more than needed, for functions that hold no rate themselves
	periods  = 10     // of a quota longer than the short one, that a sample is of at least, so that one more or less makes no tenth
)

// Function is one that is controlled.
type Function struct {
	Name    string
	Profile Profile
	Share   float64 // cores, to begin with
	Most    float64 // cores that it can use; 0: one
	// Limited says that no more than the rates arrives: it holds none itself, and
	// needs time to spare.
	Limited bool
}

// Count of packets, and of their bytes.
type Count struct{ Packets, Bytes float64 }

// Sample is what was counted of a function in an interval.
type Sample struct {
	Used            float64 // seconds of a core
	Arrived, Served []Count // by chain
	Dropped         float64 // packets that came while it had no time
}

// function is what the controller knows of one.
type function struct {
	Function
	share       float64
	regulates   bool // it is the first of one chain and in no other, and holds that chain's rate
	factor      level
	gain        level
	assumed     float64 // the gain when the share was set
	fresh       bool    // the share was just changed
	interrupted int     // samples for which others are said to take its time
	sum         tally   // of what came since the last sample that was long enough
}

// tally is what samples counted together.
type tally struct{ seconds, used, work, dropped float64 }

// tallied adds a sample, and returns all since the last that was long enough when they
// are so together.
func (f *function) tallied(s Sample, seconds float64) (tally, bool) {
	f.sum.seconds += seconds
	f.sum.used += s.Used
	f.sum.dropped += s.Dropped
	for _, c := range s.Served {
		f.sum.work += f.Profile.Cost(c.Packets, c.Bytes)
	}
	if _, period := Quota(f.share); period > shortPeriod && f.sum.seconds < periods*period.Seconds() {
		return tally{}, false
	}
	whole := f.sum
	f.sum = tally{}
	return whole, true
}

// learn takes a sample of so many seconds and says whether the cost has a new
// level. planned is the work a second that the promised rates are.
func (f *function) learn(s Sample, seconds, planned float64) bool {
	t, whole := f.tallied(s, seconds)
	if !whole {
		return false
	}
	fresh := f.fresh
	f.fresh = false
	saturated := t.dropped > 0
	f.interrupted = max(0, f.interrupted-1)
	if given := t.used / (f.share * t.seconds); saturated && !fresh {
		f.interrupted = 0
		if given < gainLow {
			f.interrupted = settled
		}
		f.gain.add(min(max(given, gainLow), gainMost))
	}
	// What was served without any time was counted late: it is no cost.
	if t.work <= 0 || t.used <= 0 || !saturated && t.work < idle*planned*t.seconds {
		f.factor.odds = 0
		return false
	}
	cost := t.used / t.work
	bound := !saturated && t.used >= used*f.share*f.gained()*t.seconds
	if bound && (f.factor.n == 0 || cost >= (1-2*spare)*f.factor.mean) {
		f.factor.odds = 0
		f.factor.mean *= 1 - leak
		return false
	}
	return f.factor.add(cost)
}

// gained is the part of a quota that the kernel gives.
func (f *function) gained() float64 {
	if f.gain.mean == 0 {
		return 1
	}
	return f.gain.mean
}

// set changes the share. After a large change, gain and cost are measured anew:
// what the kernel gives of a quota depends on its size, and profiles are not
// exact for packets of another size.
func (f *function) set(share float64) {
	if ratio := share / f.share; ratio > 1+oddness || ratio < 1-oddness {
		f.gain.n, f.factor.n = 0, min(f.factor.n, 1)
	}
	f.share, f.fresh, f.assumed, f.sum = share, true, f.gained(), tally{}
}
