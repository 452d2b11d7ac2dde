package image

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openArchive opens a tar file that holds an OCI layout, or an image as "docker
// save" writes it, packed by gzip or zstd or not at all. It takes f over.
func (s *Store) openArchive(ctx context.Context, f *os.File) (*source, error) {
	f, err := s.unpackedFile(ctx, f)
	if err != nil {
		return nil, err
	}
	src, err := readArchive(f, s.Limits)
	if err != nil {
		return nil, errors.Join(plain(err), f.Close())
	}
	src.close = func() { f.Close() }
	return src, nil
}

// unpackedFile is f, or what is packed in it: a file without a name, since layers
// are read in place. It takes f over.
func (s *Store) unpackedFile(ctx context.Context, f *os.File) (*os.File, error) {
	stream, done, err := expand(f)
	if err == nil {
		defer done()
		if _, isPlain := stream.(*bufio.Reader); isPlain {
			_, err = f.Seek(0, io.SeekStart)
			if err == nil {
				return f, nil
			}
		}
	}
	defer f.Close()
	if err != nil {
		return nil, fmt.Errorf("it is no archive of an image: %w", plain(err))
	}
	whole, err := os.OpenFile(s.path("half"), unix.O_TMPFILE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, plain(err)
	}
	b := newBudget(ctx, int(whole.Fd()), s.Limits)
	b.claim = func(int64) error { return nil } // it is gone before the image counts
	if _, err := io.Copy(whole, bounded{stream, b, &b.stream}); err != nil {
		return nil, errors.Join(fmt.Errorf("unpack the archive: %w", plain(err)), whole.Close())
	}
	if _, err := whole.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, whole.Close())
	}
	return whole, nil
}

func readArchive(f *os.File, limits Limits) (*source, error) {
	open, err := listArchive(f)
	if err != nil {
		return nil, err
	}
	src, err := readLayout(open, limits)
	if errors.Is(err, fs.ErrNotExist) {
		return readDocker(open, limits)
	}
	return src, err
}

// mostFiles bounds the files of an archive: one for each layer and a few more.
const mostFiles = 4096

// listArchive finds the files of a tar archive. Their content is read in place:
// after Next, a reader stands where the content of a file begins, unless that is
// sparse.
func listArchive(f *os.File) (opener, error) {
	files := make(archive)
	reader := tar.NewReader(f)
	for range mostFiles {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files.open, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is no archive of an image: %w", err)
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeReg && !sparse(header) {
			files[strings.TrimPrefix(header.Name, "./")] = io.NewSectionReader(f, at, header.Size)
		}
	}
	return nil, fmt.Errorf("it is no archive of an image: it has more than %d files", mostFiles)
}

// archive holds the content of files by their names.
type archive map[string]*io.SectionReader

func (a archive) open(name string) (file, error) {
	content, ok := a[name]
	if !ok {
		return nil, fmt.Errorf("%q: %w", name, fs.ErrNotExist)
	}
	return sized{io.NopCloser(io.NewSectionReader(content, 0, content.Size())), content.Size()}, nil
}

func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// readDocker reads what "docker save" and "podman save" write.
func readDocker(open opener, limits Limits) (*source, error) {
	text, err := open.document("manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it is no archive of an image: it has neither index.json nor manifest.json")
	}
	if err != nil {
		return nil, err
	}
	var images []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(text, &images); err != nil {
		return nil, fmt.Errorf("its manifest.json: %w", err)
	}
	if len(images) != 1 {
		return nil, fmt.Errorf("it has %d images: it must be one", len(images))
	}
	config, err := open.document(images[0].Config)
	if err != nil {
		return nil, err
	}
	src, err := newSource(config, limits)
	if err != nil {
		return nil, err
	}
	for _, name := range images[0].Layers {
		src.layers = append(src.layers, func() (io.ReadCloser, error) { return open(name) })
	}
	return src, src.complete()
}
