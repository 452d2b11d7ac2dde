package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func ownerOf(info fs.FileInfo) Owner {
	st := info.Sys().(*syscall.Stat_t)
	return Owner{UID: st.Uid, GID: st.Gid}
}

// outside is a file of the host that no image may reach.
func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("host"), 0o600))
	return dir
}

// Layers whose names lead out of the tree are unpacked inside it or refused; a
// file of the host stays as it is.
func TestNothingLeavesTheTree(t *testing.T) {
	dir := outside(t)
	up := strings.Repeat("../", 30)
	for what, entries := range map[string][]entry{
		"dots":                    {{name: up + dir + "/secret", text: "x"}},
		"absolute":                {{name: dir + "/secret", text: "x"}},
		"through a link":          {{name: "a", kind: tar.TypeSymlink, text: dir}, {name: "a/secret", text: "x"}},
		"link to nowhere inside":  {{name: "a", kind: tar.TypeSymlink, text: dir}, {name: "a/b/c", text: "x"}},
		"through a relative link": {{name: "a", kind: tar.TypeSymlink, text: up + dir}, {name: "a/secret", text: "x"}},
		"over a link":             {{name: "a", kind: tar.TypeSymlink, text: dir + "/secret"}, {name: "a", text: "x"}},
		"directory over a link":   {{name: "a", kind: tar.TypeSymlink, text: dir}, {name: "a/", mode: 0o777}},
		"hard link":               {{name: "a", kind: tar.TypeLink, text: dir + "/secret"}, {name: "a", text: "x"}},
		"hard link with dots":     {{name: "a", kind: tar.TypeLink, text: up + dir + "/secret"}},
		"hard link to a link":     {{name: "l", kind: tar.TypeSymlink, text: dir + "/secret"}, {name: "a", kind: tar.TypeLink, text: "l"}, {name: "a", text: "x"}},
		"hard link by a link":     {{name: "l", kind: tar.TypeSymlink, text: dir}, {name: "a", kind: tar.TypeLink, text: "l/secret"}},
		"whiteout by a link":      {{name: "l", kind: tar.TypeSymlink, text: dir}, {name: "l/.wh.secret"}},
		"opaque by a link":        {{name: "l", kind: tar.TypeSymlink, text: dir}, {name: "l/.wh..wh..opq"}},
		"whiteout of dots":        {{name: ".wh..."}, {name: ".wh..", text: ""}},
		"proc":                    {{name: "a", kind: tar.TypeSymlink, text: "/proc/self/root" + dir}, {name: "a/secret", text: "x"}},
	} {
		t.Run(what, func(t *testing.T) {
			s := store(t, Config{})
			build(t, pack(t, entries...)).seal(t).archive(t, filepath.Join(s.Offered, "a.tar"))
			before, err := os.Stat(dir)
			check(t, err)
			image, err := s.Get(t.Context(), "a.tar", Owner{UID: 4242})
			if text, _ := os.ReadFile(filepath.Join(dir, "secret")); string(text) != "host" {
				t.Fatalf("the host's file holds %q", text)
			}
			left, _ := os.ReadDir(dir)
			after, _ := os.Stat(dir)
			info, _ := os.Stat(filepath.Join(dir, "secret"))
			if len(left) != 1 || after.Mode() != before.Mode() || ownerOf(info) != (Owner{}) || ownerOf(after) != (Owner{}) {
				t.Fatalf("the host's directory has changed: %v, %v", left, after)
			}
			if err != nil {
				return
			}
			for name, text := range contents(t, image.Root) {
				if text == "host" && !strings.HasPrefix(text, "-> ") {
					t.Errorf("%s is the host's", name)
				}
			}
		})
	}
}

