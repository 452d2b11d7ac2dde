package trust

import (
	"os"
	"os/user"
	"strconv"
	"strings"

	"sublet/vnet"
)

// Nobody is the user that root inside a node stands for when its tenant has
// no local user, and what the kernel calls users it cannot name to us.
const Nobody = 65534

// localCaller is a user of this machine: the tenant of their name. Root and the
// server's own user are the operator.
func localCaller(uid uint32) Caller {
	name := userName(uid)
	return Caller{
		Name: name, Tenant: vnet.TenantID(name), UID: uid,
		Account:  AccountOf(vnet.TenantID(name)),
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

// Owner is the user that root inside a tenant's nodes stands for.
func (c Caller) Owner(tenant vnet.TenantID) uint32 {
	if c.Tenant == tenant {
		return c.UID
	}
	if uid, ok := uidOf(tenant); ok {
		return uid
	}
	return Nobody
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
