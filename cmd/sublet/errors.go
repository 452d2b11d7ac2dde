package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"sublet/internal/plain"
	"sublet/lab"
	"sublet/lease/api"
	"sublet/vnet"
)

// Exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitInput    = 2 // nothing changed
	exitRefused  = 3 // by admission
	exitBroken   = 4 // a promise is not kept
	exitConflict = 5 // with what is there already, or with a change of somebody else's; nothing changed

	exitInterrupted = 128 + int(syscall.SIGINT) // as shells say it
	exitTerminated  = 128 + int(syscall.SIGTERM)
)

// badInput is what the caller typed or wrote wrongly.
type badInput struct{ error }

func (b badInput) Unwrap() error { return b.error }

// errBroken ends a check that found a promise not kept; the table said it all.
var errBroken = errors.New("")

// status ends a command with another command's exit code (exec).
type status int

func (s status) Error() string { return "" }

func exitCode(err error) int {
	var code status
	var input *vnet.InputError
	var field *vnet.FieldError
	var rejection *vnet.Rejection
	var bad badInput
	switch {
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, errBroken):
		return exitBroken
	case errors.As(err, &rejection):
		return exitRefused
	case errors.As(err, &bad), errors.As(err, &input), errors.As(err, &field), errors.Is(err, api.ErrNotFound), errors.Is(err, api.ErrForbidden):
		return exitInput
	case errors.Is(err, api.ErrConflict), errors.Is(err, lab.ErrUp):
		return exitConflict
	}
	return exitFailed
}

// message is what is said of an error: one line, but for a refusal, which
// says what binds and what would be accepted.
func message(err error) string {
	var rejection *vnet.Rejection
	if input := (*vnet.InputError)(nil); errors.As(err, &input) {
		return plain.Text(err.Error()) // a line for each problem
	}
	if !errors.As(err, &rejection) {
		return oneLine(err)
	}
	lines := []string{oneLine(err)}
	if rejection.Offer == nil {
		why := "nothing similar would be admitted"
		switch {
		case rejection.Never != "":
			why = rejection.Never
		case rejection.Undecided:
			why = undecided
		}
		return lines[0] + "\n  " + why
	}
	lines = append(lines, "  would be admitted with:")
	for i, o := range rejection.Offers {
		if i > 0 {
			lines = append(lines, "  or with:")
		}
		for _, c := range o.Changes {
			lines = append(lines, "    "+c.String())
		}
	}
	if rejection.Undecided {
		lines = append(lines, "  "+undecided)
	}
	return strings.Join(append(lines, "  take the first with --accept, or write it to a file with --offer FILE"), "\n")
}

// tellError says why the command failed: as words, or in the form that its
// output has.
func (a *app) tellError(err error, code int) {
	text := message(err)
	if text == "" {
		return
	}
	if a.format != "json" {
		fmt.Fprintf(a.err, "sublet: %s\n", harmless(text))
		return
	}
	f := failure{Type: typeOf(err, code), Detail: oneLine(err), ExitCode: code}
	if field := (*vnet.FieldError)(nil); errors.As(err, &field) {
		f.Path = field.Path
	}
	errors.As(err, &f.Rejection)
	words, err := json.Marshal(f)
	if err != nil {
		words = []byte(strconv.Quote(text))
	}
	fmt.Fprintf(a.err, "%s\n", harmlessJSON(words))
}

// failure is an error in JSON: the members of the API's problems (RFC 9457), and
// the exit code.
type failure struct {
	Type     string `json:"type"`
	Detail   string `json:"detail"`
	Path     string `json:"path,omitempty"` // which field of the input
	ExitCode int    `json:"exit_code"`

	*vnet.Rejection // of a refusal
}

// typeOf is the API's type of an error, or one of its own where no server said it.
func typeOf(err error, code int) string {
	var problem *api.Problem
	switch {
	case code >= exitInterrupted:
		return "urn:sublet:interrupted"
	case errors.As(err, &problem):
		return problem.Type
	case errors.Is(err, api.ErrNotFound), errors.As(err, new(noLease)):
		return api.TypeNotFound
	case errors.Is(err, api.ErrForbidden):
		return api.TypeForbidden
	}
	if t, ok := map[int]string{exitInput: api.TypeBadInput, exitRefused: api.TypeRefused, exitConflict: api.TypeConflict}[code]; ok {
		return t
	}
	return "urn:sublet:failed"
}

// undecided is said where an answer ran out of time.
const undecided = "not decided in the time an answer may take: there may be a place all the same, or a better offer"

// oneLine joins the lines of several errors, in words for people who know no Go.
func oneLine(err error) string {
	return plain.Text(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
}

// interruption is the exit code of a command that failed because a signal
// ended it; 0 if none did.
func interruption(ctx context.Context, err error) int {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.Cause(ctx)) {
		return 0
	}
	if strings.HasPrefix(context.Cause(ctx).Error(), syscall.SIGTERM.String()) {
		return exitTerminated
	}
	return exitInterrupted
}
