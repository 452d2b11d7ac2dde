package vnet

import (
	"maps"
	"slices"
)

// Nearest returns the word a mistyped one was probably meant to be: the first
// within an edit distance of a third of its length (at least 1), or "".
func Nearest(typed string, words []string) string {
	// Longer words cannot be names; the bound keeps the table small.
	if len(typed) > 2*MaxName {
		return ""
	}
	best, bound := "", max(1, len(typed)/3)
	for _, w := range words {
		if d := editDistance(typed, w); d <= bound {
			best, bound = w, d-1
		}
	}
	return best
}

// editDistance counts insertions, deletions, substitutions (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
