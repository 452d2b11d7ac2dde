package embed

import "strings"

// Infeasible says why no embedding was found. Reasons are complete phrases
// about the substrate and the request itself; they never name another
// tenant's things.
type Infeasible struct {
	Reasons []string // binding elements, in words, most important first
	Nodes   []string // virtual nodes of the request that found no host
	Links   []string // virtual links of the request that found no path

	// Undecided: the work of Options.Effort was spent before the search was
	// over, so that there may be an embedding. Reasons say how far it came.
	Undecided bool
}

// undecided is how a search ends without having come anywhere.
func undecided() *Infeasible {
	return &Infeasible{Reasons: []string{"no place was found in the time that an answer may take"}, Undecided: true}
}

func (e *Infeasible) Error() string { return "embed: " + strings.Join(e.Reasons, "; ") }
