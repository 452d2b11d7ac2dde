package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The text of a file is read beside the request that names it, and from nowhere else.
func TestFilesFromBeside(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("daemons", "ospfd=yes\n")
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	put("large", strings.Repeat("x", 1<<20))
	for from, want := range map[string]string{
		"daemons":       "",
		"large":         "nodes[0].files[0].text: has 65537 bytes, more than 65536",
		"none":          "nodes[0].files[0]: from: " + dir + "/none: no such file or directory",
		"/etc/hostname": "from: \"/etc/hostname\" leads out of the directory of the file that names it: copy it there",
		"../x":          "from: \"../x\" leads out of the directory of the file that names it: copy it there",
		"away":          dir + "/away: path escapes from parent",
		".":             "nodes[0].files[0]: from: " + dir + " is no file",
	} {
		text := "network: net\nnodes:\n  - {name: r1, image: frr.tar, files: [{path: /etc/frr/daemons, from: " + from + "}]}\n"
		req, _, err := parseText(put("net.yaml", text), []byte(text), true)
		switch {
		case want == "" && (err != nil || req.Nodes[0].Files[0].Text != "ospfd=yes\n"):
			t.Errorf("%s: %+v, %v", from, req.Nodes, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", from, err, want)
		}
	}
}
