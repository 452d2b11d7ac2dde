package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// dialTimeout bounds reaching an external cluster, and each silent spell of
// one that was reached.
const dialTimeout = 5 * time.Second

// silence bounds how long what was sent to a member of the cluster may stay without
// the acknowledgement of its kernel.
const silence = time.Second

// connect reaches an external cluster.
func connect(config Config) (*clientv3.Client, error) {
	c := clientv3.Config{
		Endpoints:            config.Endpoints,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    dialTimeout,
		DialKeepAliveTimeout: silence,
		MaxCallSendMsgSize:   maxRequest,
		Logger:               zap.NewNop(), // its errors are returned as well
	}
	var err error
	if c.TLS, err = config.towardsEtcd(); err != nil {
		return nil, err
	}
	client, err := clientv3.New(c)
	if err != nil {
		return nil, fmt.Errorf("reach etcd at %s: %w", strings.Join(config.Endpoints, ","), err)
	}
	return client, nil
}

// towardsEtcd is TLS towards an external cluster, by files that are read anew for each
// connection, the authority's excepted; nil: what the endpoints say.
func (c *Config) towardsEtcd() (*tls.Config, error) {
	if c.CA == "" && c.Cert == "" {
		return nil, nil
	}
	info := transport.TLSInfo{CertFile: c.Cert, KeyFile: c.Key, TrustedCAFile: c.CA}
	config, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: read the certificates for etcd at %s: %w", ErrUntrusted, strings.Join(c.Endpoints, ","), err)
	}
	return config, nil
}

// ErrUntrusted: this server and an external cluster do not take each other's certificates.
var ErrUntrusted = errors.New("no TLS with etcd")

// untrusted says why no TLS can be spoken with any of the endpoints, of which the client
// says only that it waited in vain; nil: that is not the reason.
func (c *Config) untrusted(ctx context.Context) (why error) {
	config, err := c.towardsEtcd()
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: silence}
	for _, endpoint := range c.Endpoints {
		_, at, stated := strings.Cut(endpoint, "://")
		if !stated && config != nil {
			at = endpoint
		} else if !strings.HasPrefix(endpoint, "https://") {
			return nil // no TLS is wanted there
		}
		// Any answer will do: it comes after both sides have looked at certificates.
		answer, err := client.Get("https://" + at + "/version")
		if err == nil {
			answer.Body.Close()
			return nil
		}
		if why = c.ofTLS(at, err); why == nil {
			return nil
		}
	}
	return why
}

// ofTLS puts an error of TLS into words; nil: it is none.
func (c *Config) ofTLS(at string, err error) error {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var ended x509.CertificateInvalidError
	var record tls.RecordHeaderError
	text := err.Error()
	switch {
	case errors.As(err, &authority):
		return fmt.Errorf("%w at %s: its certificate is not signed by the authority of --etcd-ca", ErrUntrusted, at)
	case errors.As(err, &name), errors.As(err, &ended):
		return fmt.Errorf("%w at %s: %w", ErrUntrusted, at, err)
	case errors.As(err, &record), strings.Contains(text, "HTTP response to HTTPS client"):
		return fmt.Errorf("%w at %s: it speaks none: leave https:// and --etcd-ca out, or have it speak TLS", ErrUntrusted, at)
	case strings.Contains(text, "remote error: tls: ") && c.Cert == "":
		return fmt.Errorf("%w at %s: it asks for a certificate: state --etcd-cert and --etcd-key", ErrUntrusted, at)
	case strings.Contains(text, "remote error: tls: "):
		return fmt.Errorf("%w at %s: it does not take the certificate of --etcd-cert: it must be signed by etcd's --trusted-ca-file, and valid now", ErrUntrusted, at)
	}
	return nil
}
