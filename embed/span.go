package embed

import "sublet/vnet"

// span is the part of a window in which one topology runs.
type span struct {
	window   vnet.Window
	topology vnet.Topology
}

// spansOf cuts a window at the request's stages; each runs until a later one
// begins (Request.StageAt). Stages that take no time are left out.
func spansOf(request vnet.Request, window vnet.Window) []span {
	var spans []span
	for stage := -1; stage < len(request.Stages); stage++ {
		w := window
		if stage >= 0 {
			w.Start = window.Start.Add(request.Stages[stage].After)
		}
		for _, later := range request.Stages[stage+1:] {
			next := window.Start.Add(later.After)
			if w.End.IsZero() || next.Before(w.End) {
				w.End = next
			}
		}
		if w.End.IsZero() || w.Start.Before(w.End) {
			spans = append(spans, span{w, request.At(stage)})
		}
	}
	return spans
}
