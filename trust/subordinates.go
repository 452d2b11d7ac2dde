package trust

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"sublet/vnet"
)

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
// not their rights: they belong to the first of their range.
type subRange struct {
	first, count, owner uint64
	account             vnet.TenantID // the owner's name
}

// SetSubordinates reads another file in place of /etc/subuid.
func SetSubordinates(path string) {
	subordinates.mu.Lock()
	defer subordinates.mu.Unlock()
	subordinates.path, subordinates.read = path, time.Time{}
}

// Owner is the user to whom a subordinate one belongs; any other is their own.
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
