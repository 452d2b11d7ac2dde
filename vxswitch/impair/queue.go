package impair

import "time"

// Queue holds frames until they are due, in order of time; frames of one
// instant keep the order in which they came.
type Queue[T any] struct {
	heap []waiting[T]
	came uint64
}

// waiting is a frame that is not due yet.
type waiting[T any] struct {
	at    time.Duration
	order uint64
	frame T
}

func (w waiting[T]) before(v waiting[T]) bool {
	return w.at < v.at || w.at == v.at && w.order < v.order
}

// Len is how many frames wait.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Put adds a frame that is due at a time.
func (q *Queue[T]) Put(at time.Duration, frame T) {
	q.heap = append(q.heap, waiting[T]{at, q.came, frame})
	q.came++
	for i := len(q.heap) - 1; i > 0 && q.heap[i].before(q.heap[(i-1)/2]); i = (i - 1) / 2 {
		q.heap[i], q.heap[(i-1)/2] = q.heap[(i-1)/2], q.heap[i]
	}
}

// Next is when the first frame is due; false: none waits.
func (q *Queue[T]) Next() (time.Duration, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

// Take takes the first frame if it is due by now.
func (q *Queue[T]) Take(now time.Duration) (frame T, ok bool) {
	if len(q.heap) == 0 || q.heap[0].at > now {
		return frame, false
	}
	frame = q.heap[0].frame
	last := len(q.heap) - 1
	q.heap[0], q.heap[last] = q.heap[last], waiting[T]{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && q.heap[child].before(q.heap[least]) {
				least = child
			}
		}
		if least == i {
			return frame, true
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}
