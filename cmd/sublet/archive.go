package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"sublet/vnet"
	"sublet/vnet/file"
)

// A network that was saved is one archive, tar compressed by zstd (docs/save.md):
//
//	sublet.json          what it is, first
//	request.yaml         the request as it was then
//	nodes/NODE/...       an archive of what the node kept
//	switches/SWITCH.json entries of an OpenFlow switch
const (
	savedForm    = "sublet-save"
	savedVersion = 1
	savedAbout   = "sublet.json"
	savedRequest = "request.yaml"
	savedNodes   = "nodes/"
)

// savedNetwork is what an archive says of itself.
type savedNetwork struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Network string    `json:"network"`
	Saved   time.Time `json:"saved"`
	By      string    `json:"by"` // version of the program
	Nodes   []string  `json:"nodes,omitempty"`
}

// archiveWriter makes an archive.
type archiveWriter struct {
	packed *zstd.Encoder
	tar    *tar.Writer
	now    time.Time
}

func newArchive(w io.Writer, now time.Time) (*archiveWriter, error) {
	packed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	return &archiveWriter{packed, tar.NewWriter(packed), now}, nil
}

func (w *archiveWriter) close() error { return errors.Join(w.tar.Close(), w.packed.Close()) }

// text adds a file.
func (w *archiveWriter) text(name string, text []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: w.now, Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.tar.Write(text)
	return err
}

// json adds a value that can be encoded.
func (w *archiveWriter) json(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return w.text(name, append(text, '\n'))
}

// node adds an archive of what a node keeps, below its name.
func (w *archiveWriter) node(node string, kept io.Reader) error {
	return eachEntry(kept, func(h *tar.Header, content io.Reader) error {
		below := savedNodes + node + "/"
		h.Name = below + h.Name
		if h.Typeflag == tar.TypeLink {
			h.Linkname = below + h.Linkname
		}
		return copyEntry(w.tar, h, content)
	})
}

// eachEntry reads an archive to its end.
func eachEntry(packed io.Reader, do func(*tar.Header, io.Reader) error) error {
	r, err := unpacked(packed)
	if err != nil {
		return err
	}
	defer r.Close()
	entries := tar.NewReader(r)
	for {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r) // to its checksum
			return err
		}
		if err == nil {
			err = do(h, entries)
		}
		if err != nil {
			return err
		}
	}
}

func unpacked(packed io.Reader) (*zstd.Decoder, error) {
	const window, memory = 128 << 20, 256 << 20
	return zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(memory))
}

func copyEntry(to *tar.Writer, h *tar.Header, content io.Reader) error {
	h.Format = tar.FormatPAX
	if err := to.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(to, content)
	return err
}

// archiveReader reads one whose maker is anybody.
type archiveReader struct {
	name    string
	packed  *zstd.Decoder
	tar     *tar.Reader
	next    *tar.Header // nil: at the end
	about   savedNetwork
	request vnet.Request
}

func (r *archiveReader) close() { r.packed.Close() }

// openArchive reads what an archive begins with. Errors name the file.
func openArchive(name string, in io.Reader) (*archiveReader, error) {
	packed, err := unpacked(in)
	if err != nil {
		return nil, err
	}
	r := &archiveReader{name: name, packed: packed, tar: tar.NewReader(packed)}
	if err := r.begin(); err != nil {
		r.close()
		return nil, badInput{fmt.Errorf("%s: no archive of sublet save: %w", name, err)}
	}
	return r, nil
}

func (r *archiveReader) begin() error {
	text, err := r.text(savedAbout)
	if err != nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&r.about); err != nil {
		return fmt.Errorf("%s: %w", savedAbout, err)
	}
	if r.about.Format != savedForm || r.about.Version != savedVersion {
		return fmt.Errorf("it is of the form %.40q in version %d, this program reads %q in version %d", r.about.Format, r.about.Version, savedForm, savedVersion)
	}
	if text, err = r.text(savedRequest); err != nil {
		return err
	}
	r.request, err = file.ParseRequestWith(savedRequest, text, func(string) (string, error) {
		return "", errors.New("an archive names no files of its reader's")
	})
	if err != nil {
		return err
	}
	return r.step()
}

// text reads the entry that comes next, which has a name.
func (r *archiveReader) text(name string) ([]byte, error) {
	h, err := r.tar.Next()
	if err != nil {
		return nil, err
	}
	if h.Name != name || h.Size > maxInput {
		return nil, fmt.Errorf("there is %.100q of %d bytes in place of %s", h.Name, h.Size, name)
	}
	return io.ReadAll(r.tar)
}

// step goes to the next entry; at the end it is nil, and the checksum is right.
func (r *archiveReader) step() (err error) {
	r.next, err = r.tar.Next()
	switch {
	case err == nil:
		return r.check(r.next)
	case !errors.Is(err, io.EOF):
		return err
	}
	r.next = nil
	_, err = io.Copy(io.Discard, r.packed)
	return err
}

// check refuses entries that no archive of ours has: files of nodes that the request has
// not, and files with holes, which may be of any length without taking room.
func (r *archiveReader) check(h *tar.Header) error {
	sparse := h.Typeflag == tar.TypeGNUSparse
	for key := range h.PAXRecords {
		sparse = sparse || strings.HasPrefix(key, "GNU.sparse.")
	}
	if sparse {
		return fmt.Errorf("%.100q is a file with holes: archives of sublet save have none", h.Name)
	}
	node := nodeOfEntry(h)
	known := slices.ContainsFunc(r.request.Union().Nodes, func(n vnet.VirtualNode) bool { return n.Name == node })
	if node != "" && !known {
		return fmt.Errorf("%.100q is of a node that the request has not", h.Name)
	}
	return nil
}

// node goes to the next node of the archive; "": there is none.
func (r *archiveReader) node() (string, error) {
	for r.next != nil {
		if name := nodeOfEntry(r.next); name != "" {
			return name, nil
		}
		if err := r.step(); err != nil {
			return "", err
		}
	}
	return "", nil
}

func nodeOfEntry(h *tar.Header) string {
	rest, ok := strings.CutPrefix(h.Name, savedNodes)
	node, _, more := strings.Cut(rest, "/")
	if !ok || !more {
		return ""
	}
	return node
}

// copyNode writes the archive of the node that the reader is at, and goes on to what
// follows it.
func (r *archiveReader) copyNode(node string, w io.Writer) error {
	packed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	to, below := tar.NewWriter(packed), savedNodes+node+"/"
	for r.next != nil && nodeOfEntry(r.next) == node {
		h := *r.next
		h.Name = strings.TrimPrefix(h.Name, below)
		if h.Typeflag == tar.TypeLink {
			h.Linkname = strings.TrimPrefix(h.Linkname, below)
		}
		if err := copyEntry(to, &h, r.tar); err != nil {
			return err
		}
		if err := r.step(); err != nil {
			return err
		}
	}
	return errors.Join(to.Close(), packed.Close())
}
