package archtest

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test is run by `make test` or by `make soak`, as its name says, and CI
// runs both: whatever the one skips is what the other runs, in every package.
func TestEveryTestIsRun(t *testing.T) {
	makefile := readFile(t, filepath.Join(root, "Makefile"))
	long := regexp.MustCompile(`(?m)^LONG := (\S+)$`).FindStringSubmatch(makefile)
	if long == nil {
		t.Fatal("the Makefile does not say which tests are those of make soak")
	}
	for _, line := range []string{
		`$(call TESTS,test-others,$(OTHERS)) -count=1 -timeout 20m -p 3 -skip '$(LONG)'`,
		`$(call TESTS,test-measuring,$(MEASURING)) -count=1 -timeout 40m -p 1 -skip '$(LONG)'`,
		`$(call TESTS,soak-others,$(filter-out $(MEASURING),$(SOAKING))) -count=1 -timeout 0 -p 3 -run '$(LONG)'`,
		`$(call TESTS,soak-measuring,$(filter $(MEASURING),$(SOAKING))) -count=1 -timeout 0 -p 1 -run '$(LONG)'`,
		`OTHERS    = $(LONGEST) $(filter-out $(MEASURING) $(LONGEST),$(shell $(GO) list -f '.{{slice .ImportPath 6}}' ./...))`,
		`SOAKING   = $(shell grep -rl --include='*_test.go' 'func TestSoak' . | xargs -n1 dirname | sort -u)`,
	} {
		if !strings.Contains(makefile, "\n\t"+line+"\n") && !strings.Contains(makefile, "\n\tSUBLET_STOCK=$(STOCK) "+line+"\n") && !strings.Contains(makefile, "\n"+line+"\n") {
			t.Errorf("the Makefile lacks %q", line)
		}
	}
	ci := readFile(t, filepath.Join(root, ".ci/run"))
	if !strings.Contains(ci, "\nmake test\nmake soak\n") {
		t.Error(".ci/run does not run make test and make soak")
	}
	name, soaking := regexp.MustCompile(long[1]), 0
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !s.test || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			if soak := strings.HasPrefix(f.Name.Name, "TestSoak"); soak != name.MatchString(f.Name.Name) {
				t.Errorf("%s is of neither run, or of both", f.Name.Name)
			} else if soak {
				soaking++
			}
		}
	}
	if soaking == 0 {
		t.Error("make soak has no tests")
	}
}

// The promises say how a test's name tells which run it is of.
func TestPromisesSayWhichRun(t *testing.T) {
	text := readFile(t, filepath.Join(root, "docs/promises.md"))
	if !strings.Contains(text, "names begin with TestSoak are run by `make soak`") {
		t.Error("docs/promises.md does not say which tests make soak runs")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") && strings.Contains(line, "`TestSoak") && !strings.Contains(line, "(soak)") {
			t.Errorf("a promise of make soak is not marked (soak): %.80s", line)
		}
	}
}
