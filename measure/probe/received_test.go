package probe

import "testing"

// Segments are counted as on the wire, whether large packets bore their number
// of segments or not.
func TestReceivedSegments(t *testing.T) {
	const largest, header = 1398, 66
	for what, c := range map[string]struct{ segments, data, payload, wantSegments, wantData uint64 }{
		"each counted":           {150, 100, 100 * largest, 150, 100},
		"some smaller":           {150, 100, 90 * largest, 150, 100},
		"large packets as one":   {60, 10, 100 * largest, 150, 100},
		"the last one not full":  {60, 10, 99*largest + 1, 150, 100},
		"acknowledgements alone": {50, 0, 0, 50, 0},
	} {
		got := received(c.segments, c.data, c.payload, largest, header)
		if got.Segments != c.wantSegments || got.DataSegments != c.wantData || got.Payload != c.payload || got.Headers != c.wantSegments*header {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if got := received(5, 3, 1000, 0, header); got.Segments != 5 || got.DataSegments != 3 {
		t.Errorf("without a segment size: %+v", got)
	}
}
