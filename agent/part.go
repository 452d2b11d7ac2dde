package agent

import (
	"context"

	"sublet/plan"
	"sublet/report"
)

// Part reads and changes some kinds of thing on a host.
type Part interface {
	// Kinds are the sections of a plan this part does.
	Kinds() []plan.Kind
	// Observe fills in what the host has. Objects that carry our mark but are
	// broken are listed too, in a form that differs from any plan. What it
	// cannot look at it notes in the host as unseen, by lease where it can; an
	// error stands for all that the part does. Neither is taken for something
	// that is not there, and reading takes nothing away on its account.
	Observe(context.Context, *plan.Host) error
	// Do makes one change; it is safe to repeat, after a crash at any point too.
	Do(context.Context, plan.Step) error
}

// Reporter is a Part that says what its things are and have counted. That is
// read anew each time, and changes nothing. Labels of samples may be shared between
// readings: nobody changes them later.
type Reporter interface {
	Samples(context.Context, report.Scope) ([]report.Sample, error)
}

// Counter is a Part that says in the short form what links have counted.
type Counter interface {
	Counts(context.Context) (report.Counts, error)
}

// Mender is a Part that looks after its things by itself, beside passes of the agent.
type Mender interface {
	// Mended are what it made as planned again since it was asked last. Steps of the
	// agent for such a part are no repairs.
	Mended() []plan.Step
}

// Expecter is a Part of which steps may have to be done again later, as what they wait for
// comes.
type Expecter interface {
	// Expected says of a step that was done that it is no repair.
	Expected(plan.Step) bool
}

// Proposer is a Part with a loop of its own that wants something of the host,
// in sections that the loop owns. It may do so itself before an audit does.
type Proposer interface {
	Local(context.Context) []plan.Local
}
