package control

// Bounds of what samples say.
const (
	idle     = 0.1    // of the planned work, below which a sample says nothing
	used     = 0.985  // of the quota, from which on a function may be polling
	gainMost = 1.15   // of a quota: kernels give a few percent more or less
	gainLow  = 0.9    // below it others take the time, and more quota is no help
	leak     = 0.0002 // of a factor that samples only bound, in each: too much is found out by giving less
	spare    = 0.05   // more than needed, for functions that hold no rate themselves
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
	interrupted bool    // others take its time
}

// learn takes a sample of so many seconds and says whether the cost has a new
// level. planned is the work a second that the promised rates are.
func (f *function) learn(s Sample, seconds, planned float64) bool {
	work := 0.0
	for _, c := range s.Served {
		work += f.Profile.Cost(c.Packets, c.Bytes)
	}
	fresh := f.fresh
	f.fresh = false
	saturated := s.Dropped > 0
	if work <= 0 || !saturated && work < idle*planned*seconds {
		f.factor.odds = 0
		return false
	}
	if given := s.Used / (f.share * seconds); saturated && !fresh {
		f.interrupted = given < gainLow
		f.gain.add(min(max(given, gainLow), gainMost))
	}
	cost := s.Used / work
	bound := !saturated && s.Used >= used*f.share*f.gained()*seconds
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
	f.share, f.fresh, f.assumed = share, true, f.gained()
}
