package file

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// document is one parsed YAML text; nodes keep their line and column.
type document struct {
	file      string
	source    []byte
	root      *yaml.Node
	problems  []*vnet.InputError // found so far
	chains    []string           // where each chain of a request is written
	functions []string           // where each function of a request is written
}

// maxSeparators bounds the bytes that can begin a new YAML node. The parser
// needs about 200 bytes of memory for each; the largest legal request has
// about half a million.
const maxSeparators = 1 << 20

// limits of a text: bytes, and bytes that can begin a new node.
type limits struct{ size, separators int }

// A substrate is the operator's, and one of vnet.MaxWires links is large.
var requestLimits, substrateLimits = limits{MaxSize, maxSeparators}, limits{MaxSubstrateSize, 4 * maxSeparators}

// open parses the only document of text. Aliases are not resolved here (the
// decoder refuses them), so a bomb of them costs nothing; nesting is bounded
// by the parser.
func open(file string, text []byte, most limits) (*document, error) {
	d := &document{file: file, source: text, root: &yaml.Node{Line: 1, Column: 1}}
	if len(text) > most.size {
		return nil, d.fail(d.root, "file has %d bytes, more than %d: split it", len(text), most.size)
	}
	if countSeparators(text) > most.separators {
		return nil, d.fail(d.root, "file has more than %d values: split it", most.separators)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var node, second yaml.Node
	if err := decoder.Decode(&node); err != nil {
		return nil, d.syntax(err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, d.syntax(err)
		}
		return nil, d.fail(&second, "a second document begins here: put one document in a file")
	}
	if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		d.root = node.Content[0]
	}
	return d, nil
}

func countSeparators(text []byte) int {
	n := 0
	for _, c := range text {
		if strings.IndexByte(",:-?[{\n", c) >= 0 {
			n++
		}
	}
	return n
}

// fail returns the error at a node.
func (d *document) fail(at *yaml.Node, format string, args ...any) error {
	return &vnet.InputError{File: d.file, Line: max(at.Line, 1), Column: max(at.Column, 1), Problem: fmt.Sprintf(format, args...)}
}

// note keeps an error of this document's, so that the rest is looked at too.
func (d *document) note(err error) {
	var input *vnet.InputError
	if errors.As(err, &input) && !d.full() {
		d.problems = append(d.problems, input)
	}
}

// full says that no more problems need be looked for.
func (d *document) full() bool { return len(d.problems) >= vnet.MostProblems }

// problem is what was noted, in the order of the text, or nil.
func (d *document) problem() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b *vnet.InputError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	first := d.problems[0]
	first.More = d.problems[1:]
	return first
}

// locate finds the node of a path, or of its nearest parent that is written.
func (d *document) locate(path string) *yaml.Node {
	at := d.root
	for _, step := range splitPath(path) {
		next := child(at, step)
		if next == nil && (step == "min" || step == "max") {
			next = child(at, "rate") // states both
		}
		if next == nil {
			break
		}
		at = next
	}
	return at
}

// child returns the value of a mapping's key or a sequence's index, or nil.
func child(n *yaml.Node, step string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

// splitPath takes a.b[2]["odd key"] apart.
func splitPath(path string) []string {
	var steps []string
	for path != "" {
		quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(path, "["))
		if err == nil {
			step, _ := strconv.Unquote(quoted)
			steps = append(steps, step)
			path = strings.TrimPrefix(path, "["+quoted+"]")
			continue
		}
		path = strings.TrimLeft(path, ".[]")
		end := strings.IndexAny(path, ".[]")
		if end < 0 {
			end = len(path)
		}
		if end > 0 {
			steps = append(steps, path[:end])
		}
		path = path[end:]
	}
	return steps
}

// Tree parses the only document of text for readers of other languages, within
// the bounds of a request; nodes keep their line and column. Anchors, aliases
// and repeated words are refused, as in requests.
func Tree(name string, text []byte) (*yaml.Node, error) {
	doc, err := open(name, text, requestLimits)
	if err != nil {
		return nil, err
	}
	return doc.root, doc.plain(doc.root)
}

// plain refuses anchors, aliases and repeated words at a node and below it.
func (d *document) plain(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return d.fail(n, "an anchor or alias stands here, which is not accepted: write the value out")
	}
	words := make(map[string]bool)
	for i, below := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if words[below.Value] {
				return d.fail(below, "%.40s stands here again: state it once", below.Value)
			}
			words[below.Value] = true
		}
		if err := d.plain(below); err != nil {
			return err
		}
	}
	return nil
}
