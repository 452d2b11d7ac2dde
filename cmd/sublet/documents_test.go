package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands gives all commands that do something, by their words: "lab up".
func commands() map[string]*cobra.Command {
	list := make(map[string]*cobra.Command)
	var walk func(*cobra.Command, string)
	walk = func(c *cobra.Command, words string) {
		for _, child := range c.Commands() {
			if child.Name() != "help" && child.Name() != "completion" && !child.Hidden {
				walk(child, strings.TrimSpace(words+" "+child.Name()))
			}
		}
		if words != "" && (c.Runnable() || c.HasSubCommands()) {
			list[words] = c
		}
	}
	root := (&app{}).root()
	walk(root, "")
	return list
}

// README's table has a row for each command of the program, and no other.
func TestReadmeListsEveryCommand(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Commands")
	table, _, _ = strings.Cut(table, "\n## ")
	all, listed := commands(), make(map[string]bool)
	for _, row := range strings.Split(table, "\n| `")[1:] {
		cell, _, _ := strings.Cut(row, " |")
		for _, typed := range strings.Split(strings.Trim("`"+cell, "`"), "`, `") {
			name := named(all, strings.Fields(typed))
			if name == "" || !strings.HasPrefix(typed, "sublet ") {
				t.Errorf("the README lists `%s`, which is no command", typed)
			}
			listed[name] = true
		}
	}
	for name, c := range all {
		if !listed[name] && !c.HasSubCommands() {
			t.Errorf("the README's table lacks `sublet %s`", name)
		}
	}
}

// named gives the longest name of a command that the words after "sublet"
// begin with; "" if none does.
func named(all map[string]*cobra.Command, typed []string) (name string) {
	for n := 2; n <= len(typed); n++ {
		if words := strings.Join(typed[1:n], " "); all[words] != nil {
			name = words
		}
	}
	return name
}

// What documents write as commands of the program are some, with flags that
// they have.
func TestCommandsOfDocumentsExist(t *testing.T) {
	all := commands()
	typed := regexp.MustCompile("(?m)(?:`|^    |^|\\| |; |do )(sublet [a-z][^`|;\n]*)")
	seen := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".md") || d.Name() == "CHANGELOG.md" { // it tells of what was
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range typed.FindAllStringSubmatch(code(string(text)), -1) {
			seen++
			documented(t, all, path, m[1])
		}
		return err
	})
	if err != nil || seen < 100 {
		t.Errorf("only %d commands were found in the documents: %v", seen, err)
	}
}

// code keeps what a document writes as code.
func code(text string) string {
	var kept strings.Builder
	for _, m := range regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]+`|^    .*$").FindAllString(text, -1) {
		kept.WriteString(strings.ReplaceAll(m, `\|`, "/") + "\n")
	}
	return kept.String()
}

// documented looks for a command and its flags.
func documented(t *testing.T, all map[string]*cobra.Command, path, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	line, inner, _ := strings.Cut(line, " -- ") // what exec runs
	words := strings.Fields(line)
	if words[1] == "help" || words[1] == "completion" { // the library's own
		return
	}
	c := all[named(all, words)]
	if c == nil {
		t.Errorf("%s: %q is no command of sublet", path, line)
		return
	}
	for _, w := range words {
		name, _, _ := strings.Cut(strings.TrimRight(w, ",.:)"), "=")
		if long, ok := strings.CutPrefix(name, "--"); ok && long != "" && long != "help" && flagOf(c, func(f *pflag.FlagSet) *pflag.Flag { return f.Lookup(long) }) == nil {
			t.Errorf("%s: %q: sublet %s has no flag --%s", path, line, named(all, words), long)
		} else if short := strings.TrimPrefix(name, "-"); !ok && len(name) == 2 && short != name && inner == "" && flagOf(c, func(f *pflag.FlagSet) *pflag.Flag { return f.ShorthandLookup(short) }) == nil {
			t.Errorf("%s: %q: sublet %s has no flag -%s", path, line, named(all, words), short)
		}
	}
}

// flagOf looks among a command's own flags and those of its parents.
func flagOf(c *cobra.Command, look func(*pflag.FlagSet) *pflag.Flag) *pflag.Flag {
	if f := look(c.Flags()); f != nil {
		return f
	}
	return look(c.InheritedFlags())
}
