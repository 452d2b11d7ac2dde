package lease

import (
	"strings"
	"testing"
)

// Changes have units, and no text of a file is written out in a message.
func TestChangeWords(t *testing.T) {
	if got := fieldWord("latency_ns", 5e6); got != "5ms" {
		t.Errorf("a latency of 5 ms is told as %s", got)
	}
	long := strings.Repeat("router ospf\n", 100)
	if _, how := difference(map[string]any{"frr": long}, map[string]any{"frr": long + "!"}); len(how) > 200 || !strings.Contains(how, "bytes of digest") {
		t.Errorf("a long text is told as %q", how)
	}
}
