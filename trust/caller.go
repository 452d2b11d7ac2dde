package trust

import (
	"errors"
	"strings"

	"sublet/vnet"
)

// Access says who may use a route.
type Access int

const (
	ForEveryone Access = iota // tenants, for what is theirs, and the operator
	ForAgents                 // the host's agent and the operator
	ForOperator
)

// Caller is who asks.
type Caller struct {
	Name     string        // for people
	Tenant   vnet.TenantID // whose leases are theirs by default; "": nobody's
	Account  vnet.TenantID // whose limits count what they do
	UID      uint32
	Operator bool        // may act for any tenant and any host
	Host     vnet.HostID // an agent's, when not the operator
	Token    *Token      // by which they call; nil: none
}

// May says why a caller must not use a route; host is the one it concerns, if any.
func (c Caller) May(a Access, host string) error {
	switch {
	case c.Operator:
		return nil
	case c.Host != "":
		if a == ForAgents && (host == "" || host == string(c.Host)) {
			return nil
		}
		return errors.New("a host's certificate is for its own plan and reports")
	case a != ForEveryone && c.Token != nil:
		return errors.New("only the operator may do this, and not by a token")
	case a != ForEveryone:
		return errors.New("only the operator may do this: root on the server's machine, the user the server runs as, or a certificate whose common name is operator")
	case strings.HasPrefix(c.Name, certificateOf):
		return errors.New("a certificate must have one common name, operator or a host's: this one is of " + c.Name)
	case c.Tenant == "" || c.UID == Nobody && c.Token == nil:
		return errors.New("the user nobody leases nothing: call as a user of this machine")
	}
	return nil
}

// MayTouch says whether a tenant's leases exist for the caller.
func (c Caller) MayTouch(tenant vnet.TenantID) bool {
	return c.Operator || c.Tenant == tenant
}
