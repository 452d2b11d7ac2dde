package image

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Registry is where images are fetched from (datapath/image/registry).
type Registry interface {
	// Names lists the registries that are allowed.
	Names() []string
	// Allows says of which registry an image's name is, and whether it is allowed;
	// "": the text is no name.
	Allows(text string) (registry string, allowed bool)
	// Image asks for an image, with documents of at most so many bytes.
	Image(ctx context.Context, text string, platform v1.Platform, most int64) (v1.Image, error)
}

// registry finds an image in a registry that the operator allows.
func (s *Store) registry(ctx context.Context, text string) (*source, error) {
	from, allowed := s.allows(text)
	if !allowed {
		return nil, s.unknown(from)
	}
	image, err := s.Registry.Image(ctx, text, platform, mostDocument)
	var src *source
	if err == nil {
		src, err = s.readRemote(image)
	}
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", from, err)
	}
	return src, nil
}

func (s *Store) allows(text string) (registry string, allowed bool) {
	if s.Registry == nil {
		return "", false
	}
	return s.Registry.Allows(text)
}

func (s *Store) registries() []string {
	if s.Registry == nil {
		return nil
	}
	return s.Registry.Names()
}

// unknown says where images may come from, and how one of a registry could.
func (s *Store) unknown(registry string) error {
	if s.Offered == "" && len(s.registries()) == 0 {
		return errors.New("this host has no images: its operator can offer some (sublet agent --images DIR) or allow a registry (--registry NAME)")
	}
	allowed := "no registry is allowed here"
	if len(s.registries()) > 0 {
		allowed = "the registries that are allowed here are " + strings.Join(s.registries(), ", ")
	}
	var can []string
	if s.Offered != "" {
		allowed = "the operator offers nothing by that name, and " + allowed
		can = append(can, "put it into the directory of images")
	}
	if registry != "" {
		can = append(can, "allow its registry (sublet agent --registry "+registry+")")
	}
	if len(can) == 0 {
		return fmt.Errorf("it is not there: %s", allowed)
	}
	return fmt.Errorf("it is not there: %s. The operator can %s", allowed, strings.Join(can, " or "))
}

// readRemote takes an image of a registry for what its manifest says, without
// asking other places that it names.
func (s *Store) readRemote(image v1.Image) (*source, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	if err := s.checkManifest(manifest); err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	if err := verify(config, manifest.Config.Digest); err != nil {
		return nil, err
	}
	src, err := newSource(config, s.Limits)
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		src.layers = append(src.layers, layer.Compressed)
	}
	src.remote = true
	return src, src.complete()
}

func (s *Store) checkManifest(m *v1.Manifest) error {
	if m.Config.Size > mostDocument {
		return fmt.Errorf("its configuration has %d bytes, more than %d", m.Config.Size, mostDocument)
	}
	for _, d := range append(slices.Clone(m.Layers), m.Config) {
		if err := sound(d.Digest); err != nil {
			return err
		}
		if len(d.URLs) > 0 {
			return errors.New("layers of it are kept elsewhere, which is not allowed")
		}
	}
	return nil
}

// A name of a registry's image stands for the digest that it had first, for as
// long as the store has that: nodes that are made again are the same, also while
// the registry is away.

func (s *Store) namePath(text string) string {
	return s.path("name", fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
}

func (s *Store) remember(text string, digest v1.Hash) error {
	return os.WriteFile(s.namePath(text), []byte(digest.String()), 0o600)
}

// known is the tree of a name, unless the operator offers something by it.
func (s *Store) known(text string, owner Owner) (id string, ok bool) {
	if s.Offered != "" {
		if _, err := os.Lstat(s.Offered); err == nil && s.offers(text) {
			return "", false
		}
	}
	if _, allowed := s.allows(text); !allowed {
		return "", false
	}
	digest, err := os.ReadFile(s.namePath(text))
	if err != nil {
		return "", false
	}
	hash, err := v1.NewHash(string(digest))
	if err != nil {
		return "", false
	}
	id = identity(hash, owner)
	_, err = os.Stat(s.path("tree", id, "config"))
	return id, err == nil
}

// offers says whether the operator's directory has something by a name.
func (s *Store) offers(text string) bool {
	root, err := os.OpenRoot(s.Offered)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(text)
	return !errors.Is(err, fs.ErrNotExist)
}
