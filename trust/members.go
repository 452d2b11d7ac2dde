package trust

import (
	"os/user"
	"strconv"
	"strings"

	"sublet/vnet"
)

// AccountOf is whose limits count what a tenant has: for a subordinate user its
// owner's.
func AccountOf(t vnet.TenantID) vnet.TenantID {
	if !isNumbered(string(t)) {
		return t
	}
	uid, err := strconv.ParseUint(strings.TrimPrefix(string(t), numbered), 10, 32)
	if err != nil {
		return t
	}
	if r, ok := subordinates.find(uint32(uid)); ok {
		return r.account
	}
	return t
}

// MemberOf asks the machine who a tenant is. What a subordinate user has counts
// as its owner's.
func MemberOf(t vnet.TenantID) vnet.Member {
	uid, ok := uidOf(t)
	if !ok {
		return vnet.Member{Name: t, UID: Nobody}
	}
	if r, ok := subordinates.find(uid); ok {
		uid, t = uint32(r.owner), r.account
	}
	return vnet.Member{Name: t, UID: uid, Groups: groupsOf(uid)}
}

// groupsOf names the machine's groups that a user is in.
func groupsOf(uid uint32) (names []string) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil
	}
	for _, id := range ids {
		if g, err := user.LookupGroupId(id); err == nil {
			names = append(names, g.Name)
		}
	}
	return names
}
