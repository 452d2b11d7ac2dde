package archtest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The functions that docs/datapath.md names are in the files beside them, and
// every program that an agent attaches or calls is named.
func TestDatapathIsTold(t *testing.T) {
	text := readFile(t, filepath.Join(root, "docs/datapath.md"))
	step := regexp.MustCompile("(?m)\\| `(\\w+)` \\| `([\\w./]+)` \\|$")
	told := make(map[string]bool)
	for _, m := range step.FindAllStringSubmatch(text, -1) {
		told[m[1]] = true
		defined := regexp.MustCompile(`(?m)^(?:func |int |static [^;\n]*[ *])` + m[1] + `\(`)
		if !defined.MatchString(readFile(t, filepath.Join(root, m[2]))) {
			t.Errorf("docs/datapath.md: %s is not in %s", m[1], m[2])
		}
	}
	if len(told) == 0 {
		t.Fatal("docs/datapath.md names no functions")
	}
	program := regexp.MustCompile(`(?m)^SEC\("tc"\)\nint (\w+)\(`)
	for _, file := range files(t, ".bpf.c") {
		for _, m := range program.FindAllStringSubmatch(readFile(t, filepath.Join(root, file)), -1) {
			if !told[m[1]] && !strings.HasSuffix(m[1], "_port_ref") && !strings.Contains(m[1], "_version") {
				t.Errorf("docs/datapath.md does not tell what %s of %s does", m[1], file)
			}
		}
	}
}

// Every name of the contract that is not about bytes on the wire alone stands in
// docs/datapath.md.
func TestContractIsTold(t *testing.T) {
	text := readFile(t, filepath.Join(root, "docs/datapath.md"))
	for _, m := range regexp.MustCompile(`(?m)^\t((?:MARK|CB|FIRST|CLASS|TOS)_\w+) =`).FindAllStringSubmatch(readFile(t, filepath.Join(root, "datapath/bpf/include/contract.h")), -1) {
		if m[1] != "MARK_VNI" && m[1] != "MARK_KIND" && !strings.Contains(text, m[1]) {
			t.Errorf("docs/datapath.md lacks %s", m[1])
		}
	}
}
