package image

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sys/unix"
)

// CheckRegistry says what is wrong with the name of a registry that the operator
// allows, such as docker.io or registry.example:5000.
func CheckRegistry(text string) error {
	if _, err := name.NewRegistry(text, name.StrictValidation); err != nil || strings.Contains(text, "/") {
		return fmt.Errorf("%q is not the name of a registry, such as docker.io or registry.example:5000", text)
	}
	return nil
}

// registry finds an image in a registry that the operator allows: over HTTPS,
// without credentials, for those of the host are not the tenant's.
func (s *Store) registry(ctx context.Context, text string) (*source, error) {
	ref, err := name.ParseReference(text)
	if err != nil {
		return nil, s.unknown("")
	}
	if !s.allows(ref.Context().Registry) {
		return nil, s.unknown(ref.Context().RegistryStr())
	}
	image, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(platform),
		remote.WithAuth(authn.Anonymous), remote.WithTransport(secure{s.transport()}))
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", ref.Context().RegistryStr(), readable(err))
	}
	src, err := s.readRemote(image)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", ref.Context().RegistryStr(), readable(err))
	}
	return src, nil
}

// readable says in a line what a registry, or the way to it, answers: libraries add
// addresses, scopes and pages of HTML.
func readable(err error) error {
	var answer *transport.Error
	var address *net.DNSError
	var unsure *tls.CertificateVerificationError
	switch {
	case errors.As(err, &answer):
		return errors.New(meaning(answer.StatusCode))
	case errors.As(err, &address):
		return errors.New("its name cannot be resolved by this host")
	case errors.As(err, &unsure):
		return errors.New("its certificate is not valid for this host")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("it does not answer in time")
	case errors.Is(err, unix.ECONNREFUSED):
		return errors.New("nothing answers there (connection refused)")
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return errors.New("this host has no way to it")
	}
	return err
}

// meaning of an answer's status (OCI distribution specification, error codes).
func meaning(status int) string {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "it shows no image of that name to everybody: check the name, or have the operator offer it as a file"
	case status == http.StatusNotFound:
		return "it has no image of that name and tag"
	case status == http.StatusTooManyRequests:
		return "it takes no more requests of this host now: wait, or have the operator offer the image as a file"
	case status >= http.StatusInternalServerError:
		return fmt.Sprintf("it fails (status %d): try again later", status)
	}
	return fmt.Sprintf("it refuses (status %d)", status)
}

func (s *Store) transport() http.RoundTripper {
	if s.Transport != nil {
		return s.Transport
	}
	return remote.DefaultTransport
}

// allows says whether images may come from a registry.
func (s *Store) allows(r name.Registry) bool {
	return slices.ContainsFunc(s.Registries, func(allowed string) bool {
		known, err := name.NewRegistry(allowed)
		return err == nil && known.RegistryStr() == r.RegistryStr()
	})
}

// unknown says where images may come from, and how one of a registry could.
func (s *Store) unknown(registry string) error {
	if s.Offered == "" && len(s.Registries) == 0 {
		return errors.New("this host has no images: its operator can offer some (sublet agent --images DIR) or allow a registry (--registry NAME)")
	}
	allowed := "no registry is allowed here"
	if len(s.Registries) > 0 {
		allowed = "the registries that are allowed here are " + strings.Join(s.Registries, ", ")
	}
	var can []string
	if s.Offered != "" {
		allowed = "the operator offers nothing by that name, and " + allowed
		can = append(can, "put it into the directory of images")
	}
	if registry == name.DefaultRegistry {
		registry = "docker.io" // as people write it
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
		src.layers = append(src.layers, func() (io.ReadCloser, error) {
			blob, err := layer.Compressed()
			if err != nil {
				err = readable(err)
			}
			return blob, err
		})
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

// secure asks over HTTPS only, and takes no documents that are too long.
type secure struct{ http.RoundTripper }

func (t secure) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is asked over HTTPS only", r.URL.Host)
	}
	answer, err := t.RoundTripper.RoundTrip(r)
	if err != nil || strings.Contains(r.URL.Path, "/blobs/") || r.Response != nil { // a blob, or where one was sent on to
		return answer, err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, mostDocument), answer.Body}
	return answer, nil
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
	ref, err := name.ParseReference(text)
	if err != nil || !s.allows(ref.Context().Registry) {
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
