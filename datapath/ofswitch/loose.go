package ofswitch

import (
	"iter"
	"slices"

	"sublet/openflow/of13"
)

// actionsOf gives the actions of an entry, by its instructions.
func actionsOf(m of13.Message) iter.Seq2[int, *of13.Action] {
	return func(yield func(int, *of13.Action) bool) {
		f, entry := m.(*of13.FlowMod)
		at := 0
		for i := 0; entry && i < len(f.Instructions); i++ {
			for j := range f.Instructions[i].Actions {
				if !yield(at, &f.Instructions[i].Actions[j]) {
					return
				}
				at++
			}
		}
	}
}

// appendLoose writes behind a message which of its actions are loose, since OpenFlow
// 1.3 has no place for that: a byte each, none if none is.
func appendLoose(b []byte, m of13.Message) []byte {
	var loose []byte
	for _, a := range actionsOf(m) {
		is := byte(0)
		if a.Loose {
			is = 1
		}
		loose = append(loose, is)
	}
	if !slices.Contains(loose, 1) {
		return b
	}
	return append(b, loose...)
}

// loosen makes actions what appendLoose wrote of them.
func loosen(m of13.Message, loose []byte) {
	for at, a := range actionsOf(m) {
		a.Loose = at < len(loose) && loose[at] == 1
	}
}
