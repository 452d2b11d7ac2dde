package vnet

import "testing"

// What came or went as a whole is said to be new or gone, in all that tells of changes.
func TestChangesInWords(t *testing.T) {
	for want, c := range map[string]Change{
		"link ab is new (5Mbit)":              {"link ab", None, There + " (5Mbit)"},
		"link ab is gone":                     {"link ab", There, None},
		"rate of ab 5Mbit instead of none":    {"rate of ab", None, "5Mbit"},
		"rate of ab 5Mbit instead of 100Mbit": {"rate of ab", "100Mbit", "5Mbit"},
	} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
