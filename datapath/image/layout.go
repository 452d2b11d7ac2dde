package image

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// file is an open file of a layout.
type file interface {
	io.ReadCloser
	Size() int64
}

type sized struct {
	io.ReadCloser
	size int64
}

func (f sized) Size() int64 { return f.size }

// opener opens a file of a layout or an archive by its name.
type opener func(name string) (file, error)

// document reads a small file.
func (open opener) document(name string) ([]byte, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > mostDocument {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", filepath.Base(name), f.Size(), mostDocument)
	}
	return io.ReadAll(io.LimitReader(f, mostDocument))
}

// blob reads a small file by its digest.
func (open opener) blob(digest v1.Hash) ([]byte, error) {
	name, err := blobName(digest)
	if err != nil {
		return nil, err
	}
	text, err := open.document(name)
	if err != nil {
		return nil, err
	}
	return text, verify(text, digest)
}

func blobName(digest v1.Hash) (string, error) {
	if err := sound(digest); err != nil {
		return "", err
	}
	return "blobs/sha256/" + digest.Hex, nil
}

// sound refuses digests that are none: v1 checks those that it parses from
// JSON, but not that there is one.
func sound(digest v1.Hash) error {
	if digest.Algorithm != "sha256" || len(digest.Hex) != 2*sha256.Size {
		return fmt.Errorf("digest %q is none of SHA-256", digest)
	}
	return nil
}

func verify(text []byte, digest v1.Hash) error {
	if sum := fmt.Sprintf("%x", sha256.Sum256(text)); sum != digest.Hex {
		return fmt.Errorf("damaged: a document has digest %.12s instead of %.12s", sum, digest.Hex)
	}
	return nil
}

// readLayout reads an OCI image layout (image specification, image-layout.md).
func readLayout(open opener, limits Limits) (*source, error) {
	text, err := open.document("index.json")
	if err != nil {
		return nil, err
	}
	manifest, err := open.manifest(text, 0)
	if err != nil {
		return nil, err
	}
	config, err := open.blob(manifest.Config.Digest)
	if err != nil {
		return nil, err
	}
	src, err := newSource(config, limits)
	if err != nil {
		return nil, err
	}
	for _, layer := range manifest.Layers {
		name, err := blobName(layer.Digest)
		if err != nil {
			return nil, err
		}
		src.layers = append(src.layers, func() (io.ReadCloser, error) { return open(name) })
	}
	return src, src.complete()
}

// nested is how deep an index may lie in another: more than one level is not in
// use.
const nested = 3

// manifest follows an index to the one image for this host.
func (open opener) manifest(index []byte, depth int) (*v1.Manifest, error) {
	list, err := v1.ParseIndexManifest(bytes.NewReader(index))
	if err != nil {
		return nil, fmt.Errorf("its index: %w", err)
	}
	chosen, err := choose(list.Manifests)
	if err != nil {
		return nil, err
	}
	text, err := open.blob(chosen.Digest)
	if err != nil {
		return nil, err
	}
	if chosen.MediaType.IsIndex() {
		if depth == nested {
			return nil, errors.New("its indexes are nested too deep")
		}
		return open.manifest(text, depth+1)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("its manifest: %w", err)
	}
	return manifest, nil
}

// choose is the image of an index for this host.
func choose(all []v1.Descriptor) (fit v1.Descriptor, err error) {
	found := 0
	for _, d := range all {
		if d.Platform == nil || d.Platform.OS == platform.OS && d.Platform.Architecture == platform.Architecture {
			fit = d
			found++
		}
	}
	if found != 1 {
		return fit, fmt.Errorf("its index has %d images for %s: it must be one", found, platform)
	}
	return fit, nil
}
