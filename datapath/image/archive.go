package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// openArchive opens a tar file that holds an OCI layout, or an image as "docker
// save" writes it. It takes f over.
func openArchive(f *os.File, limits Limits) (*source, error) {
	src, err := readArchive(f, limits)
	if err != nil {
		return nil, errors.Join(plain(err), f.Close())
	}
	src.close = func() { f.Close() }
	return src, nil
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
