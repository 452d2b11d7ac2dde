package trust

import (
	"net/http"
	"testing"
)

// TestStatementsOfOthersAreTakenAway: also where the first one is empty.
func TestStatementsOfOthersAreTakenAway(t *testing.T) {
	for _, values := range [][]string{{"e30="}, {"", "e30="}, {""}} {
		r := &http.Request{Header: http.Header{statedHeader: values}}
		if r, stated := Stated(r); stated || len(r.Header) != 0 {
			t.Errorf("%q: stated %v, left %v", values, stated, r.Header)
		}
	}
}
