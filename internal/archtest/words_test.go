package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGlossaryIsTrue: docs/glossary.md is in order, and the names and rooms in
// its last column are there.
func TestGlossaryIsTrue(t *testing.T) {
	names, last := declared(t), ""
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| ([^|]*)\|$`)
	name := regexp.MustCompile("`([^`]+)`")
	for _, m := range row.FindAllStringSubmatch(readFile(t, filepath.Join(root, "docs/glossary.md")), -1)[1:] {
		word := regexp.MustCompile(`[^a-z0-9 ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		if word < last {
			t.Errorf("docs/glossary.md: %q stands after %q", m[1], last)
		}
		last = word
		for _, n := range name.FindAllStringSubmatch(m[2], -1) {
			if _, err := os.Stat(filepath.Join(root, n[1])); err != nil && !names[n[1]] {
				t.Errorf("docs/glossary.md: %s names `%s`, which is not there", m[1], n[1])
			}
		}
	}
}

// declared are the exported names of packages, as PACKAGE.NAME.
func declared(t *testing.T) map[string]bool {
	names := make(map[string]bool)
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			for _, id := range identifiers(d) {
				names[s.file.Name.Name+"."+id.Name] = true
			}
		}
	}
	return names
}

// identifiers are those that a declaration of a package declares: its own name,
// fields, methods of interfaces; not what is inside of functions.
func identifiers(d ast.Decl) (list []*ast.Ident) {
	if f, ok := d.(*ast.FuncDecl); ok {
		return []*ast.Ident{f.Name}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			list = append(list, n.Name)
		case *ast.ValueSpec:
			list = append(list, n.Names...)
		case *ast.Field:
			list = append(list, n.Names...)
		case *ast.FuncLit, *ast.FuncType:
			return false
		}
		return true
	})
	return list
}
