package calendar

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"sublet/vnet"

	"pgregory.net/rapid"
)

var epoch = time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)

// hours is the window from one hour after epoch to another; to < 0 is open.
func hours(from, to int) vnet.Window {
	w := vnet.Window{Start: epoch.Add(time.Duration(from) * time.Hour)}
	if to >= 0 {
		w.End = epoch.Add(time.Duration(to) * time.Hour)
	}
	return w
}

// TestAbutting: windows are half-open, so a link booked until an instant is
// free from it on.
func TestAbutting(t *testing.T) {
	c := New()
	book(t, c, Booking{"a", 7, hours(0, 2)}, Booking{"a", 5, hours(2, 4)}, Booking{"a", 1, hours(3, -1)})
	for _, q := range []struct {
		window vnet.Window
		want   int64
	}{
		{hours(0, 2), 7}, {hours(2, 3), 5}, {hours(2, 4), 6}, {hours(1, 3), 7},
		{hours(4, -1), 1}, {hours(100, -1), 1}, {hours(-5, 0), 0}, {hours(-5, -1), 7},
	} {
		if got := c.Peak("a", q.window); got != q.want {
			t.Errorf("Peak in %v = %d, want %d", q.window, got, q.want)
		}
		if got := c.Residual("a", 10, q.window); got != 10-q.want {
			t.Errorf("Residual in %v = %d, want %d", q.window, got, 10-q.want)
		}
	}
	if got := c.Peak("b", hours(0, -1)); got != 0 {
		t.Errorf("Peak of an unknown key = %d", got)
	}
}

// TestRefused: a booking or release that cannot be is refused whole.
func TestRefused(t *testing.T) {
	c := New()
	good := Booking{"a", 2, hours(0, 2)}
	book(t, c, good)
	before := c.Clone()
	for _, bad := range []Booking{{"a", 0, hours(0, 1)}, {"a", -1, hours(0, 1)}, {"a", 1, hours(1, 1)}, {"a", 1, hours(2, 1)}} {
		if err := c.Book(good, bad); err == nil {
			t.Errorf("booked %v", bad)
		}
		if err := c.Release(good, bad); err == nil {
			t.Errorf("released %v", bad)
		}
	}
	for _, bad := range []Booking{{"a", 3, hours(0, 1)}, {"a", 1, hours(1, 3)}, {"a", 1, hours(0, -1)}, {"b", 1, hours(0, 1)}} {
		if err := c.Release(bad); err == nil {
			t.Errorf("released %v", bad)
		}
	}
	if err := c.Release(good, good); err == nil {
		t.Error("released the same twice")
	}
	if !reflect.DeepEqual(c, before) {
		t.Errorf("a refusal changed %v to %v", before, c)
	}
}

// TestEarliest: the first start at which a window fits is one at which
// something drops.
func TestEarliest(t *testing.T) {
	c := New()
	book(t, c, Booking{"a", 8, hours(0, 3)}, Booking{"a", 3, hours(2, 5)}, Booking{"a", 9, hours(7, 8)})
	fits := func(amount int64) func(vnet.Window) bool {
		return func(w vnet.Window) bool { return c.Residual("a", 10, w) >= amount }
	}
	for _, q := range []struct {
		amount   int64
		duration int
		want     vnet.Window
		ok       bool
	}{
		{2, 1, hours(0, 1), true}, {2, 3, hours(3, 6), true}, {7, 2, hours(3, 5), true},
		{8, 2, hours(5, 7), true}, {8, 3, hours(8, 11), true}, {8, 0, hours(8, -1), true}, {11, 1, vnet.Window{}, false},
	} {
		got, ok := c.Earliest(epoch, time.Duration(q.duration)*time.Hour, 10, fits(q.amount))
		if ok != q.ok || got != q.want {
			t.Errorf("%d for %d h: %v, %v, want %v", q.amount, q.duration, got, ok, q.want)
		}
	}
	if _, ok := c.Earliest(epoch, time.Hour, 2, fits(8)); ok {
		t.Error("Earliest asked more often than it may")
	}
}

// TestOver finds the stretch in which too much is booked.
func TestOver(t *testing.T) {
	c := New()
	book(t, c, Booking{"a", 5, hours(1, 4)}, Booking{"a", 5, hours(2, 6)}, Booking{"a", 1, hours(6, -1)})
	for _, q := range []struct {
		limit  int64
		window vnet.Window
		want   vnet.Window
		ok     bool
	}{
		{4, hours(0, 3), hours(1, 6), true}, {4, hours(3, 5), hours(3, 6), true}, {5, hours(0, -1), hours(2, 4), true},
		{5, hours(4, -1), vnet.Window{}, false}, {0, hours(5, 9), hours(5, -1), true}, {0, hours(0, 1), vnet.Window{}, false},
	} {
		if got, ok := c.Over("a", q.limit, q.window); ok != q.ok || got != q.want {
			t.Errorf("over %d in %v: %v, %v, want %v", q.limit, q.window, got, ok, q.want)
		}
	}
}

