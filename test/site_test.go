package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The documents make a site of which every link leads somewhere; it needs nothing
// from the Internet.
func TestSoakSite(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"mkdocs", "python3", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	site := filepath.Join(t.TempDir(), "site")
	cmd := exec.CommandContext(t.Context(), "tools/site/site", site)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for page, words := range map[string]string{
		"index.html": "docs/guides/index.html", "docs/index.html": "research/index.html", "docs/guides/faq.html": "<h1", "docs/research/measurements.html": "<table>",
	} {
		text, err := os.ReadFile(filepath.Join(site, page))
		if err != nil || !strings.Contains(string(text), words) {
			t.Errorf("%s has no %q: %v", page, words, err)
		}
		for _, from := range []string{`src="http`, `rel="stylesheet" href="http`} {
			if strings.Contains(string(text), from) {
				t.Errorf("%s takes something from the Internet: %s", page, from)
			}
		}
	}
}
