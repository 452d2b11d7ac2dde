package controller

import (
	"testing"
	"time"
)

// Whatever addresses come, memory is bounded; one that is in use is not forgotten
// by that.
func TestLearningIsBounded(t *testing.T) {
	l := NewLearning().(*Learning)
	now := time.Unix(1, 0)
	const used = 0xaa
	for i := uint64(0); i < 1_000_000; i++ {
		if i%1000 == 0 {
			l.learn(used, 3, now)
		}
		l.learn(1<<32|i, 1, now)
		if n := len(l.young) + len(l.old); n > 2*generation {
			t.Fatalf("%d addresses are known after %d", n, i)
		}
		if _, young := l.young[used]; !young {
			if _, old := l.old[used]; !old {
				t.Fatalf("an address in use was forgotten after %d others", i)
			}
		}
	}
}

// An address that is not used is forgotten, one that moved is known at its new
// place.
func TestLearningForgetsAndFollows(t *testing.T) {
	l := NewLearning().(*Learning)
	now := time.Unix(1, 0)
	l.learn(5, 1, now)
	l.learn(5, 2, now)
	if l.young[5] != 2 {
		t.Errorf("it is at port %d", l.young[5])
	}
	for range 3 {
		now = now.Add(generationAge + time.Second)
		l.learn(6, 1, now)
		l.learn(7, 1, now)
	}
	if _, young := l.young[5]; young || l.old[5] != 0 {
		t.Error("an address that was silent for long is still known")
	}
	for a, want := range map[uint64]bool{0x0180c2000000: true, 0x0180c200000e: true, 0x0180c2000010: false, 0xffffffffffff: false} {
		if linkLocal(a) != want {
			t.Errorf("%012x: link-local %v", a, !want)
		}
	}
}
