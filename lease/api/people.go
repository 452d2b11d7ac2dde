package api

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"sublet/vnet"
)

// people are the tenants as the operator's policy tells them apart.
type people struct {
	mu    sync.Mutex
	known map[vnet.TenantID]person
}

type person struct {
	member vnet.Member
	asked  time.Time
}

// How often the machine is asked who somebody is: who asks for something, and
// the others, whose groups count for him.
const (
	callerFor = 30 * time.Second
	othersFor = 5 * time.Minute
)

// learn asks the machine about tenants it was not asked about for a time. It
// reads files: not under the server's lock.
func (p *people) learn(every time.Duration, tenants ...vnet.TenantID) {
	now := time.Now()
	for _, t := range tenants {
		p.mu.Lock()
		fresh := now.Sub(p.known[t].asked) < every
		p.mu.Unlock()
		if fresh {
			continue
		}
		m := lookUp(t)
		p.mu.Lock()
		if len(p.known) >= maxTenants {
			clear(p.known)
		}
		p.known[t] = person{m, now}
		p.mu.Unlock()
	}
}

// member is what was learnt of a tenant.
func (p *people) member(t vnet.TenantID) vnet.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.known[t]; ok {
		return known.member
	}
	return vnet.Member{Name: accountOf(t), UID: nobody}
}

// accountOf is whose limits count what a tenant has: for a subordinate user its
// owner's.
func accountOf(t vnet.TenantID) vnet.TenantID {
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

// lookUp asks the machine who a tenant is. What a subordinate user has counts
// as its owner's.
func lookUp(t vnet.TenantID) vnet.Member {
	uid, ok := uidOf(t)
	if !ok {
		return vnet.Member{Name: t, UID: nobody}
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

// subordinates are the users that others may use in user namespaces: whoever
// has 65,536 of them has not 65,536 quotas.
var subordinates = subIDs{path: "/etc/subuid"}

// subIDs is a file of subordinate users (subuid(5)), read again when it changes.
type subIDs struct {
	path   string
	mu     sync.Mutex
	read   time.Time // last looked at
	status os.FileInfo
	ranges []subRange
}

// subRange is of users who belong to an owner. The operator's subordinates have
// not his rights: they belong to the first of their range.
type subRange struct {
	first, count, owner uint64
	account             vnet.TenantID // the owner's name
}

// owner is the user to whom a subordinate one belongs; any other is his own.
func (s *subIDs) owner(uid uint32) uint32 {
	if r, ok := s.find(uid); ok {
		return uint32(r.owner)
	}
	return uid
}

// find is the range in which a user is somebody else's.
func (s *subIDs) find(uid uint32) (subRange, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	for _, r := range s.ranges {
		if n := uint64(uid); n >= r.first && n-r.first < r.count && r.owner != n {
			return r, true
		}
	}
	return subRange{}, false
}

// refresh reads the file if it is another than the one that was read.
func (s *subIDs) refresh() {
	if now := time.Now(); now.Sub(s.read) < time.Second {
		return
	} else {
		s.read = now
	}
	status, err := os.Stat(s.path)
	if err != nil {
		s.status, s.ranges = nil, nil
		return
	}
	if s.status != nil && os.SameFile(s.status, status) && s.status.ModTime().Equal(status.ModTime()) && s.status.Size() == status.Size() {
		return
	}
	if text, err := os.ReadFile(s.path); err == nil {
		s.status, s.ranges = status, parseSubIDs(string(text))
	}
}

// parseSubIDs reads lines of OWNER:FIRST:COUNT and leaves out what is none.
func parseSubIDs(text string) (ranges []subRange) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		owner, err := strconv.ParseUint(fields[0], 10, 32)
		if u, found := user.Lookup(fields[0]); found == nil {
			owner, err = strconv.ParseUint(u.Uid, 10, 32)
		}
		first, err1 := strconv.ParseUint(fields[1], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err != nil || err1 != nil || err2 != nil {
			continue
		}
		if isOperator(uint32(owner)) {
			owner = first
		}
		ranges = append(ranges, subRange{first, count, owner, vnet.TenantID(userName(uint32(owner)))})
	}
	return ranges
}
