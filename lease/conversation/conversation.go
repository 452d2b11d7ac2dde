// Package conversation plays text files with a state machine, for tests: a
// line that begins with "> " is a command, and what follows is its answer.
package conversation

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what conversations answer into testdata")

// Play plays every file of a glob, each with a partner of its own. Empty
// lines and comments (#) are kept. With -rewrite the answers are written into
// the files instead of compared.
func Play(t *testing.T, glob string, partner func() func(words []string) string) {
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations %s: %v", glob, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := answered(string(text), partner())
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("%s (go test with -rewrite writes it anew); got:\n%s", file, got)
			}
		})
	}
}

// answered gives a conversation with fresh answers.
func answered(text string, say func([]string) string) string {
	var out strings.Builder
	for _, line := range strings.Split(text, "\n") {
		command, said := strings.CutPrefix(line, "> ")
		switch {
		case said:
			out.WriteString(line + "\n" + say(strings.Fields(command)))
		case strings.HasPrefix(line, "#"), line == "":
			out.WriteString(line + "\n")
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}
