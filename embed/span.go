package embed

import (
	"time"

	"sublet/vnet"
)

// span is the part of a window in which one topology runs.
type span struct {
	window   vnet.Window
	topology vnet.Topology
	past     bool // it is over: what is booked in it binds nothing
}

// startFrom leaves of spans what comes from an instant on.
func startFrom(spans []span, from time.Time) {
	for i := range spans {
		var left bool
		spans[i].window, left = spans[i].window.Since(from)
		spans[i].past = !left
	}
}

// spansOf cuts a window at the request's stages; each runs until a later one
// begins (Request.StageAt). Stages that take no time are left out. Of stages on
// command any may run until the next one at the clock, so their spans are the
// same time.
func spansOf(request vnet.Request, window vnet.Window) []span {
	var spans []span
	for stage := -1; stage < len(request.Stages); stage++ {
		if w := request.MayRun(stage, window); w.End.IsZero() || w.Start.Before(w.End) {
			spans = append(spans, span{window: w, topology: request.At(stage)})
		}
	}
	return spans
}
