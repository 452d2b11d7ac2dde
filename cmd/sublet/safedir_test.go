package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names that others could have planted are refused before anything is made.
func TestTrusted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away takes root")
	}
	const stranger = 12345
	make := func(name string, mode os.FileMode, uid int) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		must(t, os.Mkdir(path, 0o700))
		must(t, os.Chmod(path, mode))
		must(t, os.Chown(path, uid, 0))
		return path
	}
	link := func(target string, uid int) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "link")
		must(t, os.Symlink(target, path))
		must(t, os.Lchown(path, uid, 0))
		return path
	}
	for what, c := range map[string]struct{ dir, problem string }{
		"ours":                        {make("d", 0o755, 0), ""},
		"not there yet":               {filepath.Join(make("d", 0o755, 0), "run"), ""},
		"not there, in a sticky one":  {filepath.Join(make("d", 0o777|os.ModeSticky, 0), "run"), ""},
		"a stranger's":                {make("d", 0o755, stranger), "belongs to user 12345"},
		"below a stranger's":          {filepath.Join(make("d", 0o755, stranger), "run"), "belongs to user 12345"},
		"open to all":                 {make("d", 0o777, 0), "written by others"},
		"open to all but sticky":      {make("d", 0o777|os.ModeSticky, 0), "written by others"},
		"below one that is not":       {filepath.Join(make("d", 0o777, 0), "run"), "written by others"},
		"our link to ours":            {link(make("d", 0o755, 0), 0), ""},
		"our link to a stranger's":    {link(make("d", 0o755, stranger), 0), "belongs to user 12345"},
		"a stranger's link to root's": {link("/etc", stranger), "belongs to user 12345"},
	} {
		t.Run(what, func(t *testing.T) {
			err := safeDir(c.dir)
			if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v", what, err)
			}
			if err != nil && exitCode(err) != exitInput {
				t.Errorf("%s: exit code %d", what, exitCode(err))
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A link that somebody planted under the name of an output file is not
// followed: root's captures and offers overwrite nothing elsewhere.
func TestCreateFollowsNoLink(t *testing.T) {
	victim, link := filepath.Join(t.TempDir(), "victim"), filepath.Join(t.TempDir(), "capture.pcapng")
	must(t, os.WriteFile(victim, []byte("untouched"), 0o600))
	must(t, os.Symlink(victim, link))
	if err := write(link, []byte("overwritten")); err == nil || exitCode(err) != exitInput {
		t.Errorf("write to a link: %v", err)
	}
	if text, _ := os.ReadFile(victim); string(text) != "untouched" {
		t.Errorf("behind the link is now %q", text)
	}
	must(t, write(victim, []byte("anew")))
	if text, _ := os.ReadFile(victim); string(text) != "anew" {
		t.Errorf("the file is now %q", text)
	}
}
