package server

import (
	"context"
	"testing"
)

// TestReadsShareACall: of many who ask while a call is under way there is one more
// call, which begins after all of them came.
func TestReadsShareACall(t *testing.T) {
	began, answers := make(chan int64), make(chan struct{})
	calls := int64(0)
	n := &newest{ask: func(context.Context) (int64, error) {
		calls++
		began <- calls
		<-answers
		return calls, nil
	}}
	first := n.join()
	<-began
	var later []*pending
	for range 100 {
		later = append(later, n.join())
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.version(gone); err == nil {
		t.Error("who went away is waited for")
	}
	answers <- struct{}{}
	<-first.done
	<-began
	answers <- struct{}{}
	for _, call := range later {
		if <-call.done; call.version != 2 {
			t.Fatalf("who came during the first call is answered by call %d", call.version)
		}
	}
	if first.version != 1 {
		t.Errorf("the first is answered by call %d", first.version)
	}
}
