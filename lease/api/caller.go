package api

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"strings"

	"sublet/vnet"
)

// nobody is the user that root inside a node stands for when its tenant has
// no local user, and what the kernel calls users it cannot name to us.
const nobody = 65534

// Caller is who asks.
type Caller struct {
	Name     string        // for people
	Tenant   vnet.TenantID // whose leases are his by default; "": nobody's
	Account  vnet.TenantID // whose limits count what he does
	UID      uint32
	Operator bool        // may act for any tenant and any host
	Host     vnet.HostID // an agent's, when not the operator
}

type callerKey struct{}

// callerOf says who sent a request: by the certificate shown, or by what the
// kernel said of the connection.
func callerOf(r *http.Request) Caller {
	if r.TLS != nil {
		return remoteCaller(r.TLS)
	}
	c, _ := r.Context().Value(callerKey{}).(Caller)
	return c
}

// withCaller finds out, once per connection, who is at the other end of a socket.
func withCaller(ctx context.Context, conn net.Conn) context.Context {
	if conn, ok := conn.(*peerConn); ok {
		return context.WithValue(ctx, callerKey{}, localCaller(conn.uid))
	}
	return ctx
}

// localCaller is a user of this machine: the tenant of his name. Root and the
// server's own user are the operator.
func localCaller(uid uint32) Caller {
	name := userName(uid)
	return Caller{
		Name: name, Tenant: vnet.TenantID(name), UID: uid,
		Account:  accountOf(vnet.TenantID(name)),
		Operator: isOperator(uid),
	}
}

func isOperator(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }

// TenantOf is the tenant that a local user is.
func TenantOf(uid uint32) vnet.TenantID { return localCaller(uid).Tenant }

// userName is a user's name if it can name a tenant, else uid1234.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil && vnet.CheckName(u.Username) == nil && !isNumbered(u.Username) {
		return u.Username
	}
	return numbered + number
}

// numbered begins the names of users whom the machine cannot name. A user who
// has such a name is not called by it: it is another's.
const numbered = "uid"

func isNumbered(name string) bool {
	_, err := strconv.ParseUint(strings.TrimPrefix(name, numbered), 10, 64)
	return strings.HasPrefix(name, numbered) && err == nil
}

// certificateOf begins the names of callers with certificates; no user has a
// colon in his.
const certificateOf = "cert:"

// remoteCaller is the operator or a host's agent, by his certificate, which
// the handshake has verified.
func remoteCaller(state *tls.ConnectionState) Caller {
	if len(state.VerifiedChains) == 0 {
		return Caller{}
	}
	subject := state.PeerCertificates[0].Subject
	name := subject.CommonName
	c := Caller{Name: certificateOf + name, UID: nobody}
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

// OnlyOperator is a handler for agents: over TLS it admits the server, whose
// certificate is the operator's, and nobody else.
func OnlyOperator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || !remoteCaller(r.TLS).Operator {
			http.Error(w, "this agent takes orders from its server only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// may checks a route's access; host is the one it concerns, if any.
func (c Caller) may(a access, host string) error {
	switch {
	case c.Operator:
		return nil
	case c.Host != "":
		if a == forAgents && (host == "" || host == string(c.Host)) {
			return nil
		}
		return forbidden("a host's certificate is for its own plan and reports")
	case a != forEveryone:
		return forbidden("only the operator may do this: root on the server's machine, the user the server runs as, or a certificate whose common name is operator")
	case strings.HasPrefix(c.Name, certificateOf):
		return forbidden("a certificate must have one common name, operator or a host's: this one is of " + c.Name)
	case c.Tenant == "" || c.UID == nobody:
		return forbidden("the user nobody leases nothing: call as a user of this machine")
	}
	return nil
}

// mayTouch says whether a tenant's leases exist for the caller.
func (c Caller) mayTouch(tenant vnet.TenantID) bool {
	return c.Operator || c.Tenant == tenant
}

// owner is the user that root inside a tenant's nodes stands for.
func (c Caller) owner(tenant vnet.TenantID) uint32 {
	if c.Tenant == tenant {
		return c.UID
	}
	if uid, ok := uidOf(tenant); ok {
		return uid
	}
	return nobody
}

// uidOf is the user of this machine whose name as a tenant that is.
func uidOf(tenant vnet.TenantID) (uint32, bool) {
	number := strings.TrimPrefix(string(tenant), numbered)
	if u, err := user.Lookup(string(tenant)); err == nil && !isNumbered(string(tenant)) {
		number = u.Uid
	}
	uid, err := strconv.ParseUint(number, 10, 32)
	return uint32(uid), err == nil && userName(uint32(uid)) == string(tenant)
}
