package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
)

// layers unpacks an image's layers into a new directory, lowest first.
func (s *Store) layers(ctx context.Context, src *source, id, root string, owner Owner) error {
	t, err := newTree(root, owner)
	if err != nil {
		return err
	}
	defer t.close()
	budget := newBudget(ctx, t.root, s.Limits)
	budget.claim = func(bytes int64) error { return s.claim(id, bytes) }
	for i, open := range src.layers {
		if err := s.layer(t, open, src.diffIDs[i], budget); err != nil {
			return fmt.Errorf("layer %d of %d: %w", i+1, len(src.layers), err)
		}
	}
	return budget.claim(budget.taken())
}

// layer opens one and unpacks it.
func (s *Store) layer(t *tree, open func() (io.ReadCloser, error), digest v1.Hash, b *budget) error {
	packed, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it lacks a file")
	}
	if err != nil {
		return plain(err)
	}
	defer packed.Close()
	return s.apart(t, packed, digest, b)
}

// layer unpacks one and holds it against its digest. All of the stream is read:
// the digest is of what follows the last entry, too.
func layer(t *tree, packed io.Reader, digest v1.Hash, b *budget) error {
	stream, done, err := expand(packed)
	if err != nil {
		return err
	}
	defer done()
	sum := sha256.New()
	content := io.TeeReader(bounded{stream, b, &b.stream}, sum)
	if err := t.apply(content, b); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != digest.Hex {
		return fmt.Errorf("damaged: it has digest %.12s instead of %.12s", got, digest.Hex)
	}
	return nil
}

// zstdWindow bounds the memory of a decoder: zstd itself makes no larger windows
// without --long, nor do builders of images.
const zstdWindow = 128 << 20

// expand unpacks a stream by what it begins with (RFC 1952, RFC 8878).
func expand(packed io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReaderSize(packed, 1<<16)
	begin, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(buffered)
		return r, func() {}, err
	case bytes.Equal(begin, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		r, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	}
	return buffered, func() {}, nil
}

// apply changes a tree by what a layer says (OCI image specification, layer.md).
func (t *tree) apply(content io.Reader, b *budget) error {
	t.own = make(map[uint64]bool)
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("its archive: %w", err)
		}
		if err := b.entry(); err != nil {
			return err
		}
		if err := t.entry(header, bounded{reader, b, &b.files}); err != nil {
			return fmt.Errorf("entry %.200q: %w", header.Name, err)
		}
	}
}
