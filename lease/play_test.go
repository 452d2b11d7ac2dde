package lease

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewriteFlag = flag.Bool("rewrite", false, "write what conversations answer into testdata")

// play plays files: a line that begins with "> " is said, and what follows
// is what must be answered. Empty lines and comments are kept.
func play(t *testing.T, glob string, partner func() func([]string) string) {
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
			got := converse(string(text), partner())
			if *rewriteFlag {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("%s (go test ./lease -rewrite writes it anew); got:\n%s", file, got)
			}
		})
	}
}

// converse gives a conversation with fresh answers.
func converse(text string, say func([]string) string) string {
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

func answer(err error) string {
	if err == nil {
		return ""
	}
	return "error: " + err.Error() + "\n"
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