// What has no end or is damaged is refused in a line, and leaves nothing.
func TestHostileImages(t *testing.T) {
	small := Limits{Bytes: 1 << 20, Entries: 50, Layers: 3, Time: DefaultLimits.Time}
	file := pack(t, entry{name: "a", text: "b"})
	many := make([]entry, 60)
	for i := range many {
		many[i] = entry{name: strings.Repeat("d/", i+1)}
	}
	for what, c := range map[string]struct {
		bundle func(t *testing.T) *bundle
		want   string
	}{
		"bomb of gzip": {func(t *testing.T) *bundle {
			return build(t, file, pack(t, entry{name: "z", text: strings.Repeat("0", 8<<20)})).seal(t)
		}, "too many bytes"},
		"bomb of zstd": {func(t *testing.T) *bundle {
			return build(t, file, file, pack(t, entry{name: "z", text: strings.Repeat("0", 8<<20)})).seal(t)
		}, "too many bytes"},
		"bomb after the end": {func(t *testing.T) *bundle {
			return build(t, file, append(bytes.Clone(file), make([]byte, 8<<20)...)).seal(t)
		}, "too many bytes"},
		"sparse bomb":  {func(t *testing.T) *bundle { return build(t, sparseBomb(t)).seal(t) }, "too many bytes"},
		"many entries": {func(t *testing.T) *bundle { return build(t, pack(t, many...)).seal(t) }, "too many files"},
		"many layers":  {func(t *testing.T) *bundle { return build(t, file, file, file, file).seal(t) }, "it has 4 layers, more than 3"},
		"long name": {func(t *testing.T) *bundle {
			return build(t, pack(t, entry{name: strings.Repeat("long/", 1000) + "a", text: "b"})).seal(t)
		}, "name too long"},
		"no tar": {func(t *testing.T) *bundle { return build(t, []byte("no archive at all")).seal(t) }, "layer 1 of 1: its archive"},
		"damaged layer": {func(t *testing.T) *bundle {
			b := build(t, file).seal(t)
			b.files["blobs/sha256/"+b.manifest.Layers[0].Digest.Hex] = pack(t, entry{name: "a", text: "c"})
			return b
		}, "layer 1 of 1: damaged"},
		"damaged configuration": {func(t *testing.T) *bundle {
			b := build(t, file).seal(t)
			b.files["blobs/sha256/"+b.manifest.Config.Digest.Hex] = []byte("{}")
			return b
		}, "damaged: a document"},
		"no layer": {func(t *testing.T) *bundle {
			b := build(t, file).seal(t)
			delete(b.files, "blobs/sha256/"+b.manifest.Layers[0].Digest.Hex)
			return b
		}, "it lacks a file"},
		"fewer layers": {func(t *testing.T) *bundle {
			b := build(t, file, file)
			b.manifest.Layers = b.manifest.Layers[:1]
			return b.seal(t)
		}, "its manifest has 1 layers, its configuration 2"},
		"no digest": {func(t *testing.T) *bundle {
			b := build(t, file)
			b.index.Manifests = []v1.Descriptor{{}}
			b.files["index.json"] = encode(t, b.index)
			return b
		}, "its index: cannot parse hash"},
		"index of itself": {func(t *testing.T) *bundle {
			b := build(t, file).seal(t)
			b.index.Manifests = nil
			text := encode(t, b.index)
			b.files["index.json"] = text
			return b
		}, "0 images"},
		"malformed index": {func(t *testing.T) *bundle {
			b := build(t, file).seal(t)
			b.files["index.json"] = []byte("[}")
			return b
		}, "its index"},
		"huge index": {func(t *testing.T) *bundle {
			b := build(t, file).seal(t)
			b.files["index.json"] = make([]byte, mostDocument+1)
			return b
		}, "more than"},
		"another platform": {func(t *testing.T) *bundle { b := build(t, file); b.config.Architecture = "s390x"; return b.seal(t) }, "it is for linux/s390x"},
		"digest with dots": {func(t *testing.T) *bundle {
			b := build(t, file)
			b.config.RootFS.DiffIDs[0] = v1.Hash{Algorithm: "sha256", Hex: "../../.."}
			return b.seal(t)
		}, "its configuration"},
	} {
		t.Run(what, func(t *testing.T) {
			s := store(t, Config{Limits: small})
			b := c.bundle(t)
			b.archive(t, filepath.Join(s.Offered, "a.tar"))
			b.directory(t, filepath.Join(s.Offered, "b"))
			for _, name := range []string{"a.tar", "b"} {
				_, err := s.Get(t.Context(), name, Owner{})
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want %q", name, err, c.want)
				}
				if err != nil && (strings.Contains(err.Error(), s.Dir) || strings.Contains(err.Error(), s.Offered)) {
					t.Errorf("%s: the error names a path of the host: %v", name, err)
				}
			}
			for _, dir := range []string{"half", "tree"} {
				if left, _ := os.ReadDir(s.path(dir)); len(left) > 0 {
					t.Errorf("left in %s: %v", dir, left)
				}
			}
		})
	}
}

// sparseBomb has a file of 8 GiB in a few hundred bytes (GNU sparse format 1.0).
func sparseBomb(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	content := "1\n8589934591\n1\n"
	content += strings.Repeat("\x00", 512-len(content)) + "x"
	check(t, w.WriteHeader(&tar.Header{Name: "GNUSparseFile.0/z", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content)), Format: tar.FormatPAX}))
	_, err := w.Write([]byte(content))
	check(t, err)
	check(t, w.Close())
	record := func(k, v string) string {
		n := len(k) + len(v) + 5 // two digits, a blank, = and the end of the line
		return fmt.Sprintf("%d %s=%s\n", n, k, v)
	}
	pax := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.name", "z") + record("GNU.sparse.realsize", "8589934592")
	var x bytes.Buffer
	head := tar.NewWriter(&x)
	check(t, head.WriteHeader(&tar.Header{Name: "PaxHeaders.0/z", Typeflag: tar.TypeReg, Size: int64(len(pax)), Format: tar.FormatUSTAR}))
	_, err = head.Write([]byte(pax))
	check(t, err)
	check(t, head.Flush())
	raw := x.Bytes()
	raw[156] = tar.TypeXHeader
	sum := 0
	copy(raw[148:156], "        ")
	for _, c := range raw[:512] {
		sum += int(c)
	}
	copy(raw[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return append(raw, b.Bytes()...)
}
