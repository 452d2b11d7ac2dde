// Package registry fetches images from registries that the operator allows. It stands
// apart from datapath/image because its libraries are most of what a program with that
// has in memory, and the programs that run in nodes fetch nothing.
package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
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

// Check says what is wrong with the name of a registry that the operator allows, such
// as docker.io or registry.example:5000.
func Check(text string) error {
	if _, err := name.NewRegistry(text, name.StrictValidation); err != nil || strings.Contains(text, "/") {
		return fmt.Errorf("%q is not the name of a registry, such as docker.io or registry.example:5000", text)
	}
	return nil
}

// Registries are those from which images may be fetched.
type Registries struct {
	Allowed []string // such as docker.io
	// Transport asks them; nil: remote.DefaultTransport.
	Transport http.RoundTripper
}

// Names are those of the registries, as the operator wrote them.
func (r Registries) Names() []string { return r.Allowed }

// Allows says of which registry an image's name is, and whether it is allowed; "": the
// text is no name.
func (r Registries) Allows(text string) (registry string, allowed bool) {
	ref, err := name.ParseReference(text)
	if err != nil {
		return "", false
	}
	of := ref.Context().RegistryStr()
	allowed = slices.ContainsFunc(r.Allowed, func(one string) bool {
		known, err := name.NewRegistry(one)
		return err == nil && known.RegistryStr() == of
	})
	if of == name.DefaultRegistry {
		of = "docker.io" // as people write it
	}
	return of, allowed
}

// Image asks a registry for an image: over HTTPS, without credentials, for those of the
// host are not the tenant's. Documents are at most so long.
func (r Registries) Image(ctx context.Context, text string, platform v1.Platform, most int64) (v1.Image, error) {
	ref, err := name.ParseReference(text)
	if err != nil {
		return nil, err
	}
	found, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(platform),
		remote.WithAuth(authn.Anonymous), remote.WithTransport(secure{r.transport(), most}))
	return plainly{found}, readable(err)
}

func (r Registries) transport() http.RoundTripper {
	if r.Transport != nil {
		return r.Transport
	}
	return remote.DefaultTransport
}

// plainly is an image whose errors are readable.
type plainly struct{ v1.Image }

func (p plainly) Manifest() (*v1.Manifest, error) {
	m, err := p.Image.Manifest()
	return m, readable(err)
}

func (p plainly) RawConfigFile() ([]byte, error) {
	text, err := p.Image.RawConfigFile()
	return text, readable(err)
}

func (p plainly) Layers() ([]v1.Layer, error) {
	list, err := p.Image.Layers()
	for i, l := range list {
		list[i] = layer{l}
	}
	return list, readable(err)
}

type layer struct{ v1.Layer }

func (l layer) Compressed() (io.ReadCloser, error) {
	blob, err := l.Layer.Compressed()
	return blob, readable(err)
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

// secure asks over HTTPS only, and takes no documents that are too long.
type secure struct {
	http.RoundTripper
	most int64
}

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
	}{io.LimitReader(answer.Body, t.most), answer.Body}
	return answer, nil
}
