package embed

import (
	"sublet/vnet"
)

// span is the part of a window in which one topology runs.
type span struct {
	window   vnet.Window
	topology vnet.Topology
}

// spansOf cuts a window at the request's stages. Stages that begin after the
// window's end, or at the same time as the next, take no time and are left out.
func spansOf(request vnet.Request, window vnet.Window) []span {
	var spans []span
	for stage := -1; stage < len(request.Stages); stage++ {
		w := window
		if stage >= 0 {
			w.Start = window.Start.Add(request.Stages[stage].After)
		}
		if stage+1 < len(request.Stages) {
			next := window.Start.Add(request.Stages[stage+1].After)
			if window.End.IsZero() || next.Before(window.End) {
				w.End = next
			}
		}
		if w.End.IsZero() || w.Start.Before(w.End) {
			spans = append(spans, span{w, request.At(stage)})
		}
	}
	return spans
}
