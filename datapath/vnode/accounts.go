package vnode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/moby/sys/user"
	"golang.org/x/sys/unix"

	"sublet/datapath/image"
)

// Files that tell the users of a node, and how much of them is read.
const (
	usersFile   = "/etc/passwd"
	groupsFile  = "/etc/group"
	mostAccount = 1 << 20
)

// account finds a user of the node that the calling process is in. Their files are
// the tenant's: what is no file, or has no end, is not read. Numbers need none of it.
func account(text string) (*user.ExecUser, error) {
	users, unread := readAccounts(usersFile)
	groups, err := readAccounts(groupsFile)
	if err = errors.Join(unread, err); err != nil {
		if strings.Trim(text, "0123456789:") != "" {
			return nil, err
		}
		users, groups = bytes.NewReader(nil), bytes.NewReader(nil)
	}
	found, err := user.GetExecUser(text, &user.ExecUser{Home: "/"}, users, groups)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // which does not say again who is looked for
		}
		return nil, fmt.Errorf("user %s: %w", text, err)
	}
	if found.Uid > image.MostID || found.Gid > image.MostID {
		return nil, fmt.Errorf("user %s is number %d, group %d: a node has numbers up to %d", text, found.Uid, found.Gid, image.MostID)
	}
	return found, nil
}

func readAccounts(path string) (io.Reader, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return bytes.NewReader(nil), nil // an image without users: numbers do
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostAccount {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", path, mostAccount)
	}
	// Not more than its size: those of proc(5) have none, and read by root of the host,
	// who puts files in place, /proc/kmsg would take the kernel's log from the host.
	text, err := io.ReadAll(io.LimitReader(f, info.Size()))
	return bytes.NewReader(text), err
}

// become makes the calling thread, which is root of its node, another user there,
// for good. What it writes to that is root's stays open to it by name (/dev/stdout).
func become(u *user.ExecUser) error {
	for fd := range 3 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Uid == 0 && st.Mode&unix.S_IFMT == unix.S_IFIFO {
			_ = unix.Fchown(fd, u.Uid, u.Gid) // one that is not the node's stays as it is
		}
	}
	groups := u.Sgids
	if len(groups) == 0 {
		groups = []int{u.Gid}
	}
	err := errors.Join(unix.Setgroups(groups), unix.Setresgid(u.Gid, u.Gid, u.Gid), unix.Setresuid(u.Uid, u.Uid, u.Uid))
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("the node has no user %d or group %d: it was made by an earlier version, make its network anew", u.Uid, u.Gid)
	}
	return err
}
