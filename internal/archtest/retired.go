package archtest

// A retired name is no longer declared, in Go or C, in a folder and those below
// it; In "" is the whole tree.
type retired struct{ Name, In, Instead string }

// Retired are the names of before the field's terms were taken, with what
// stands in their place. docs/glossary.md has the terms.
var Retired = []retired{
	// embedding
	{"keen", "", "residualCosts"},
	{"thorough", "", "tryAllEquivalent"},
	{"noisy", "embed", "perturbed"},
	{"blur", "embed", "perturb"},
	{"welcome", "", "eligible"},
	{"roomy", "embed", "fits"},
	{"wide", "embed", "hasBandwidth"},
	{"strangled", "", "cutOff"},
	{"recruit", "", "reinsert"},
	{"relent", "", "undo"},
	{"press", "", "makeRoom"},
	{"twins", "embed", "equivalence, equivalent"},
	{"charts", "embed", "costTables"},
	{"survey", "embed", "choices"},
	{"live", "embed", "residualRow"},
	{"homeless", "", "displaced; in embed whyNoHost"},
	{"footloose", "", "unconstrained"},
	{"wealth", "", "freeBandwidth"},
	{"spot", "embed", "pricedHost"},
	{"lane", "embed", "carrier"},
	{"Engine", "embed", "Embedder"},
	{"CheckMapping", "", "verify.Mapping"},
	{"seedNode", "", "startNode"},
	{"rectify", "", "alignWithFabric"},
	{"Ways", "embed", "HopGraph"},
	// fabric, paths
	{"field", "fabric", "distances"},
	{"mirror", "fabric", "reverseArcs"},
	{"DocumentLists", "", "PrefixTreeLists"},
	{"SpreadMeasured", "", "ApplyMeasured"},
	{"watching", "agent/iplbd", "pathProbes"},
	{"rested", "agent/iplbd", "lastMoved"},
	{"blast", "measure", "pktgen; in probe pacedLoad"},
	// tests
	{"twin", "embed", "reference"},
	{"twin", "vxswitch", "reference"},
	{"twin", "fabric", "reference"},
}
