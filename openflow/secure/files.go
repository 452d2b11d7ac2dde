package secure

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Files are of one end of connections, PEM: its certificate and key, and the
// certificates of authorities, one of which has signed the other end's.
type Files struct {
	Certificate, Key, CA string
}

// Config reads them. The other end needs a certificate, whoever connects to whom.
func (f Files) Config() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and key %s: %w", f.Certificate, f.Key, err)
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate in it", f.CA)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// AnyNameConfig is Config with AnyName.
func (f Files) AnyNameConfig() (*tls.Config, error) {
	c, err := f.Config()
	if err == nil {
		AnyName(c)
	}
	return c, err
}
