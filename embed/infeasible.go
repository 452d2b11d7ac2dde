package embed

import "strings"

// Infeasible says why no embedding was found. Reasons are complete phrases
// about the substrate and the request itself; they never name another
// tenant's things.
type Infeasible struct {
	Reasons []string // binding elements, in words, most important first
	Nodes   []string // virtual nodes of the request that found no host
	Links   []string // virtual links of the request that found no path
}

func (e *Infeasible) Error() string { return "embed: " + strings.Join(e.Reasons, "; ") }
