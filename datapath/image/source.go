package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// source is where an image is read from.
type source struct {
	id        v1.Hash // of config
	config    []byte
	diffIDs   []v1.Hash                       // digests of the unpacked layers, from config
	layers    []func() (io.ReadCloser, error) // as many, packed or not
	directory string                          // instead of all that: a root file system as it is
	remote    bool
	close     func()
}

// find is the image of a name: what the operator offers by it, else what a
// registry has.
func (s *Store) find(ctx context.Context, name string) (*source, error) {
	if s.Offered != "" {
		src, err := s.offered(ctx, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return src, err
		}
	}
	src, err := s.registry(ctx, name)
	if err != nil {
		err = absent{err}
	}
	return src, err
}

// offered opens what is below the directory of the operator's. No link leads
// out of it (os.Root).
func (s *Store) offered(ctx context.Context, name string) (*source, error) {
	root, err := os.OpenRoot(s.Offered)
	if err != nil {
		return nil, fmt.Errorf("open the directory of images: %w", plain(err))
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return nil, plain(err)
	}
	switch {
	case info.Mode().IsRegular():
		f, err := root.Open(name)
		if err != nil {
			return nil, plain(err)
		}
		return s.openArchive(ctx, f)
	case info.IsDir():
		dir, err := root.OpenRoot(name)
		if err != nil {
			return nil, plain(err)
		}
		return openDirectory(dir, filepath.Join(s.Offered, name), s.Limits)
	}
	return nil, errors.New("it is neither a file nor a directory")
}

// plain is an error without the paths of the host in it: tenants read it.
func plain(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// openDirectory opens an OCI layout, or any other directory as a root file
// system.
func openDirectory(dir *os.Root, path string, limits Limits) (*source, error) {
	if _, err := dir.Stat("oci-layout"); errors.Is(err, fs.ErrNotExist) {
		return &source{directory: path, close: func() {}}, errors.Join(settled(path), dir.Close())
	}
	src, err := readLayout(func(name string) (file, error) {
		f, err := dir.Open(name)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New(name + " is no file")
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return sized{f, info.Size()}, nil
	}, limits)
	if err != nil {
		return nil, errors.Join(plain(err), dir.Close())
	}
	src.close = func() { dir.Close() }
	return src, nil
}

// settled refuses a directory whose path somebody else than root can change: it is
// used by its path, which could lead to files of the host by then.
func settled(dir string) error {
	at, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for ; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return plain(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		if !info.IsDir() || st.Uid != 0 || info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return errors.New("it is a directory that not only root can change: make an archive of it")
		}
		if at == "/" {
			return nil
		}
	}
}

// newSource reads a configuration.
func newSource(config []byte, limits Limits) (*source, error) {
	file, err := v1.ParseConfigFile(bytes.NewReader(config))
	if err != nil {
		return nil, fmt.Errorf("its configuration: %w", err)
	}
	if err := fits(file, limits); err != nil {
		return nil, err
	}
	for _, id := range file.RootFS.DiffIDs {
		if err := sound(id); err != nil {
			return nil, err
		}
	}
	return &source{
		id:     v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sha256.Sum256(config))},
		config: config, diffIDs: file.RootFS.DiffIDs, close: func() {},
	}, nil
}

func (src *source) complete() error {
	if len(src.layers) != len(src.diffIDs) {
		return fmt.Errorf("its manifest has %d layers, its configuration %d", len(src.layers), len(src.diffIDs))
	}
	return nil
}
