package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// ListenTLS opens a TCP port for agents and operators elsewhere. Certificates
// of both sides are signed by ca; TLS 1.3 only, HTTP/1.1 only (sessions
// upgrade the connection). Files that change hold for connections from then on.
func ListenTLS(address, certFile, keyFile, caFile string) (net.Listener, error) {
	return ListenTLSFor(func() bool { return false }, address, certFile, keyFile, caFile)
}

// ListenTLSFor is ListenTLS where callers may have no certificate while tokens
// says so; one that is shown is verified.
func ListenTLSFor(tokens func() bool, address, certFile, keyFile, caFile string) (net.Listener, error) {
	config, err := TLSConfig(certFile, keyFile, caFile)
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	files := certificates{cert: certFile, key: keyFile, ca: caFile, config: config}
	config = config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := files.current()
		if tokens() {
			current = current.Clone()
			current.ClientAuth = tls.VerifyClientCertIfGiven
		}
		return current, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the API: %w", err)
	}
	return tls.NewListener(newUnproven(l), config), nil
}

// certificates is a configuration whose files may change.
type certificates struct {
	cert, key, ca string

	mu     sync.Mutex
	config *tls.Config
	looked time.Time
	seen   string // the versions that were read
}

// current reads the files again if they are others than the last ones. What
// does not go together, as while they are written, changes nothing.
func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < time.Second {
		return c.config
	}
	c.looked = time.Now()
	seen := ""
	for _, name := range []string{c.cert, c.key, c.ca} {
		if status, err := os.Stat(name); err == nil {
			seen += fmt.Sprint(status.ModTime().UnixNano(), " ", status.Size(), " ")
		}
	}
	if seen == c.seen {
		return c.config
	}
	if config, err := TLSConfig(c.cert, c.key, c.ca); err == nil {
		config.ClientAuth = c.config.ClientAuth
		c.config, c.seen = config, seen
	}
	return c.config
}

// TLSConfig reads a configuration good for both sides of a connection whose
// certificates are signed by ca.
func TLSConfig(certFile, keyFile, caFile string) (*tls.Config, error) {
	if certFile == "" || keyFile == "" || caFile == "" {
		return nil, errors.New("TLS needs a certificate, its key, and the certificate of the authority that signed both sides: state --cert, --key and --ca")
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s and key %s: %w", certFile, keyFile, err)
	}
	pool, err := authority(caFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, RootCAs: pool,
	}, nil
}

// BearerTLSConfig is for who calls a server by a token, without a certificate.
func BearerTLSConfig(caFile string) (*tls.Config, error) {
	if caFile == "" {
		return nil, errors.New("TLS needs the certificate of the authority that signed the server's: state --ca")
	}
	pool, err := authority(caFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, RootCAs: pool}, nil
}

func authority(caFile string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the authority's certificate: %s holds none", caFile)
	}
	return pool, nil
}
