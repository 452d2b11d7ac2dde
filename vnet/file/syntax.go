package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// parserSays begins the errors of which go-yaml gives the line counted from 0
// (its fail() adds one to those of its scanner only).
var parserSays = regexp.MustCompile(`^did not find expected (key|node content|'-'|',' or|<)`)

// syntax turns an error of the YAML parser, which knows only the line.
func (d *document) syntax(err error) error {
	if errors.Is(err, io.EOF) {
		return d.fail(d.root, "file is empty: see the examples for what to write")
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	at := &yaml.Node{Line: 1, Column: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		if text = text[len(m[0]):]; parserSays.MatchString(text) {
			at.Line++
		}
	}
	lines := bytes.Split(d.source, []byte("\n"))
	if tab := tabbed(lines, at.Line); tab != nil {
		return d.fail(tab, "not YAML: a tab indents this line: indent with spaces")
	}
	if open, problem := unbalanced(lines); open != nil {
		return d.fail(open, "not YAML: %s", problem)
	}
	if parserSays.MatchString(text) && len(d.source) <= maxSearched {
		at.Line = breaksAt(lines, text)
	}
	return d.fail(at, "not YAML: %s: correct the text near here", strings.ReplaceAll(text, "\n", " "))
}

// maxSearched bounds the text of which the broken line is searched, in bytes:
// it is parsed once for each halving.
const maxSearched = 64 << 10

// breaksAt finds the line by which a text has become one of which the parser
// says so: it gives the line where the broken mapping or list begins.
func breaksAt(lines [][]byte, says string) int {
	return 1 + sort.Search(len(lines)-1, func(n int) bool {
		var node yaml.Node
		err := yaml.Unmarshal(bytes.Join(lines[:n+1], []byte("\n")), &node)
		return err != nil && strings.HasSuffix(err.Error(), says)
	})
}

// tabbed finds the first line from the one before line on, and no further than
// the one after it, that a tab indents.
func tabbed(lines [][]byte, line int) *yaml.Node {
	for i := max(line-2, 0); i < min(line+1, len(lines)); i++ {
		indent := lines[i][:len(lines[i])-len(bytes.TrimLeft(lines[i], " \t"))]
		if column := bytes.IndexByte(indent, '\t'); column >= 0 && len(indent) < len(lines[i]) {
			return &yaml.Node{Line: i + 1, Column: column + 1}
		}
	}
	return nil
}

// closes gives the opening bracket of a closing one.
var closes = map[byte]byte{']': '[', '}': '{'}

// bracket is one that is open, at a place of a text.
type bracket struct {
	char         byte
	line, column int
}

// unbalanced finds the first bracket of a broken text that is not closed, is
// closed by one of the other kind, or closes nothing. It knows comments and
// quotes; a bracket within a plain word is part of it, unless in brackets.
func unbalanced(lines [][]byte) (at *yaml.Node, problem string) {
	var open []bracket
	var quote byte
	for i, line := range lines {
		before := byte(' ') // the last character that is no space
		for j := 0; j < len(line); j++ {
			c := line[j]
			starts := bytes.IndexByte([]byte(" :-,[{"), before) >= 0
			switch {
			case quote != 0:
				if c == '\\' && quote == '"' {
					j++
				} else if c == quote {
					quote = 0
				}
			case c == '#' && (j == 0 || line[j-1] == ' ' || line[j-1] == '\t'):
				j = len(line)
			case (c == '"' || c == '\'') && starts:
				quote = c
			case (c == '[' || c == '{') && (starts || len(open) > 0):
				open = append(open, bracket{c, i + 1, j + 1})
			case (c == ']' || c == '}') && len(open) > 0:
				last := open[len(open)-1]
				if last.char != closes[c] {
					return &yaml.Node{Line: last.line, Column: last.column}, fmt.Sprintf("'%c' is closed by '%c' at %d:%d: correct one of them", last.char, c, i+1, j+1)
				}
				open = slices.Delete(open, len(open)-1, len(open))
			case (c == ']' || c == '}') && strings.ContainsRune("]}", rune(before)):
				return &yaml.Node{Line: i + 1, Column: j + 1}, fmt.Sprintf("'%c' closes nothing: leave it out", c)
			}
			if c != ' ' && c != '\t' {
				before = c
			}
		}
	}
	if len(open) == 0 {
		return nil, ""
	}
	last := open[len(open)-1]
	return &yaml.Node{Line: last.line, Column: last.column}, fmt.Sprintf("'%c' is never closed", last.char)
}
