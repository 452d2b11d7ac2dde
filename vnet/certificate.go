package vnet

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
)

// SwitchTLS is what a switch of kind openflow shows to controllers over TLS, and
// whom it believes: PEM texts. The key is the tenant's secret: nothing prints it.
type SwitchTLS struct {
	Key         string `json:"key"`
	Certificate string `json:"certificate"` // those that lead to an authority behind it
	CA          string `json:"ca"`          // authorities of controllers' certificates
}

// String says nothing of it, wherever it is printed.
func (t *SwitchTLS) String() string { return "(not shown)" }

// check says what is wrong with a text without a word of it.
func (t *SwitchTLS) check(path string) error {
	for _, text := range []struct{ field, text string }{{".key", t.Key}, {".certificate", t.Certificate}, {".ca", t.CA}} {
		if len(text.text) > MaxFile {
			return fieldf(path+text.field, "has %d bytes, more than %d: keep what the switch needs", len(text.text), MaxFile)
		}
	}
	key, err := privateKey(t.Key)
	if err != nil {
		return fieldf(path+".key", "%v", err)
	}
	own, err := certificates(t.Certificate)
	if err != nil {
		return fieldf(path+".certificate", "%v", err)
	}
	if public, ok := own[0].PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(key.Public()) {
		return fieldf(path+".certificate", "is not that of the key: state both of one pair")
	}
	if _, err := certificates(t.CA); err != nil {
		return fieldf(path+".ca", "%v", err)
	}
	return nil
}

// privateKey reads the first block that is a key.
func privateKey(text string) (crypto.Signer, error) {
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("holds no private key in PEM: state one (-----BEGIN PRIVATE KEY-----)")
		}
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return nil, errors.New("is encrypted, and nobody is there to be asked: state it without a passphrase")
		}
		if signer, ok := readKey(block.Bytes).(crypto.Signer); ok {
			return signer, nil
		}
		return nil, errors.New("is a key of an unknown form: state one of RSA, ECDSA or Ed25519")
	}
}

// readKey reads a key of any form that PEM files have; nil: none.
func readKey(der []byte) any {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return key
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key
	}
	return nil
}

func certificates(text string) (list []*x509.Certificate, err error) {
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("holds a certificate that cannot be read: make it anew")
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("holds no certificate in PEM: state one (-----BEGIN CERTIFICATE-----)")
	}
	return list, nil
}
