// Package spread is how a sender spreads flows over the paths to a
// destination, and a flow-level model of what comes of it in a fabric
// (Nakamura, thesis, sections 5.4 and 5.5).
//
// The rules (Shares, Rearrange) are the ones the data plane uses; the model
// runs them where a fabric is too large to be built of namespaces. Rates are
// parts of a host's link. The same seed gives the same numbers everywhere.
package spread
