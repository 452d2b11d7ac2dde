package heap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTopIsTheLeast: after any operations Top is the least of the numbers that
// are in by key, then number.
func TestTopIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 12
		h, in := New(n), map[int]Key{}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			i := rapid.IntRange(0, n-1).Draw(t, "number")
			if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				h.Remove(i)
				delete(in, i)
			} else {
				in[i] = Key{int64(rapid.IntRange(0, 3).Draw(t, "first")), int64(rapid.IntRange(0, 3).Draw(t, "second"))}
				h.Set(i, in[i])
			}
			if want := least(in); h.Top() != want {
				t.Fatalf("top %d of %v, want %d", h.Top(), in, want)
			}
			if _, is := in[i]; h.Has(i) != is || is && h.Key(i) != in[i] {
				t.Fatalf("%d is in: %v, %v", i, h.Has(i), h.Key(i))
			}
		}
	})
}

func least(in map[int]Key) int {
	list := []int{}
	for i := range in {
		list = append(list, i)
	}
	if len(list) == 0 {
		return None
	}
	slices.SortFunc(list, func(i, j int) int {
		a, b := in[i], in[j]
		switch {
		case a.First != b.First:
			return int(a.First - b.First)
		case a.Second != b.Second:
			return int(a.Second - b.Second)
		}
		return i - j
	})
	return list[0]
}
