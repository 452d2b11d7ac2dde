package api

import "testing"

func TestCapturesOfALeaseAreBounded(t *testing.T) {
	var c counted
	for range mostCaptures {
		if !c.take("a", mostCaptures) {
			t.Fatal("refused before there were too many")
		}
	}
	if c.take("a", mostCaptures) || !c.take("b", mostCaptures) {
		t.Error("one too many, or another's refused")
	}
	c.give("a")
	if !c.take("a", mostCaptures) {
		t.Error("refused after one ended")
	}
}
