package embed

import (
	"flag"
	"os"
	"testing"
)

// TestMain raises the number of random instances from rapid's 100: most of
// them are easy, and all of these take a second or two.
func TestMain(m *testing.M) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("2000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
