package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"sublet/vnet"
)

// Scopes of tokens.
const (
	ScopeRead  = "read"  // sees, and asks what would be
	ScopeWrite = "write" // does all that its tenant may
)

// Token is what a server knows of a token: not the token itself.
type Token struct {
	ID       string        `json:"id"`
	Name     string        `json:"name,omitempty"` // for people
	Tenant   vnet.TenantID `json:"tenant"`         // whose calls it makes
	Scope    string        `json:"scope"`
	Networks []vnet.VNetID `json:"networks,omitempty"` // no others; none: all
	Created  time.Time     `json:"created"`
	Expires  time.Time     `json:"expires"`
}

// storedToken has the hash of the secret half. The secret is 256 random bits, so
// that a fast hash is as good as a slow one.
type storedToken struct {
	Token
	Hash string `json:"sha256"`
}

// tokenPrefix begins tokens, so that programs which look for leaked secrets find them.
const tokenPrefix = "slt_"

// Bounds of tokens.
const (
	MostTokens = 64 // of a tenant
	LongestFor = 366 * 24 * time.Hour
	mostNets   = 64
)

// check says what is wrong with a token that is asked for.
func (t *Token) check(now time.Time) error {
	field := func(path, problem string) error { return &vnet.FieldError{Path: path, Problem: problem} }
	switch length := t.Expires.Sub(now); {
	case t.Scope != ScopeRead && t.Scope != ScopeWrite:
		return field("scope", fmt.Sprintf("%q is neither read nor write", t.Scope))
	case length <= 0 || length > LongestFor:
		return field("for", "state more than 0s and at most 366d")
	case t.Name != "" && vnet.CheckName(t.Name) != nil:
		return field("name", vnet.CheckName(t.Name).Error())
	case vnet.CheckName(string(t.Tenant)) != nil:
		return field("tenant", vnet.CheckName(string(t.Tenant)).Error())
	case len(t.Networks) > mostNets:
		return field("networks", fmt.Sprintf("a token is for at most %d networks, or for all", mostNets))
	}
	for i, n := range t.Networks {
		if err := vnet.CheckName(string(n)); err != nil {
			return field(fmt.Sprintf("networks[%d]", i), err.Error())
		}
	}
	return nil
}

// newToken draws a token's two halves.
func newToken(t Token) (text string, stored storedToken) {
	id, secret := make([]byte, 6), make([]byte, 32)
	rand.Read(id) // never fails: crypto/rand
	rand.Read(secret)
	t.ID = hex.EncodeToString(id)
	text = tokenPrefix + t.ID + "_" + base64.RawURLEncoding.EncodeToString(secret)
	return text, storedToken{t, hashOf(text)}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// good says whether a text is this token, in a time that does not depend on it.
func (s storedToken) good(text string, now time.Time) bool {
	return subtle.ConstantTimeCompare([]byte(hashOf(text)), []byte(s.Hash)) == 1 && now.Before(s.Expires)
}

// idIn is the public half of what may be a token.
func idIn(text string) string {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	id, _, found := strings.Cut(rest, "_")
	if !ok || !found {
		return ""
	}
	return id
}

// Caller is who calls with a token: its tenant, and never the operator.
func (t Token) Caller() Caller {
	uid, ok := uidOf(t.Tenant)
	if !ok {
		uid = Nobody
	}
	return Caller{Name: string(t.Tenant) + " (token " + t.ID + ")", Tenant: t.Tenant, Account: AccountOf(t.Tenant), UID: uid, Token: &t}
}

// Covers says whether a token is for a network.
func (t *Token) Covers(network vnet.VNetID) bool {
	return t == nil || len(t.Networks) == 0 || slices.Contains(t.Networks, network)
}
