package server

import (
	"context"
	"errors"
	"testing"
	"time"
)

// What more than half of the servers agree on is the time; without that a clock that was
// set does not count.
func TestClocksThatMostAgreeOn(t *testing.T) {
	at := func(by time.Duration) apart { return apart{by: by, unsure: time.Millisecond} }
	for _, one := range []struct {
		what   string
		n      int
		others map[string]apart
		ahead  time.Duration // of what is agreed on, before this machine's clock
		wrong  bool
		follow bool // this machine's clock when it is set an hour ahead
	}{
		{"alone", 1, nil, 0, false, true},
		{"all agree", 3, map[string]apart{"b": at(900 * time.Millisecond), "c": at(-900 * time.Millisecond)}, 0, false, true},
		{"one of the others is wrong", 3, map[string]apart{"b": at(time.Hour), "c": at(0)}, 0, false, true},
		{"this one is wrong", 3, map[string]apart{"b": at(time.Hour), "c": at(time.Hour)}, time.Hour, true, false},
		{"one of two is wrong", 2, map[string]apart{"b": at(time.Hour)}, 0, false, false},
		{"the others are gone", 3, nil, 0, false, false},
		{"slow answers tell nothing", 3, map[string]apart{"b": {5 * time.Second, 4 * time.Second}, "c": {5 * time.Second, 4 * time.Second}}, 0, false, true},
	} {
		wall := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
		began := wall
		c := newClocks(func() time.Time { return wall })
		c.judge(one.n, one.others)
		if ahead := c.now().Sub(began); (ahead - one.ahead).Abs() > 10*time.Second {
			t.Errorf("%s: the time is %s ahead, want %s", one.what, ahead, one.ahead)
		}
		if (c.wrong != nil) != one.wrong {
			t.Errorf("%s: %v, want wrong: %v", one.what, c.wrong, one.wrong)
		}
		wall = wall.Add(time.Hour) // at one go
		if ahead := c.now().Sub(began) - one.ahead; ahead > 10*time.Second {
			t.Errorf("%s: a clock that was set counts before others were asked: %s", one.what, ahead)
		}
		moved := map[string]apart{} // if the others say still what they said of this clock, they were set, too
		for name, a := range one.others {
			moved[name] = a
		}
		c.judge(one.n, moved)
		if follows := c.now().Sub(began)-one.ahead > 30*time.Minute; follows != one.follow && !one.wrong {
			t.Errorf("%s: a clock that was set an hour ahead is followed: %v", one.what, follows)
		}
	}
}

// A server waits until its clock was compared, and stops when it begins to be wrong; one
// that was wrong and is left alone leads on by what was agreed before.
func TestServerStopsWhenItsClockIsWrong(t *testing.T) {
	wall := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	c := newClocks(func() time.Time { return wall })
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, end := c.right(soon); soon.Err() == nil {
		end()
		t.Fatal("a clock that nobody compared counts as right")
	}
	right := map[string]apart{"b": {}, "c": {}}
	c.judge(3, right)
	within, end := c.right(t.Context())
	defer end()
	wall = wall.Add(-time.Hour)
	c.judge(3, map[string]apart{"b": {by: time.Hour}, "c": {by: time.Hour}})
	select {
	case <-within.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	if err := context.Cause(within); !errors.Is(err, errClock) {
		t.Errorf("it stopped because of %v", err)
	}
	c.judge(3, map[string]apart{"b": {by: time.Hour}})
	if c.wrong == nil {
		t.Error("with one of the others gone it counts as right")
	}
	c.judge(3, nil)
	again, end := c.right(t.Context())
	defer end()
	if again.Err() != nil || c.now().Sub(wall) < 59*time.Minute {
		t.Errorf("left alone: %v, its time is %s ahead of its clock", again.Err(), c.now().Sub(wall))
	}
}
