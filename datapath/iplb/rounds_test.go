package iplb

import (
	"os"
	"strconv"
	"testing"
)

// rounds of random tests: $SUBLET_FUZZ, or what takes a second.
func rounds(t testing.TB) int {
	text := os.Getenv("SUBLET_FUZZ")
	if text == "" {
		return 50000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("SUBLET_FUZZ: %v", err)
	}
	return n
}
