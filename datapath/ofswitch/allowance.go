package ofswitch

const second = int64(1e9)

// allowance is a token bucket of at most a second's worth; a rate of 0 is no bound.
type allowance struct {
	rate int64 // in a second
	left int64 // in parts of which second make one
	last int64
}

// take says whether one more may go at a time in nanoseconds, and takes it then.
func (a *allowance) take(now int64) bool {
	if a.rate == 0 {
		return true
	}
	passed := min(now-a.last, second)
	if a.last == 0 {
		passed = second
	}
	a.last = now
	a.left = min(a.left+passed*a.rate, second*a.rate)
	if a.left < second {
		return false
	}
	a.left -= second
	return true
}

// allowances are those of slices, which have equal parts of the rate; of a switch
// without slices there is one.
type allowances struct {
	rate int64 // of all
	of   map[string]*allowance
}

func (a *allowances) take(now int64, slice string) bool {
	one := a.of[slice]
	if one == nil {
		one = &allowance{rate: a.rate}
		if a.of == nil {
			a.of = make(map[string]*allowance)
		}
		a.of[slice] = one
	}
	return one.take(now)
}

// share divides the rate among slices.
func (a *allowances) share(names []string) {
	a.of = make(map[string]*allowance)
	for _, name := range names {
		a.of[name] = &allowance{rate: part(a.rate, len(names))}
	}
}

// part is at least 1, since 0 is no bound.
func part(rate int64, of int) int64 {
	if rate == 0 {
		return 0
	}
	return max(rate/int64(of), 1)
}