// TestSteps: a step at the start, and one at every change inside.
func TestSteps(t *testing.T) {
	c := New()
	book(t, c, Booking{"a", 5, hours(1, 4)}, Booking{"a", 5, hours(2, 4)}, Booking{"a", 1, hours(6, -1)})
	got := fmt.Sprint(c.Steps("a", hours(1, 6)), c.Steps("b", hours(0, 1)))
	want := fmt.Sprint([]Step{{hours(1, 2).Start, 5, 1}, {hours(2, 3).Start, 10, 2}, {hours(4, 5).Start, 0, 0}}, []Step{{epoch, 0, 0}})
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// reference is the calendar by definition: the list of bookings.
type reference []Booking

// at is what is booked of a key at an instant, and by how many.
func (b reference) at(key string, t time.Time) (sum int64, holders int) {
	for _, x := range b {
		if x.Key == key && x.Window.Contains(t) {
			sum += x.Amount
			holders++
		}
	}
	return sum, holders
}

// peak looks at the window's start and at every booking's ends inside, in
// order: also where one ends and others begin.
func (b reference) peak(key string, w vnet.Window) (most int64, holders int) {
	most, holders = b.at(key, w.Start)
	var moments []time.Time
	for _, x := range b {
		moments = append(moments, x.Window.Start, x.Window.End)
	}
	slices.SortFunc(moments, time.Time.Compare)
	for _, t := range moments {
		if sum, n := b.at(key, t); w.Contains(t) && sum > most {
			most, holders = sum, n
		}
	}
	return most, holders
}

// TestAgainstReference: after any sequence of bookings, releases and clones the
// calendar answers as the list of bookings does; a clone is not touched by
// what is done to the other; and the same bookings in any order make the same
// calendar.
func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, list := New(), reference{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			trial := c.Clone() // changed below, and must not show in c
			if len(list) > 0 && rapid.IntRange(0, 2).Draw(t, "release") == 0 {
				i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
				if err := c.Release(list[i]); err != nil {
					t.Fatal(err)
				}
				list = append(list[:i:i], list[i+1:]...)
			} else {
				b := Booking{drawKey(t), int64(rapid.IntRange(1, 5).Draw(t, "amount")), drawWindow(t)}
				book(t, c, b)
				list = append(list, b)
			}
			book(t, trial, Booking{drawKey(t), 100, drawWindow(t)})
			key, w := drawKey(t), drawWindow(t)
			peak, holders := list.peak(key, w)
			if got := c.Peak(key, w); got != peak {
				t.Fatalf("Peak of %s in %v = %d, want %d", key, w, got, peak)
			}
			if got := c.Holders(key, w); got != holders {
				t.Fatalf("Holders of %s in %v = %d, want %d", key, w, got, holders)
			}
		}
		again := New()
		for _, i := range rapid.Permutation(indexes(len(list))).Draw(t, "order") {
			book(t, again, list[i])
		}
		if !reflect.DeepEqual(c, again) {
			t.Fatalf("%v is not %v", c, again)
		}
		if err := c.Release(list...); err != nil || !c.Empty() {
			t.Fatalf("all released: %v, left %v", err, c)
		}
	})
}

func drawKey(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key") }

func drawWindow(t *rapid.T) vnet.Window {
	from := rapid.IntRange(0, 9).Draw(t, "from")
	if rapid.IntRange(0, 4).Draw(t, "open") == 0 {
		return hours(from, -1)
	}
	return hours(from, from+rapid.IntRange(1, 5).Draw(t, "for"))
}

func book(t interface {
	Helper()
	Fatal(...any)
}, c *Calendar, list ...Booking) {
	t.Helper()
	if err := c.Book(list...); err != nil {
		t.Fatal(err)
	}
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// TestFarTimes: windows beyond what nanoseconds can count are clamped, not wrapped.
func TestFarTimes(t *testing.T) {
	c := New()
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	far := Booking{"a", 1, vnet.Window{Start: year(1), End: year(9000)}}
	book(t, c, far)
	if got := c.Peak("a", vnet.Window{Start: year(2027), End: year(2028)}); got != 1 {
		t.Errorf("Peak in 2027 = %d, want 1", got)
	}
	if err := c.Release(far); err != nil || !c.Empty() {
		t.Errorf("Release: %v, left %v", err, c)
	}
}

// BenchmarkBook adds one booking to ten thousand of the same key, all at
// different times, and looks.
func BenchmarkBook(b *testing.B) {
	c := New()
	for i := range 10000 {
		book(b, c, Booking{"a", int64(1 + i*i%11), hours(i, i+1+i%7)})
	}
	for b.Loop() {
		trial := c.Clone()
		book(b, trial, Booking{"a", 1, hours(5000, 5003)})
		if got := trial.Peak("a", hours(5000, 5003)); got < 2 {
			b.Fatal(fmt.Sprint(got))
		}
	}
}
