package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Concurrent gives the packages below a folder whose code or tests start
// goroutines, as arguments of go test ("./agent"), sorted: what the race
// detector has something to say about. Left out are the end-to-end tests, which
// watch another process, and benchmarks, which have no tests.
func Concurrent(folder string) ([]string, error) {
	var packages []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		skipped := d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || path == filepath.Join(folder, "test") || path == filepath.Join(folder, "bench")
		if err == nil && d.IsDir() && path != folder && skipped {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil || !startsGoroutines(file) {
			return err
		}
		dir, err := filepath.Rel(folder, filepath.Dir(path))
		packages = append(packages, "./"+filepath.ToSlash(dir))
		return err
	})
	slices.Sort(packages)
	return slices.Compact(packages), err
}

func startsGoroutines(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		found = found || StartsGoroutine(n)
		return !found
	})
	return found
}

// StartsGoroutine says whether a piece of code does: a go statement, the Go
// method of sync.WaitGroup and of errgroup.Group, time.AfterFunc.
func StartsGoroutine(n ast.Node) bool {
	if _, ok := n.(*ast.GoStmt); ok {
		return true
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (method.Sel.Name == "Go" || method.Sel.Name == "AfterFunc")
}
