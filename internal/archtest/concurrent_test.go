package archtest

import (
	"slices"
	"testing"
)

// A package with a go statement is found, one without is not.
func TestConcurrentFindsGoroutines(t *testing.T) {
	packages, err := Concurrent(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(packages, "./agent") || slices.Contains(packages, "./vnet") || slices.Contains(packages, "./test") {
		t.Errorf("found %v", packages)
	}
}
