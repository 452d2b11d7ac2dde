package archtest

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// files gives the paths of the house's files with one of these endings, from
// its root, generated folders and test data left out.
func files(t *testing.T, endings ...string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		for _, ending := range endings {
			if strings.HasSuffix(path, ending) {
				list = append(list, strings.TrimPrefix(filepath.ToSlash(path), root+"/"))
				break
			}
		}
		return nil
	})
	if err != nil || len(list) == 0 {
		t.Fatal("no files ", endings, err)
	}
	return list
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	span    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	markup  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)|[` + "`" + `*]`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors are what a document's headings are linked by, as GitHub makes them:
// small letters, no punctuation, a dash for each space.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := dropped.ReplaceAllString(strings.ToLower(markup.ReplaceAllString(m[1], "$1")), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	for _, document := range files(t, ".md") {
		text := readFile(t, filepath.Join(root, document))
		for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), -1) {
			to, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: link %s: %v", document, m[1], err)
			} else if to.Scheme == "" {
				leads(t, document, text, to)
			}
		}
	}
}

// leads says where a link within the repository ends in nothing.
func leads(t *testing.T, document, text string, to *url.URL) {
	t.Helper()
	if to.Path != "" {
		path := filepath.Join(root, filepath.Dir(document), to.Path)
		state, err := os.Stat(path)
		if err != nil {
			t.Errorf("%s: dead link %s", document, to)
			return
		}
		if to.Fragment == "" || state.IsDir() {
			return
		}
		text = readFile(t, path)
	}
	if to.Fragment != "" && !anchors(text)[to.Fragment] {
		t.Errorf("%s: no heading for the link %s", document, to)
	}
}

// The index of a folder of documents leads to every document beside it.
func TestIndexHasEveryDocument(t *testing.T) {
	for _, folder := range []string{"docs/", "docs/guides/", "docs/research/"} {
		index := readFile(t, filepath.Join(root, folder, "README.md"))
		for _, document := range files(t, ".md") {
			if dir, name := filepath.Split(document); dir == folder && name != "README.md" && !strings.Contains(index, "]("+name+")") {
				t.Errorf("%sREADME.md lacks %s", folder, name)
			}
		}
	}
}

// Guides say of each block of commands whether a test runs it, and if not, why.
func TestCommandsOfGuidesAreMarked(t *testing.T) {
	block := regexp.MustCompile("(?m)^```sh\n(.*)$")
	mark := regexp.MustCompile(`^# (run|fresh|background|not run: .+)$`)
	for _, document := range files(t, ".md") {
		if !strings.HasPrefix(document, "docs/guides/") {
			continue
		}
		for _, m := range block.FindAllStringSubmatch(readFile(t, filepath.Join(root, document)), -1) {
			if !mark.MatchString(m[1]) {
				t.Errorf("%s: commands that begin with %q are not marked as run or not", document, m[1])
			}
		}
	}
}

// Documents that comments name are there.
func TestDocumentsOfCommentsExist(t *testing.T) {
	name := regexp.MustCompile(`\bdocs/[\w/-]+\.(md|svg|json)\b`)
	for _, source := range files(t, ".go", ".c", ".h", ".py", ".yaml", ".sh", "Makefile") {
		for _, m := range name.FindAllString(readFile(t, filepath.Join(root, source)), -1) {
			if _, err := os.Stat(filepath.Join(root, m)); err != nil {
				t.Errorf("%s names %s, which is not there", source, m)
			}
		}
	}
}
