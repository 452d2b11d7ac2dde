package vxdl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"sublet/vnet"
)

// element of the document with its place in the text.
type element struct {
	name       string
	space      string
	attributes map[string]string // without xmlns and xsi
	text       string            // character data, untrimmed
	chars      []byte            // the same while it is being collected
	id         string            // text of the first child id
	children   []*element
	line       int
	column     int
	begin, end int // offsets in the text
}

// fail returns an error at the element's place.
func (e *element) fail(file, format string, args ...any) error {
	return &vnet.InputError{File: file, Line: e.line, Column: e.column, Problem: e.label() + ": " + fmt.Sprintf(format, args...)}
}

// label names the element and, if it has one, its id.
func (e *element) label() string {
	if e.name == "" {
		return "document"
	}
	id := e.id
	if id == "" {
		id = e.attributes["id"]
	}
	if id == "" {
		return e.name
	}
	return e.name + " " + short(id)
}

// value is the text without the white space around it.
func (e *element) value() string { return strings.TrimSpace(e.text) }

// raw is the element as it was written.
func (e *element) raw(text []byte) string { return string(text[e.begin:e.end]) }

// short keeps a quoted piece of the document from filling the screen.
func short(s string) string {
	const most = 60
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// tree builds elements from tokens under the limits of the package. It takes
// no DTD, so no entity but XML's own five exists.
type tree struct {
	file     string
	decoder  *xml.Decoder
	root     *element
	open     []*element
	elements int
}

func parseTree(file string, text []byte) (*element, error) {
	t := &tree{file: file, decoder: xml.NewDecoder(bytes.NewReader(text))}
	if len(text) > MaxSize {
		return nil, t.here().fail(file, "has %d bytes, more than %d: split it", len(text), MaxSize)
	}
	for {
		at := t.here()
		token, err := t.decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, t.syntax(err)
		}
		if err := t.token(at, token); err != nil {
			return nil, err
		}
	}
	if t.root == nil {
		return nil, t.here().fail(file, "is empty: write a description element")
	}
	return t.root, nil
}

// here is an unnamed element at the place the decoder has reached.
func (t *tree) here() *element {
	line, column := t.decoder.InputPos()
	// After a newline is put back the decoder counts column 0.
	return &element{line: line, column: max(column, 1), begin: int(t.decoder.InputOffset())}
}

func (t *tree) syntax(err error) error {
	text := err.Error()
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		text = syntax.Msg
	}
	return t.here().fail(t.file, "not XML: %s: correct the text near here", short(text))
}

func (t *tree) token(at *element, token xml.Token) error {
	switch token := token.(type) {
	case xml.StartElement:
		return t.start(at, token)
	case xml.EndElement:
		t.close()
	case xml.CharData:
		if len(t.open) > 0 {
			e := t.open[len(t.open)-1]
			e.chars = append(e.chars, token...)
		} else if len(bytes.Trim(token, " \t\r\n\ufeff")) > 0 {
			return at.fail(t.file, "text outside the root element: remove it")
		}
	case xml.Directive:
		return at.fail(t.file, "DOCTYPE and other declarations are not accepted: remove them")
	}
	return nil
}

func (t *tree) start(e *element, token xml.StartElement) error {
	e.name, e.space = token.Name.Local, token.Name.Space
	t.elements++
	switch {
	case len(t.open) == 0 && t.root != nil:
		return e.fail(t.file, "is a second root: keep one")
	case len(t.open) >= MaxDepth:
		return e.fail(t.file, "is nested deeper than %d: write it flatter", MaxDepth)
	case t.elements > MaxElements:
		return e.fail(t.file, "is one of more than %d elements: split the document", MaxElements)
	case len(token.Attr) > MaxAttributes:
		return e.fail(t.file, "has more than %d attributes: remove some", MaxAttributes)
	}
	for _, a := range token.Attr {
		if a.Name.Space != "" || a.Name.Local == "xmlns" {
			continue
		}
		if e.attributes == nil {
			e.attributes = make(map[string]string)
		}
		if _, twice := e.attributes[a.Name.Local]; twice {
			return e.fail(t.file, "has attribute %s twice: keep one", a.Name.Local)
		}
		e.attributes[a.Name.Local] = a.Value
	}
	if len(t.open) == 0 {
		t.root = e
	} else {
		parent := t.open[len(t.open)-1]
		parent.children = append(parent.children, e)
	}
	t.open = append(t.open, e)
	return nil
}

// close ends the innermost open element.
func (t *tree) close() {
	last := len(t.open) - 1
	e := t.open[last]
	e.end, e.text, e.chars = int(t.decoder.InputOffset()), string(e.chars), nil
	t.open = t.open[:last]
	if e.name == "id" && last > 0 && t.open[last-1].id == "" {
		t.open[last-1].id = e.value()
	}
}
