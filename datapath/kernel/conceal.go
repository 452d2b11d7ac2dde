package kernel

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
)

// hidden begins the names of files that Conceal made.
const hidden = "."

// Conceal makes path a link to a file name beside it that tells nothing, and
// returns that. Every user of the machine sees where something is mounted, and
// nobody's business are the names of tenants, networks and nodes.
// What was at path must be gone: see Unbind. Nothing is at the new name yet.
func Conceal(path string) (target string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	name := hidden + strings.ToLower(rand.Text())
	return filepath.Join(filepath.Dir(path), name), os.Symlink(name, path)
}

// concealed is the file that path, made by Conceal, leads to; path itself if it
// was not.
func concealed(path string) string {
	name, err := os.Readlink(path)
	if err != nil || !strings.HasPrefix(name, hidden) || strings.Contains(name, "/") {
		return path
	}
	return filepath.Join(filepath.Dir(path), name)
}
