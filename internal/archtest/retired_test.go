package archtest

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRetiredNamesStayAway: no declaration of Go, and no word of C outside of
// comments and strings, is a retired name.
func TestRetiredNamesStayAway(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			for _, id := range identifiers(d) {
				s.refuse(t, id)
			}
		}
	}
	words := regexp.MustCompile(`\w+`)
	for _, path := range files(t, ".c", ".h") {
		if filepath.Dir(path) == "datapath/bpf/include" && borrowed(path) {
			continue
		}
		seen := make(map[string]bool)
		for _, word := range words.FindAllString(bare(readFile(t, filepath.Join(root, path))), -1) {
			if instead, is := retiredIn(path, word); is && !seen[word] {
				seen[word] = true
				t.Errorf("%s: %s is a retired name: write %s", path, word, instead)
			}
		}
	}
}

// refuse reports an identifier with a retired name.
func (s source) refuse(t *testing.T, id *ast.Ident) {
	t.Helper()
	if instead, is := retiredIn(s.room+"/", id.Name); is {
		t.Errorf("%s: %s is a retired name: write %s", s.set.Position(id.Pos()), id.Name, instead)
	}
}

// retiredIn says what to write for a name that is retired in a folder.
func retiredIn(path, name string) (instead string, is bool) {
	for _, r := range Retired {
		if r.Name == name && (r.In == "" || strings.HasPrefix(path, r.In+"/")) {
			return r.Instead, true
		}
	}
	return "", false
}

// borrowed headers are the kernel's and libbpf's.
func borrowed(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, "bpf_") || strings.HasPrefix(name, "linux_") || name == "vmlinux.h"
}

// bare is a C text without comments and strings.
func bare(text string) string {
	return regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(\\.|[^"\\\n])*"`).ReplaceAllString(text, " ")
}

// TestCitationsCanBeFollowed: sources are cited by author, title and section
// (docs/references.md), not by numbers of files that only their authors have.
func TestCitationsCanBeFollowed(t *testing.T) {
	private := regexp.MustCompile(`[sS]eed [0-9]{3}\b|\b0[0-9]{2}:[0-9]{2,}|\[0[0-9]{2}:|fact[ ]file|\([iI]ssue[ ]|\b[iI]ssue[ ][0-9"“]`)
	for _, path := range files(t, ".go", ".c", ".h", ".md", ".py", ".yaml", ".sh", ".txt", "Makefile") {
		if borrowed(path) {
			continue
		}
		for i, line := range strings.Split(readFile(t, filepath.Join(root, path)), "\n") {
			if found := private.FindString(line); found != "" {
				t.Errorf("%s:%d: %q: cite by author, title and section, and list the title in docs/references.md", path, i+1, found)
			}
		}
	}
}
