package report

import "slices"

// Ring keeps the newest value, and before it the last ones whose sizes together
// stay within a bound. Values are numbered from 1, also those that it let go. It is not safe for
// concurrent use.
type Ring[T any] struct {
	most int // bytes
	size int // of all values that are kept
	last uint64
	kept []sized[T]
}

type sized[T any] struct {
	value T
	size  int // bytes
}

// NewRing makes an empty ring of at most so many bytes, or one larger value.
func NewRing[T any](most int) *Ring[T] { return &Ring[T]{most: most} }

// Add appends a value, and lets go of the oldest for it. One that is larger than
// the bound is kept alone.
func (r *Ring[T]) Add(value T, size int) (number uint64) {
	r.last++
	r.kept = append(r.kept, sized[T]{value, size})
	r.size += size
	gone := 0
	for ; r.size > r.most && gone < len(r.kept)-1; gone++ {
		r.size -= r.kept[gone].size
	}
	r.kept = slices.Delete(r.kept, 0, gone)
	return r.last
}

// Last is the number of the newest value; 0: there was none.
func (r *Ring[T]) Last() uint64 { return r.last }

// After lists the values with higher numbers, oldest first. Whole is false if
// some of them are not kept any more, or if the ring never came that far.
func (r *Ring[T]) After(number uint64) (values []T, whole bool) {
	missed := uint64(0)
	if number <= r.last {
		missed = r.last - number
	}
	first := max(0, len(r.kept)-int(min(missed, uint64(len(r.kept)))))
	for _, v := range r.kept[first:] {
		values = append(values, v.value)
	}
	return values, number <= r.last && missed <= uint64(len(r.kept))
}

// Next is the value after a number, with its own; 0: there is none yet. Whole is
// as After's, and without it there is no value.
func (r *Ring[T]) Next(after uint64) (value T, number uint64, whole bool) {
	missed := r.last - min(after, r.last)
	if after > r.last || missed > uint64(len(r.kept)) {
		return value, 0, false
	}
	if missed == 0 {
		return value, 0, true
	}
	return r.kept[len(r.kept)-int(missed)].value, after + 1, true
}
