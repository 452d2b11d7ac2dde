package main

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the table into README.md anew")

func TestReadmeHasTheTable(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin: bench/table.go -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("README.md lacks %q or %q", begin, end)
	}
	var table bytes.Buffer
	markdown(&table)
	want := before + begin + table.String() + end + after
	if *rewrite {
		if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("README.md differs from the table: go test ./bench -rewrite")
	}
}

// Every program below bench is a row, and rows of that kind have a program.
func TestTableHasEveryProgram(t *testing.T) {
	programs := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "main.go" && path != "main.go" {
			programs[filepath.Dir(path)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(programs, "harness") // has no main function
	for _, b := range table {
		if strings.Contains(b.command, "go run ./bench/"+b.name) {
			delete(programs, b.name)
		} else if strings.Contains(b.command, "go run ") {
			t.Errorf("%s runs a program that is not in bench/%s: %s", b.name, b.name, b.command)
		}
	}
	for name := range programs {
		t.Errorf("bench/%s is not in the table", name)
	}
}

func TestRowsAreWhole(t *testing.T) {
	flags := regexp.MustCompile("`(-[a-z]+)")
	var names []string
	for _, b := range table {
		if slices.Contains(names, b.name) {
			t.Errorf("%s is twice in the table", b.name)
		}
		names = append(names, b.name)
		if !slices.ContainsFunc(groups, func(g struct{ name, title string }) bool { return g.name == b.group() }) {
			t.Errorf("%s: there is no group %q", b.name, b.group())
		}
		if _, err := os.Stat(filepath.Join("..", "docs", b.page)); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
		if b.takes <= 0 || b.measures == "" {
			t.Errorf("%s does not say what it measures or how long it takes", b.name)
		}
		for _, m := range flags.FindAllStringSubmatch(b.measures, -1) {
			if strings.HasPrefix(b.command, "go run ") && !declares(t, b.name, m[1][1:]) {
				t.Errorf("%s has no flag %s", b.name, m[1])
			}
		}
	}
}

// declares says whether the program of a name has a flag.
func declares(t *testing.T, name, flag string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(name, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(name, " has no source: ", err)
	}
	declaration := regexp.MustCompile(`flag\.\w+\("` + flag + `",`)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && declaration.Match(text)
	})
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name, asked, files string
		want               []string // begins with
		wrong              string
	}{
		{name: "group without those that need files", asked: "embedding", want: []string{"embedding/scale", "embedding/vxdl"}},
		{name: "one", asked: "experiments/isolation", want: []string{"experiments/isolation"}},
		{name: "file missing", asked: "embedding/optimum", files: "FILE MAPPINGS", wrong: "needs ANSWERS"},
		{name: "files stated", asked: "embedding/optimum", files: "FILE MAPPINGS ANSWERS", want: []string{"embedding/optimum"}},
		{name: "unknown", asked: "datapath/none", wrong: "no benchmark"},
	} {
		t.Run(c.name, func(t *testing.T) {
			chosen, err := choose([]string{c.asked}, func(name string) string {
				if slices.Contains(strings.Fields(c.files), name) {
					return "x"
				}
				return ""
			})
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Fatalf("error %v, not one with %q", err, c.wrong)
				}
				return
			}
			var names []string
			for _, b := range chosen {
				names = append(names, b.name)
			}
			if err != nil || !slices.Equal(names, c.want) {
				t.Errorf("chosen %v, error %v", names, err)
			}
		})
	}
}

// Without names all are chosen that need no file.
func TestChooseAll(t *testing.T) {
	chosen, err := choose(nil, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	with := 0
	for _, b := range table {
		if len(b.inputs()) > 0 {
			with++
		}
	}
	if len(chosen)+with != len(table) || with == 0 {
		t.Errorf("%d of %d are chosen, %d need files", len(chosen), len(table), with)
	}
}
