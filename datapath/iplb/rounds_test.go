package iplb

import (
	"os"
	"strconv"
	"testing"
)

// rounds of random tests: $SUBLET_FUZZ, or a million, which take some seconds.
func rounds(t testing.TB) int {
	text := os.Getenv("SUBLET_FUZZ")
	if text == "" {
		return 1_000_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("SUBLET_FUZZ: %v", err)
	}
	return n
}
