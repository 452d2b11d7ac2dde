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
