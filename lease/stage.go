package lease

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sublet/vnet"
)

// Stages on command: until the next stage at the clock any of them may be the
// one that runs, so the most that any of them takes is booked (embed.Bookings).
// One that begins gets the instant at which it did; what only the stages before
// it took is free from then on.

// BeginStage lets a stage of a running lease begin, with those before it that wait for
// a command. One that runs already stays as it is. Errors: ErrUnknown,
// *vnet.FieldError for a stage that there is not, ErrConflict for one that cannot
// begin now.
func (b *Book) BeginStage(now time.Time, id vnet.LeaseID, stage string) error {
	if err := b.Tick(now); err != nil {
		return err
	}
	e, ok := b.entries[id]
	if !ok {
		return fmt.Errorf("begin a stage of %s: %w", id, ErrUnknown)
	}
	i := slices.IndexFunc(e.Request.Stages, func(s vnet.Stage) bool { return s.Name == stage })
	if i < 0 {
		return &vnet.FieldError{Path: "stage", Problem: fmt.Sprintf("%s has no stage %q: %s", id, stage, e.stageNames())}
	}
	if i == e.Stage && e.onHosts() {
		return nil
	}
	err := e.mayBegin(i)
	if err == nil {
		err = b.begin(now, e, i)
	}
	if err != nil {
		return fmt.Errorf("begin stage %s of %s: %w", stage, id, err)
	}
	return b.Tick(now)
}

// stageNames says which stages there are.
func (e *entry) stageNames() string {
	var names []string
	for _, s := range e.Request.Stages {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return "its request states none"
	}
	return "choose from " + strings.Join(names, ", ")
}

// mayBegin says why a stage cannot begin by command now.
func (e *entry) mayBegin(stage int) error {
	conflict := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrConflict}, args...)...)
	}
	begins := func(stage int) string { return stamp(e.Window.Start.Add(e.Request.Stages[stage].After)) }
	switch next := e.Request.NextTimed(e.Stage); {
	case e.State == vnet.Booked || e.State == vnet.Ended:
		return conflict("the network is %s: only stages of one that runs begin on command", e.State)
	case e.Lost != nil:
		return conflict("it is lost (%s)", brief(e.Lost.Reasons))
	case e.moving():
		return conflict("its links are being moved: try again in a moment")
	case stage < e.Stage:
		return conflict("it is over: stage %s runs", e.Request.Stages[e.Stage].Name)
	case !e.Request.Stages[stage].OnCommand:
		return conflict("it begins at the clock, at %s", begins(stage))
	case next < stage:
		return conflict("stage %s comes before it, and begins at the clock, at %s", e.Request.Stages[next].Name, begins(next))
	}
	return nil
}

// begin notes that a stage begins now, and books what may be taken from now on:
// at no time more than before.
func (b *Book) begin(now time.Time, e *entry, stage int) error {
	request := rewrite(e.Request)
	at := max(now.Sub(e.Window.Start), request.LastBegun(stage)+1)
	request.Stages[stage].After = at
	bookings, err := b.bookings(e.Paused.Of(request), e.Window, e.Mapping)
	if err != nil {
		return err
	}
	if err := b.calendar.Release(e.bookings...); err != nil {
		return err
	}
	e.Lease = e.Metered(now)
	e.Account = e.Account.Revised(e.Held(), e.Paused.Of(request), at)
	e.Request, e.bookings, e.uses = request, bookings, nil
	e.countUses()
	b.touch(e)
	return b.calendar.Book(bookings...)
}

// unbegun refuses a request that says of a stage on command when it began.
func (e *entry) unbegun(asked vnet.Request) error {
	for i, s := range asked.Stages {
		begun := i < len(e.Request.Stages) && e.Request.Stages[i].Name == s.Name && e.Request.Stages[i].OnCommand && e.Request.Stages[i].After == s.After
		if s.OnCommand && s.After != 0 && !begun {
			return &vnet.FieldError{Path: fmt.Sprintf("stages[%d].after", i), Problem: "is stated of a stage that begins on command: leave out one of the two"}
		}
	}
	return nil
}
