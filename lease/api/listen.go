package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// ListenTLS opens a TCP port for agents and operators elsewhere. Certificates
// of both sides are signed by ca; TLS 1.3 only, HTTP/1.1 only (sessions
// upgrade the connection).
func ListenTLS(address, certFile, keyFile, caFile string) (net.Listener, error) {
	config, err := TLSConfig(certFile, keyFile, caFile)
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the API: %w", err)
	}
	return tls.NewListener(newUnproven(l), config), nil
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
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the authority's certificate: %s holds none", caFile)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, RootCAs: pool,
	}, nil
}
