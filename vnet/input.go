package vnet

import "fmt"

// FieldError is a request or substrate that says something it must not.
type FieldError struct {
	// Path of the field in the words of the native form, such as
	// links[2].ends[1] or stages[0].links.back.max.
	Path    string `json:"path"`
	Problem string `json:"problem"` // what is wrong and what to do instead
}

func (e *FieldError) Error() string {
	if e.Path == "" {
		return e.Problem
	}
	return e.Path + ": " + e.Problem
}

// InputError is a problem at one place of a text. Line and Column count from 1.
type InputError struct {
	File    string
	Line    int
	Column  int
	Problem string // what is wrong and what to do instead
	// More are further problems of the same text, in its order, without More of
	// their own.
	More []*InputError
}

// MostProblems bounds how many problems of one text are told.
const MostProblems = 10

// Error gives a line for each problem.
func (e *InputError) Error() string {
	text := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
	for _, more := range e.More {
		text += "\n" + more.Error()
	}
	return text
}
