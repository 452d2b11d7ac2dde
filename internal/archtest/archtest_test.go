package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// source is one Go file of the house.
type source struct {
	path, room string
	test       bool
	file       *ast.File
	set        *token.FileSet
}

// sources are parsed once for all tests.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var parsed = sync.OnceValues(func() (list []source, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		room, err := filepath.Rel(root, filepath.Dir(path))
		list = append(list, source{path, filepath.ToSlash(room), strings.HasSuffix(path, "_test.go"), file, set})
		return err
	})
	return list, err
})

func (s source) imports() []string {
	var list []string
	for _, i := range s.file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		list = append(list, path)
	}
	return list
}

// table is Table with a row for each part.
func table(t *testing.T) map[string][]string {
	t.Helper()
	rows := maps.Clone(Table)
	delete(rows, AnyPart)
	for _, s := range sources(t) {
		if matched, _ := path.Match(AnyPart, s.room); matched && rows[s.room] == nil {
			rows[s.room] = Table[AnyPart]
		}
	}
	return rows
}

func mayImport(may []string, other string) bool {
	for _, allowed := range may {
		if prefix, all := strings.CutSuffix(allowed, "..."); allowed == other || all && strings.HasPrefix(other+"/", prefix) {
			return true
		}
	}
	return false
}

func TestImportsFollowTheTable(t *testing.T) {
	rows := table(t)
	for _, s := range sources(t) {
		may, known := rows[s.room]
		if !known {
			if strings.HasPrefix(s.room+"/", "bench/") || strings.HasPrefix(s.room, "tools/") || s.room == "test" {
				continue
			}
			t.Errorf("%s: room %s is not in the table of internal/archtest", s.path, s.room)
			continue
		}
		for _, name := range s.imports() {
			other, ours := strings.CutPrefix(name, "sublet/")
			if ours && !s.test && !mayImport(may, other) {
				t.Errorf("%s: room %s may not import %s", s.path, s.room, other)
			}
		}
	}
}

func TestPureRoomsTouchNothing(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !slices.Contains(Pure, s.room) {
			continue
		}
		for _, path := range s.imports() {
			if path == "math/rand/v2" && slices.Contains(Seeded, s.room) {
				drawsFromSeedsOnly(t, s)
			} else if slices.Contains(Banned, path) {
				t.Errorf("%s: pure room %s imports %s", s.path, s.room, path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if n != nil && StartsGoroutine(n) {
				t.Errorf("%s: pure room %s starts a goroutine", s.set.Position(n.Pos()), s.room)
			}
			if n, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Sleep", "Since", "After", "NewTimer"}, n.Sel.Name) {
					t.Errorf("%s: pure room %s reads the clock", s.set.Position(n.Pos()), s.room)
				}
			}
			return true
		})
	}
}

// drawsFromSeedsOnly looks at what a file uses of math/rand/v2.
func drawsFromSeedsOnly(t *testing.T, s source) {
	t.Helper()
	for _, i := range s.file.Imports {
		if i.Name != nil && i.Path.Value == `"math/rand/v2"` {
			t.Errorf("%s: imports math/rand/v2 by another name", s.path)
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "rand" && !slices.Contains(SeededNames, sel.Sel.Name) {
				t.Errorf("%s: pure room %s uses rand.%s, which no seed governs", s.set.Position(n.Pos()), s.room, sel.Sel.Name)
			}
		}
		return true
	})
}

func TestRoomsOfTheTableExist(t *testing.T) {
	found := make(map[string]bool)
	for _, s := range sources(t) {
		found[s.room] = true
	}
	for room := range table(t) {
		if !found[room] {
			t.Errorf("room %s of the table has no code", room)
		}
	}
}

// Each room right below datapath, parts and what they share, has a README of
// the same form.
func TestPartsHaveReadmes(t *testing.T) {
	headings := []string{"# ", "## Description", "## Plan section", "## Maps", "## Counters", "## Limits", "## Source"}
	for room := range table(t) {
		part, below := strings.CutPrefix(room, "datapath/")
		if !below || strings.Contains(part, "/") {
			continue
		}
		text := readFile(t, filepath.Join(root, "datapath", part, "README.md"))
		at := 0
		for _, h := range headings {
			i := strings.Index(text[at:], h)
			if i < 0 {
				t.Errorf("datapath/%s/README.md: heading %q is missing or out of order", part, h)
				break
			}
			at += i
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The tests that the documents name are there.
func TestPromisesAreTested(t *testing.T) {
	tests := make(map[string]bool)
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				tests[f.Name.Name] = true
			}
		}
	}
	name := regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	for _, document := range []string{"docs/promises.md", "docs/trust.md"} {
		for _, n := range name.FindAllStringSubmatch(readFile(t, filepath.Join(root, document)), -1) {
			if !tests[n[1]] {
				t.Errorf("%s names %s, which is not there", document, n[1])
			}
		}
	}
}
