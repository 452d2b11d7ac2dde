package trust

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
)

// ServerUnit is the organizational unit in the certificate of a server that may
// state to another one who asked it. The common name alone does not let the
// operator's other certificates speak for tenants.
const ServerUnit = "sublet-server"

// statedHeader holds who asked a server that passes a request on.
const statedHeader = "Sublet-Asked-By"

type statedKey struct{}

// stated is what a server says of whom it passes on.
type stated struct {
	Caller
	From string // address of the caller's connection
}

// IsServer says that the other end of a connection showed a server's certificate.
func IsServer(state *tls.ConnectionState) bool {
	return state != nil && remoteCaller(state).Operator &&
		slices.Contains(state.PeerCertificates[0].Subject.OrganizationalUnit, ServerUnit)
}

// TowardsServers is a configuration for connections to servers: whoever else has a
// certificate of the authority is refused in the handshake.
func TowardsServers(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if !IsServer(&state) {
			return errors.New("its certificate is no server's: issue it for operator, organizational unit " + ServerUnit)
		}
		return nil
	}
	return config
}

// State writes into a request to another server who asked this one; what a caller
// wrote there is replaced.
func State(to http.Header, r *http.Request) error {
	text, err := json.Marshal(stated{CallerOf(r), r.RemoteAddr})
	if err == nil {
		to.Set(statedHeader, base64.StdEncoding.EncodeToString(text))
	}
	return err
}

// Stated is the request as the server that passed it on received it, and whether
// one did. Only a server's certificate makes the statement count; any other
// caller's is taken away.
func Stated(r *http.Request) (*http.Request, bool) {
	text := r.Header.Get(statedHeader)
	r.Header.Del(statedHeader) // all of them: the first may be empty
	if text == "" || !IsServer(r.TLS) {
		return r, false
	}
	var s stated
	raw, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		s.Caller = Caller{} // nobody, who may do nothing
	}
	r = r.WithContext(context.WithValue(r.Context(), statedKey{}, s.Caller))
	r.RemoteAddr = s.From
	return r, true
}

// WasStated says that another server passed a request on.
func WasStated(r *http.Request) bool {
	_, ok := r.Context().Value(statedKey{}).(Caller)
	return ok
}
