package iplbd

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

// A path without relays, and a flow that goes from one or to one, are lists to
// who reads JSON; that all flows leave a path names none.
func TestPathsWithoutRelaysAreLists(t *testing.T) {
	var d Daemon
	d.note(Move{Prefix: netip.MustParsePrefix("10.0.0.0/8"), To: listed(nil), Why: "balance"})
	d.note(Move{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Why: "dead"})
	for _, c := range []struct {
		value any
		want  string
		not   string
	}{
		{PathStatus{Relays: listed(nil)}, `"relays":[]`, "null"},
		{d.moves[0], `"from":[],"to":[]`, "null"},
		{d.moves[1], `"from":[],"why"`, `"to"`},
	} {
		text, err := json.Marshal(c.value)
		if err != nil || !strings.Contains(string(text), c.want) || strings.Contains(string(text), c.not) {
			t.Errorf("%s, %v: want %s", text, err, c.want)
		}
	}
}
