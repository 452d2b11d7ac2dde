package vnet

import "fmt"

// Note is one thing that a conversion between languages lost or changed.
type Note struct {
	Line   int // of the element, when reading; 0: none
	Column int
	Where  string // such as "vNode worker"
	Text   string // what was lost or changed
	Raw    string // text of an element that was not understood
	Lost   bool   // it is not in what came of the conversion
}

func (n Note) String() string {
	text := n.Where + ": " + n.Text
	if n.Line == 0 {
		return text
	}
	return fmt.Sprintf("%d:%d: %s", n.Line, n.Column, text)
}
