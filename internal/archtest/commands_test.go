package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goRun   = regexp.MustCompile(`\bgo run \./([\w/-]+)([^|` + "`" + `\n;&)]*)`)
	goTest  = regexp.MustCompile(`\bgo test ([^|` + "`" + `\n;&)]*)`)
	makes   = regexp.MustCompile("[`(]make ([a-z][a-z-]*)[ `)]|(?m)^ *make ([a-z][a-z-]*)")
	scripts = regexp.MustCompile(`\b(?:bench|tools|test|datapath)/[\w/.-]+\.(?:py|go|sh|c)\b`)
	given   = regexp.MustCompile(`(?: |^)-([a-z][a-z0-9-]*)`)
)

// The commands that documents name are there: programs and their flags, tests
// and benchmarks, targets of make, scripts. Those of sublet are tested in
// cmd/sublet.
func TestCommandsOfDocumentsExist(t *testing.T) {
	h := readHouse(t)
	for _, document := range append(files(t, ".md"), "Makefile") {
		if document == "CHANGELOG.md" { // it tells of what was
			continue
		}
		text := strings.ReplaceAll(readFile(t, filepath.Join(root, document)), `\|`, "|")
		for _, m := range goRun.FindAllStringSubmatch(text, -1) {
			h.program(t, document, m[1], m[2])
		}
		for _, m := range goTest.FindAllStringSubmatch(text, -1) {
			h.tests(t, document, m[1])
		}
		for _, m := range makes.FindAllStringSubmatch(text, -1) {
			if target := m[1] + m[2]; !strings.Contains(h.makefile, "\n"+target+":") {
				t.Errorf("%s: there is no target %q in the Makefile", document, target)
			}
		}
		for _, path := range scripts.FindAllString(text, -1) {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s names %s, which is not there", document, path)
			}
		}
	}
}

// house is what commands of documents are held against.
type house struct {
	flags    map[string]map[string]bool // of a room's programs and tests
	main     map[string]bool            // rooms that are programs
	checks   map[string][]string        // Test, Benchmark and Fuzz functions of a room
	makefile string
}

func readHouse(t *testing.T) house {
	t.Helper()
	h := house{make(map[string]map[string]bool), make(map[string]bool), make(map[string][]string), readFile(t, filepath.Join(root, "Makefile"))}
	for _, s := range sources(t) {
		if h.flags[s.room] == nil {
			h.flags[s.room] = make(map[string]bool)
		}
		h.main[s.room] = h.main[s.room] || s.file.Name.Name == "main"
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				h.checks[s.room] = append(h.checks[s.room], f.Name.Name)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool { h.declared(s.room, n); return true })
	}
	return h
}

// declared notes a call of the kind flag.Int("name", ...).
func (h house) declared(room string, n ast.Node) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	x, isName := sel.X.(*ast.Ident)
	name, isText := call.Args[0].(*ast.BasicLit)
	if isName && isText && x.Name == "flag" {
		h.flags[room][strings.Trim(name.Value, `"`)] = true
	}
}

func (h house) program(t *testing.T, document, room, args string) {
	t.Helper()
	if !h.main[room] {
		t.Errorf("%s: go run ./%s: there is no such program", document, room)
		return
	}
	for _, m := range given.FindAllStringSubmatch(args, -1) {
		if !h.flags[room][m[1]] {
			t.Errorf("%s: go run ./%s has no flag -%s", document, room, m[1])
		}
	}
}

// tests looks at the arguments of go test: packages exist, and what -run and
// -bench name is in one of them.
func (h house) tests(t *testing.T, document, line string) {
	t.Helper()
	words := strings.Fields(line)
	var rooms []string
	for _, w := range words {
		room, local := strings.CutPrefix(w, "./")
		room = strings.TrimRight(room, ".,:")
		if !local || room == "ROOM" || room == "" {
			continue
		}
		if rest, all := strings.CutSuffix(w, "/..."); all {
			room = strings.TrimPrefix(rest, "./")
		}
		if _, err := os.Stat(filepath.Join(root, room)); err != nil {
			t.Errorf("%s: go test %s: there is no %s", document, line, room)
		}
		rooms = append(rooms, room)
	}
	for i, w := range words[:max(0, len(words)-1)] {
		if pattern := words[i+1]; (w == "-run" || w == "-bench") && pattern != "-" && len(rooms) > 0 && !h.matches(rooms, pattern) {
			t.Errorf("%s: go test %s: nothing is called %s there", document, line, pattern)
		}
	}
}

// matches says whether a test or benchmark of the rooms fits a pattern.
func (h house) matches(rooms []string, pattern string) bool {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return false
	}
	for _, room := range rooms {
		for _, name := range h.checks[room] {
			if wanted.MatchString(name) {
				return true
			}
		}
	}
	return false
}
