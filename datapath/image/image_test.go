package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
)

// entry is one of a layer: a directory if its name ends in /, else a file, or what
// kind says.
type entry struct {
	name, text string // text is what a link leads to, too
	kind       byte
	mode       int64
}

func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, ModTime: time.Unix(1e9, 0), Uid: 33, Gid: 33}
		switch {
		case e.kind == tar.TypeSymlink || e.kind == tar.TypeLink:
			h.Linkname = e.text
		case e.kind == 0 && strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		case e.kind == 0:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.text))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		check(t, w.WriteHeader(h))
		if h.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, e.text)
			check(t, err)
		}
	}
	check(t, w.Close())
	return b.Bytes()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func digest(data []byte) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sha256.Sum256(data))}
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	check(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func zstandard(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	check(t, err)
	return w.EncodeAll(data, nil)
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	check(t, err)
	return text
}

// bundle is an image in pieces, which tests damage.
type bundle struct {
	config   v1.ConfigFile
	manifest v1.Manifest
	index    v1.IndexManifest
	files    map[string][]byte // of a layout
}

func build(t *testing.T, layers ...[]byte) *bundle {
	t.Helper()
	b := &bundle{files: map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
	b.config = v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, RootFS: v1.RootFS{Type: "layers"}}
	b.config.Config = v1.Config{Entrypoint: []string{"/bin/serve"}, Env: []string{"A=b"}, WorkingDir: "/srv"}
	for i, layer := range layers {
		b.config.RootFS.DiffIDs = append(b.config.RootFS.DiffIDs, digest(layer))
		packed := [][]byte{layer, zipped(t, layer), zstandard(t, layer)}[i%3]
		b.files["blobs/sha256/"+digest(packed).Hex] = packed
		b.manifest.Layers = append(b.manifest.Layers, v1.Descriptor{MediaType: types.OCILayer, Size: int64(len(packed)), Digest: digest(packed)})
	}
	return b
}

// seal writes the documents that lead to the layers.
func (b *bundle) seal(t *testing.T) *bundle {
	t.Helper()
	config := encode(t, b.config)
	b.manifest.SchemaVersion, b.manifest.MediaType = 2, types.OCIManifestSchema1
	b.manifest.Config = v1.Descriptor{MediaType: types.OCIConfigJSON, Size: int64(len(config)), Digest: digest(config)}
	manifest := encode(t, b.manifest)
	b.index.SchemaVersion = 2
	b.index.Manifests = append(b.index.Manifests, v1.Descriptor{MediaType: types.OCIManifestSchema1, Size: int64(len(manifest)), Digest: digest(manifest)})
	for _, blob := range [][]byte{config, manifest} {
		b.files["blobs/sha256/"+digest(blob).Hex] = blob
	}
	b.files["index.json"] = encode(t, b.index)
	return b
}

func (b *bundle) directory(t *testing.T, at string) {
	t.Helper()
	for name, data := range b.files {
		path := filepath.Join(at, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, data, 0o644))
	}
}

func (b *bundle) archive(t *testing.T, at string) {
	t.Helper()
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		entries = append(entries, entry{name: name, text: string(b.files[name])})
	}
	check(t, os.WriteFile(at, pack(t, entries...), 0o644))
}

func (b *bundle) docker(t *testing.T, at string, layers ...[]byte) {
	t.Helper()
	var names []string
	entries := []entry{{name: "config.json", text: string(encode(t, b.config))}}
	for i, layer := range layers {
		names = append(names, fmt.Sprintf("%d/layer.tar", i))
		entries = append(entries, entry{name: names[i], text: string(layer)})
	}
	manifest := encode(t, []map[string]any{{"Config": "config.json", "RepoTags": []string{"web:1"}, "Layers": names}})
	entries = append(entries, entry{name: "manifest.json", text: string(manifest)})
	check(t, os.WriteFile(at, pack(t, entries...), 0o644))
}

// TestMain is also the process that unpacks.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == unpackHere {
		if err := Unpack(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const unpackHere = "unpack"

func unpacker() *exec.Cmd { return exec.Command("/proc/self/exe", unpackHere) }

func store(t *testing.T, c Config) *Store {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to own files")
	}
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	if c.Offered == "" {
		c.Offered = t.TempDir()
	}
	c.Apart = unpacker
	s, err := New(c)
	check(t, err)
	return s
}

