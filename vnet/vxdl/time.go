package vxdl

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/vnet"
)

// window reads startDate and totalTime of the infrastructure.
func (r *reader) window(e *element, f fields) error {
	if start := f.one("startDate"); start != nil {
		at, err := r.instant(start)
		if err != nil {
			return err
		}
		r.request.Start, r.places["window.start"] = at, start
	}
	total := f.one("totalTime")
	if total == nil {
		r.note(e, "no totalTime: the lease is open-ended, until released")
		return nil
	}
	length, err := parseDuration(total.value())
	if err != nil {
		return r.fail(total, "%v", err)
	}
	if length == 0 {
		return r.fail(total, "is zero: state a time such as PT4H")
	}
	r.request.For, r.places["window.for"] = length, total
	return nil
}

// instant reads an xs:dateTime; without a zone it is taken as UTC.
func (r *reader) instant(e *element) (time.Time, error) {
	text := e.value()
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t.UTC(), nil
	}
	t, err := time.Parse("2006-01-02T15:04:05.999999999", text)
	if err != nil {
		return t, r.fail(e, "%q is not a time such as 2027-03-01T08:00:00Z", short(text))
	}
	r.note(e, "no time zone, read as UTC")
	return t, nil
}

// ownWindow reports a window of one resource: a lease has one for all.
func (r *reader) ownWindow(f fields) error {
	if start := f.one("startDate"); start != nil {
		at, err := r.instant(start)
		if err != nil {
			return err
		}
		if !at.Equal(r.request.Start) {
			r.lose(start, "a resource's own time is not kept: the infrastructure's holds for all")
		}
	}
	if total := f.one("totalTime"); total != nil {
		length, err := parseDuration(total.value())
		if err != nil {
			return r.fail(total, "%v", err)
		}
		if length != r.request.For {
			r.lose(total, "a resource's own time is not kept: the infrastructure's holds for all")
		}
	}
	return nil
}

var isoDuration = regexp.MustCompile(`^P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$`)

// parseDuration reads an xs:duration of days and less; months and years have
// no fixed length.
func parseDuration(s string) (time.Duration, error) {
	m := isoDuration.FindStringSubmatch(s)
	if m == nil || s == "P" || strings.HasSuffix(s, "T") {
		return 0, fmt.Errorf("%q is not a duration in days and less such as PT4H or P10D", short(s))
	}
	var total time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(m[i+1])
		if err != nil || time.Duration(n) > vnet.MaxDuration/unit {
			return 0, fmt.Errorf("%q is longer than ten years", s)
		}
		total += time.Duration(n) * unit
	}
	if m[4] != "" {
		seconds, err := time.ParseDuration(m[4] + "s")
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration such as PT4H", s)
		}
		total += seconds
	}
	if total > vnet.MaxDuration {
		return 0, fmt.Errorf("%q is longer than ten years", s)
	}
	return total, nil
}

// formatDuration is the normal form of an xs:duration.
func formatDuration(d time.Duration) string {
	days := d / (24 * time.Hour)
	d -= days * 24 * time.Hour
	text := "P"
	if days > 0 {
		text += fmt.Sprintf("%dD", days)
	}
	if d > 0 {
		text += "T"
	}
	if h := d / time.Hour; h > 0 {
		text += fmt.Sprintf("%dH", h)
	}
	if m := d % time.Hour / time.Minute; m > 0 {
		text += fmt.Sprintf("%dM", m)
	}
	if s := d % time.Minute; s > 0 {
		text += formatSeconds(s) + "S"
	}
	return text
}

// formatSeconds prints exact decimal seconds.
func formatSeconds(d time.Duration) string {
	text := fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// timeline makes a stage of every event, in order of time.
func (r *reader) timeline(_ *element, f fields) error {
	r.events = make(map[string]int)
	timeline := f.one("timeline")
	if timeline == nil {
		return nil
	}
	inner, err := r.fields(timeline, "timeline")
	if err != nil {
		return err
	}
	events, err := r.timelineEvents(inner["event"])
	if err != nil {
		return err
	}
	names := make(map[string]bool)
	for i, event := range events {
		name := r.valid(event.element, "id", event.id)
		if names[name] {
			return r.fail(event.element, "its id gives the name %q a second time: choose another", name)
		}
		names[name] = true
		r.places[fmt.Sprintf("stages[%d]", i)] = event.element
		r.events[event.id] = i
		r.request.Stages = append(r.request.Stages, vnet.Stage{Name: name, After: event.after})
	}
	return nil
}

// event of the timeline.
type event struct {
	element *element
	id      string
	after   time.Duration
}

// timelineEvents reads events and puts them in order; no two may coincide.
func (r *reader) timelineEvents(elements []*element) ([]event, error) {
	var events []event
	for _, e := range elements {
		f, err := r.fields(e, "event")
		if err != nil {
			return nil, err
		}
		id := f.value("id")
		delay := f.one("delay")
		if id == "" || delay == nil {
			return nil, r.fail(e, "needs an id and a delay in seconds")
		}
		after, err := parseSeconds(delay.value())
		if err != nil {
			return nil, r.fail(delay, "%v", err)
		}
		events = append(events, event{element: e, id: id, after: after})
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(min(max(a.after-b.after, -1), 1)) })
	for i := 1; i < len(events); i++ {
		if a, b := events[i-1], events[i]; a.after == b.after {
			return nil, r.fail(b.element, "has the delay of the event on line %d: merge them", a.element.line)
		}
	}
	return events, nil
}

// parseSeconds reads an xs:double of seconds, exactly when it is plain decimal.
func parseSeconds(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s + "s"); err == nil && d >= 0 && d <= vnet.MaxDuration {
		return d, nil
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || !(seconds >= 0 && seconds <= vnet.MaxDuration.Seconds()) {
		return 0, fmt.Errorf("%q is not a number of seconds such as 3600, at most ten years", short(s))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
