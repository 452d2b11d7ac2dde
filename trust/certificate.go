package trust

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/asn1"

	"sublet/vnet"
)

// certificateOf begins the names of callers with certificates; no user has a
// colon in theirs.
const certificateOf = "cert:"

// remoteCaller is the operator or a host's agent, by their certificate, which
// the handshake has verified.
func remoteCaller(state *tls.ConnectionState) Caller {
	if len(state.VerifiedChains) == 0 {
		return Caller{}
	}
	return callerNamed(state.PeerCertificates[0].Subject)
}

// callerNamed is whom a verified certificate's subject stands for.
func callerNamed(subject pkix.Name) Caller {
	name := subject.CommonName
	c := Caller{Name: certificateOf + name, UID: Nobody}
	switch {
	case commonNames(subject) != 1: // which of them counts is anybody's guess
		c.Name = certificateOf + subject.String()
	case name == vnet.OperatorName:
		c.Operator = true
	case vnet.CheckName(name) == nil:
		c.Host = vnet.HostID(name)
	}
	return c
}

// commonNames counts a certificate's; crypto/x509 keeps the last.
func commonNames(subject pkix.Name) (n int) {
	for _, attribute := range subject.Names {
		if attribute.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 3}) {
			n++
		}
	}
	return n
}
