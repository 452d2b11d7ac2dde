package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// continued are words with which the help of a flag would go on from its name,
// instead of saying by itself what is stated.
var continued = []string{"of", "in", "on", "between", "before", "beside", "for", "likewise", "same", "until", "its", "that", "those"}

func TestFlagHelpReadsByItself(t *testing.T) {
	for name, c := range commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			words := strings.Fields(f.Usage)
			if len(words) < 2 || slices.Contains(continued, words[0]) || words[0] == "the" && slices.Contains([]string{"same", "one"}, words[1]) {
				t.Errorf("sublet %s --%s: %q: say what is stated", name, f.Name, f.Usage)
			}
		})
	}
}
