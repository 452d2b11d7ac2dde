package vnet

import (
	"fmt"
)

// Identifiers. All of them match namePattern, so they are safe in file names,
// tables, logs and DOT, and '.' and '/' are free to separate them.
type (
	TenantID string // who leases: a local user's name, or one the operator chose
	VNetID   string // a tenant's name for a virtual network
	HostID   string // a substrate node that runs an agent
	VNI      uint32 // 24-bit network identifier of a tunnel
)

// MaxVNI is the largest VNI (RFC 7348).
const MaxVNI = 1<<24 - 1

// MaxName is the longest name, in bytes.
const MaxName = 40

// NamePattern is the regular expression of names, also for schemas.
const NamePattern = `^[A-Za-z0-9]([A-Za-z0-9_-]{0,38}[A-Za-z0-9])?$`

var namePattern = lazy(NamePattern)

// OperatorName is the common name of the operator's certificate. Any other
// common name is a host's, so no host can have it.
const OperatorName = "operator"

// CheckName returns an error unless s can name an object.
func CheckName(s string) error {
	if namePattern().MatchString(s) {
		return nil
	}
	return fmt.Errorf("%q is not a name: use 1 to 40 letters, digits, '-' and '_', beginning and ending with a letter or digit", s)
}

// LeaseID names a lease: one tenant has at most one lease of a name at a time.
type LeaseID struct {
	Tenant  TenantID `json:"tenant"`
	Network VNetID   `json:"network"`
}

// String gives "tenant/network", the form people type.
func (id LeaseID) String() string { return string(id.Tenant) + "/" + string(id.Network) }
