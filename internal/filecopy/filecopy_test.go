package filecopy

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree makes a file, a directory with a file, and a link.
func tree(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "tree")
	check(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o640))
	check(t, os.WriteFile(filepath.Join(dir, "sub/run"), []byte(strings.Repeat("y", 100000)), 0o755))
	check(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	return dir
}

func TestRoundTrip(t *testing.T) {
	from := tree(t)
	for _, c := range []struct {
		name, to, want string
		prepare        func(dir string) error
	}{
		{"new", "new", "new", nil},
		{"into a directory", "there", "there/tree", func(dir string) error { return os.Mkdir(dir+"/there", 0o755) }},
		{"over itself", "again", "again", func(dir string) error { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.prepare != nil {
				check(t, c.prepare(dir))
			}
			var stream bytes.Buffer
			check(t, Pack(&stream, from))
			check(t, Unpack(&stream, filepath.Join(dir, c.to), "tree"))
			got := filepath.Join(dir, c.want)
			if text, err := os.ReadFile(got + "/sub/run"); err != nil || len(text) != 100000 {
				t.Errorf("%d bytes, %v", len(text), err)
			}
			if info, err := os.Stat(got + "/file"); err != nil || info.Mode() != 0o640 {
				t.Errorf("%v, %v", info, err)
			}
			if link, err := os.Readlink(got + "/link"); link != "/etc/passwd" {
				t.Errorf("%q, %v", link, err)
			}
		})
	}
}

func TestOneFile(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/a", []byte("text"), 0o600))
	var stream bytes.Buffer
	check(t, Pack(&stream, dir+"/a"))
	check(t, Unpack(bytes.NewReader(stream.Bytes()), dir+"/b", ""))
	check(t, Unpack(bytes.NewReader(stream.Bytes()), dir+"/b", ""))
	if text, err := os.ReadFile(dir + "/b"); string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestSpecialFilesAreLeftOutAndNamed(t *testing.T) {
	from := tree(t)
	check(t, syscall.Mkfifo(from+"/pipe", 0o600))
	var stream bytes.Buffer
	if err := Pack(&stream, from); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("packed a pipe: %v", err)
	}
	to := t.TempDir()
	check(t, Unpack(&stream, to+"/x", "tree"))
	if _, err := os.Stat(to + "/x/sub/run"); err != nil {
		t.Error(err)
	}
}

// What a stream says is not believed: nothing is written outside of the target.
func TestHostileStreams(t *testing.T) {
	for name, entries := range map[string][]tar.Header{
		"parent":      {{Name: "../evil", Typeflag: tar.TypeReg}},
		"other name":  {{Name: "a", Typeflag: tar.TypeDir}, {Name: "ab/evil", Typeflag: tar.TypeReg}},
		"inner":       {{Name: "a", Typeflag: tar.TypeDir}, {Name: "a/../../evil", Typeflag: tar.TypeReg}},
		"link":        {{Name: "a", Typeflag: tar.TypeDir}, {Name: "a/l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "a/l/../evil", Typeflag: tar.TypeReg}, {Name: "a/l/evil", Typeflag: tar.TypeReg}},
		"absolute":    {{Name: "a", Typeflag: tar.TypeDir}, {Name: "a/l", Typeflag: tar.TypeSymlink, Linkname: "/"}, {Name: "a/l/evil", Typeflag: tar.TypeReg}},
		"itself":      {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "a/evil", Typeflag: tar.TypeReg}},
		"hard link":   {{Name: "a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"device":      {{Name: "a", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"root itself": {{Name: "/", Typeflag: tar.TypeDir}, {Name: "/evil", Typeflag: tar.TypeReg}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			inside := filepath.Join(dir, "in")
			check(t, os.Mkdir(inside, 0o755))
			var stream bytes.Buffer
			w := tar.NewWriter(&stream)
			for _, h := range entries {
				h.Mode = 0o6755
				check(t, w.WriteHeader(&h))
			}
			check(t, w.Close())
			err := Unpack(&stream, filepath.Join(inside, "x"), "")
			for _, path := range []string{dir + "/evil", inside + "/evil", "/evil"} {
				if _, missing := os.Lstat(path); missing == nil {
					t.Errorf("wrote %s (%v)", path, err)
				}
			}
			_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if info, err := d.Info(); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeDevice) != 0 {
					t.Errorf("%s is %s", path, info.Mode())
				}
				return nil
			})
		})
	}
}

// A sender cannot choose which file of a directory is written.
func TestOtherThanAskedFor(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/.profile", []byte("mine"), 0o600))
	check(t, os.Symlink(dir+"/.profile", dir+"/results"))
	var stream bytes.Buffer
	from := t.TempDir() + "/.profile"
	check(t, os.WriteFile(from, []byte("theirs"), 0o600))
	check(t, Pack(&stream, from))
	if err := Unpack(&stream, dir, "results"); err == nil || !strings.Contains(err.Error(), `asked for "results"`) {
		t.Errorf("unpacked another file: %v", err)
	}
	w := tar.NewWriter(&stream)
	stream.Reset()
	check(t, w.WriteHeader(&tar.Header{Name: "new", Typeflag: tar.TypeSymlink, Linkname: ".profile"}))
	check(t, w.Close())
	if err := Unpack(&stream, dir, "new"); err == nil {
		t.Error("unpacked a link in the place of a file")
	}
	if text, err := os.ReadFile(dir + "/.profile"); string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

// Files of /proc say that they are empty.
func TestFileOfUnknownLength(t *testing.T) {
	var stream bytes.Buffer
	check(t, Pack(&stream, "/proc/version"))
	to := t.TempDir() + "/version"
	check(t, Unpack(&stream, to, "version"))
	want, err := os.ReadFile("/proc/version")
	check(t, err)
	if got, err := os.ReadFile(to); string(got) != string(want) {
		t.Errorf("%q, %v", got, err)
	}
}
