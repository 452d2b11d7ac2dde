package channel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources is the text of the rooms of OpenFlow: what runs, and their tests.
func sources(t *testing.T) (code, tests string) {
	for _, room := range []string{"of13", "pipeline", "channel"} {
		files, err := filepath.Glob(filepath.Join("..", room, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", room, len(files), err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(path, "_test.go") {
				tests += string(b)
			} else {
				code += string(b)
			}
		}
	}
	return code, tests
}

// Each error that the switch can send is named in a test.
func TestEveryErrorHasATest(t *testing.T) {
	code, tests := sources(t)
	declared := regexp.MustCompile(`(?m)^\t(\w+) +Error += `).FindAllStringSubmatch(code, -1)
	if len(declared) < 100 {
		t.Fatalf("%d errors were found", len(declared))
	}
	for _, d := range declared {
		word := regexp.MustCompile(`\b` + d[1] + `\b`)
		named := len(word.FindAllString(code, -1))
		if strings.Contains(code, `"`+d[1]+`"`) {
			named -= 2 // in the table of names
		}
		if named > 1 && !word.MatchString(tests) {
			t.Errorf("no test has %s", d[1])
		}
	}
}
