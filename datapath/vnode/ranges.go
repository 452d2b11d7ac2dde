package vnode

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"github.com/moby/sys/user"
	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/datapath/kernel"
)

// The users of a node other than root are users of the host's of which nobody else
// is: for each user who has nodes here a range, noted in $RUN/ids/HOST/UID for as
// long as they have some. Nodes of one user share it, as they share their root.
//
// Ranges lie in what no convention gives to anybody (systemd, Users, Groups, UIDs
// and GIDs: 0x70000000 to 0x7FFDFFFF is unused), and keep off users that this host
// knows nevertheless, such as subordinate ones (subuid(5)).
const (
	rangesKind = "ids"
	rangeSize  = image.MostID + 1
	firstRange = 0x70000000
	mostRanges = (0x7FFE0000 - firstRange) / rangeSize
)

// rootOwner is who is root in the nodes of a user, and their range.
func rootOwner(host *kernel.Host, uid uint32) (image.Owner, error) {
	if uid == 0 {
		return image.Owner{}, nil
	}
	base, err := readRange(rangePath(host, uid))
	if errors.Is(err, os.ErrNotExist) { // of a former version: root only
		err = nil
	}
	return image.Owner{UID: uid, GID: uint32(groupOf(uid)), Base: base}, err
}

func rangePath(host *kernel.Host, uid uint32) string {
	return filepath.Join(host.Dir(rangesKind), strconv.FormatUint(uint64(uid), 10))
}

func readRange(path string) (uint32, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	base, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the range of users in %s is damaged: %w", path, err)
	}
	return uint32(base), nil
}

// reserve notes a range for a user: the one that files belong to which their nodes have
// kept, or that they have on another host of this machine, or else the first that is free. It begins to look where the user's number
// says, so that they mostly get the same one again.
func (o *owners) reserve(uid uint32) error {
	if uid == 0 {
		return nil
	}
	lock, err := os.Open(o.host.Run)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if _, err := readRange(rangePath(o.host, uid)); err == nil {
		return nil
	}
	taken, err := o.taken()
	if err != nil {
		return err
	}
	kept, err := o.kept()
	if err != nil {
		return err
	}
	for _, ranges := range []map[uint32]uint32{kept, taken} {
		if base := o.rangeOf(uid, ranges, taken); base != 0 {
			return o.keep(uid, base)
		}
	}
	maps.Copy(taken, kept)
	for i := range uint32(mostRanges) {
		base := firstRange + (uid+i)%mostRanges*rangeSize
		if _, used := taken[base]; used {
			continue
		}
		if known, err := someoneIn(base); err != nil {
			return err
		} else if !known {
			return o.keep(uid, base)
		}
	}
	return fmt.Errorf("this machine has no range of %d users left for the nodes of user %d", rangeSize, uid)
}

// rangeOf is one of a user's among ranges that nobody else has; 0: none is.
func (o *owners) rangeOf(uid uint32, ranges, taken map[uint32]uint32) uint32 {
	for base, other := range ranges {
		if by, used := taken[base]; other == uid && (!used || by == uid) {
			return base
		}
	}
	return 0
}

// taken are the ranges in use on all hosts of this machine, and whose they are.
func (o *owners) taken() (map[uint32]uint32, error) {
	files, err := filepath.Glob(filepath.Join(o.host.Run, rangesKind, "*", "[0-9]*"))
	if err != nil {
		return nil, err
	}
	taken := make(map[uint32]uint32)
	for _, file := range files {
		base, err := readRange(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // freed in between
		}
		uid, bad := strconv.ParseUint(filepath.Base(file), 10, 32)
		if err := cmp.Or(err, bad); err != nil {
			return nil, err
		}
		taken[base] = uint32(uid)
	}
	return taken, nil
}

// keep notes a user's range, for good: who reads it finds it whole or not at all.
func (o *owners) keep(uid, base uint32) error {
	if base == 0 {
		return nil
	}
	path := rangePath(o.host, uid)
	if err := kernel.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(path), ".next-"+filepath.Base(path))
	if err := os.WriteFile(next, []byte(strconv.FormatUint(uint64(base), 10)), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// recall notes a range again whose note was lost: the user namespace tells.
func (o *owners) recall(uid uint32, userns *os.File) error {
	if _, err := os.Stat(rangePath(o.host, uid)); uid == 0 || err == nil {
		return nil
	}
	owner, base, err := mappedTo(userns)
	if err != nil || owner != uid {
		return err
	}
	return o.keep(uid, base)
}

// someoneIn says whether this host knows a user or group of a range, or gives some of
// it to somebody.
func someoneIn(base uint32) (bool, error) {
	first, end := int64(base), int64(base)+rangeSize
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		list, err := user.ParseSubIDFileFilter(file, func(s user.SubID) bool { return s.SubID < end && s.SubID+s.Count > first })
		if err != nil && !errors.Is(err, os.ErrNotExist) || len(list) > 0 {
			return true, err
		}
	}
	users, err := user.ParsePasswdFileFilter("/etc/passwd", func(u user.User) bool { return int64(u.Uid) >= first && int64(u.Uid) < end })
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(users) > 0 {
		return true, err
	}
	groups, err := user.ParseGroupFileFilter("/etc/group", func(g user.Group) bool { return int64(g.Gid) >= first && int64(g.Gid) < end })
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return len(groups) > 0, err
}

// free forgets the ranges of users without nodes. No process has one of their users.
func (o *owners) free(used map[uint32]bool) error {
	names, err := o.host.Names(rangesKind)
	if err != nil {
		return err
	}
	for _, name := range names {
		uid, bad := strconv.ParseUint(name, 10, 32)
		if bad == nil && used[uint32(uid)] {
			continue
		}
		if err := os.Remove(filepath.Join(o.host.Dir(rangesKind), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
