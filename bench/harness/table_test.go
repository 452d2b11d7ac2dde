package harness

import (
	"strings"
	"testing"
)

func TestSamples(t *testing.T) {
	for _, c := range []struct {
		samples Samples
		want    string
	}{
		{nil, "-"},
		{Samples{2}, "2.0"},
		{Samples{3, 1, 2}, "2.0 (1.0 to 3.0)"},
		{Samples{4, 1, 2, 3}, "2.5 (1.0 to 4.0)"},
	} {
		if got := c.samples.Format("%.1f"); got != c.want {
			t.Errorf("%v: %q, want %q", c.samples, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	table := Table{Head: []string{"name", "x"}}
	table.Add("long name", 1.0/3)
	table.Print(&b)
	const want = "| name      | x      |\n|-----------|--------|\n| long name | 0.3333 |\n\n"
	if b.String() != want {
		t.Errorf("got\n%s want\n%s", b.String(), want)
	}
}
