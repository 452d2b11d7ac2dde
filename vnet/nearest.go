package vnet

import (
	"maps"
	"slices"
)

// Nearest returns the word a mistyped one was probably meant to be, or "": the
// first of least edit distance, as far as the two are alike enough.
func Nearest(typed string, words []string) string {
	// Longer words cannot be names; the bound keeps the table small.
	if len(typed) > 2*MaxName {
		return ""
	}
	best, least := "", 3
	for _, w := range words {
		if len(w) > 2*MaxName {
			continue
		}
		if d := editDistance(typed, w); d < least && alike(typed, w, d) {
			best, least = w, d
		}
	}
	return best
}

// alike says whether a distance is small for words of such lengths: most pairs
// of short words are one or two letters apart by chance.
func alike(a, b string, distance int) bool {
	longest := max(len(a), len(b))
	switch {
	case distance == 2:
		return longest >= 5
	case len(a) == len(b):
		return longest >= 4
	}
	return longest >= 2
}

// editDistance counts insertions, deletions, substitutions and transpositions
// of neighbours (Damerau 1964, each place edited once).
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
