package main

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// TestArchivesOfOthers: an archive is refused, at once, for files of nodes that its
// request has not and for files with holes, of any length they claim; what a network
// saved passes.
func TestArchivesOfOthers(t *testing.T) {
	const sparse = "GNU.sparse."
	for name, c := range map[string]struct {
		entry  string
		length string // of a file with a hole
		want   string // "": it passes
	}{
		"of the node":      {entry: "nodes/a/kept.json"},
		"of another node":  {entry: "nodes/b/kept.json", want: "the request has not"},
		"above its folder": {entry: "nodes/../../kept.json", want: "the request has not"},
		"a hole":           {entry: "nodes/a/files/hole", length: "1125899906842624", want: "holes"},
	} {
		var text, packed bytes.Buffer
		w := tar.NewWriter(&text)
		add := func(name, content string, records map[string]string) {
			h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(content)), Format: tar.FormatPAX, PAXRecords: records}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		add(savedAbout, `{"format":"`+savedForm+`","version":1,"nodes":["a"]}`, nil)
		add(savedRequest, "network: n\nnodes: [{name: a}, {name: x}]\nlinks: [{ends: [a, x], rate: 1Mbit}]\n", nil)
		var records map[string]string
		if c.length != "" { // the writer of the library writes none: the names are put right below
			records = map[string]string{"GNU_sparse.size": c.length, "GNU_sparse.numblocks": "1", "GNU_sparse.map": "1024,4"}
		}
		add(c.entry, "text", records)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		z, _ := zstd.NewWriter(&packed)
		_, _ = z.Write(bytes.ReplaceAll(text.Bytes(), []byte("GNU_sparse."), []byte(sparse)))
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "saved")
		if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		refused := func(err error) {
			t.Helper()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := openArchive(path, bytes.NewReader(packed.Bytes()))
		refused(err) // the entry is the first after the request
		if err == nil {
			refused(r.readsToItsEnd(ctx))
			r.close()
		}
		cancel()
	}
}