// contents are a tree's files: text, "/" for directories, "-> to" for links.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	check(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name := strings.TrimPrefix(path, root+"/")
		switch d.Type() {
		case fs.ModeDir:
			found[name] = "/"
		case fs.ModeSymlink:
			to, err := os.Readlink(path)
			found[name] = "-> " + to
			return err
		default:
			text, err := os.ReadFile(path)
			found[name] = string(text)
			return err
		}
		return nil
	}))
	return found
}

var (
	lower = []entry{
		{name: "etc/"}, {name: "etc/os", text: "old"}, {name: "etc/gone", text: "x"},
		{name: "opt/"}, {name: "opt/a", text: "lower"}, {name: "opt/deep/b", text: "lower"},
		{name: "run/"}, {name: "var/run", kind: tar.TypeSymlink, text: "/run"},
		{name: "bin/busybox", text: "program", mode: 0o4755}, {name: "bin/sh", kind: tar.TypeLink, text: "bin/busybox"},
	}
	upper = []entry{
		{name: "etc/os", text: "new"}, {name: "etc/.wh.gone"},
		{name: "opt/c", text: "upper"}, {name: "opt/.wh..wh..opq"}, {name: "opt/deep/d", text: "upper"},
		{name: "var/run/here", text: "through an absolute link"},
		{name: "dev/null", kind: tar.TypeChar}, {name: "dev/pipe", kind: tar.TypeFifo},
	}
	merged = map[string]string{
		"etc": "/", "etc/os": "new", "opt": "/", "opt/c": "upper", "opt/deep": "/", "opt/deep/d": "upper",
		"run": "/", "run/here": "through an absolute link", "var": "/", "var/run": "-> /run",
		"bin": "/", "bin/busybox": "program", "bin/sh": "program", "dev": "/",
	}
)

func TestImagesOfAllForms(t *testing.T) {
	s := store(t, Config{})
	layers := [][]byte{pack(t, lower...), pack(t, upper...), pack(t, entry{name: "last", text: "zstd"})}
	want := maps.Clone(merged)
	want["last"] = "zstd"
	b := build(t, layers...).seal(t)
	b.directory(t, filepath.Join(s.Offered, "lab/web:1"))
	b.archive(t, filepath.Join(s.Offered, "web.tar"))
	b.docker(t, filepath.Join(s.Offered, "saved.tar"), layers...)
	var id string
	for _, name := range []string{"lab/web:1", "web.tar", "saved.tar"} {
		image, err := s.Get(t.Context(), name, Owner{})
		check(t, err)
		if got := contents(t, image.Root); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: files are %v, want %v", name, got, want)
		}
		if !reflect.DeepEqual(image.Config, b.config.Config) {
			t.Errorf("%s: configuration is %v", name, image.Config)
		}
		if id == "" {
			id = image.ID
		}
		if image.ID != id {
			t.Errorf("%s: the same image is unpacked twice", name)
		}
	}
	info, err := os.Stat(s.path("tree", id, "root/bin/busybox"))
	check(t, err)
	if info.Mode() != 0o755 || info.ModTime().Unix() != 1e9 {
		t.Errorf("a program has mode %v and time %v", info.Mode(), info.ModTime())
	}
}

func TestPlainDirectory(t *testing.T) {
	s := store(t, Config{})
	check(t, os.MkdirAll(filepath.Join(s.Offered, "root/etc"), 0o755))
	image, err := s.Get(t.Context(), "root", Owner{})
	check(t, err)
	if image.ID != "" || image.Root != filepath.Join(s.Offered, "root") {
		t.Errorf("a directory is %+v", image)
	}
}

func TestFilesAreTheOwners(t *testing.T) {
	s := store(t, Config{})
	build(t, pack(t, lower...)).seal(t).archive(t, filepath.Join(s.Offered, "a.tar"))
	owner := Owner{UID: 4242, GID: 4343}
	image, err := s.Get(t.Context(), "a.tar", owner)
	check(t, err)
	for name := range contents(t, image.Root) {
		var st fs.FileInfo
		st, err = os.Lstat(filepath.Join(image.Root, name))
		check(t, err)
		if got := ownerOf(st); got != owner {
			t.Errorf("%s belongs to %v", name, got)
		}
	}
	other, err := s.Get(t.Context(), "a.tar", Owner{})
	check(t, err)
	if other.Root == image.Root {
		t.Error("two owners share files")
	}
}
