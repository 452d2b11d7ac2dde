package of13

import (
	"bytes"
	"testing"
)

// A body that was written before is on the wire what it would be if it were written
// then, also where an answer has several parts.
func TestBodiesThatWereWrittenBefore(t *testing.T) {
	one := FlowStats{1, Lifetime{3, 4}, 2, 3, 4, 5, 6, 7, 8, sampleMatch(), sampleInstructions(), nil}
	plain, ready := &MultipartReply{Kind: MultipartFlow}, &MultipartReply{Kind: MultipartFlow}
	for range 1000 {
		one.Cookie++
		plain.Flows = append(plain.Flows, one)
		with := one
		with.Body = FlowBody(one.Match, one.Instructions)
		ready.Flows = append(ready.Flows, with)
	}
	a, err := Append(nil, 9, plain)
	b, err2 := Append(nil, 9, ready)
	if err != nil || err2 != nil || len(a) < 2*MaxLen || !bytes.Equal(a, b) {
		t.Errorf("%d bytes, %d bytes, errors %v, %v", len(a), len(b), err, err2)
	}
}
