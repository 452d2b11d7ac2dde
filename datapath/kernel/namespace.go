package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// NewNamespace makes a network namespace owned by the initial user namespace,
// runs setup in it, and returns a handle. It lives as long as a handle, a
// file (Bind), a process or a socket refers to it.
func NewNamespace(setup func() error) (*os.File, error) {
	var made *os.File
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		if err := setup(); err != nil {
			return err
		}
		var err error
		made, err = Current()
		return err
	})
	return made, err
}

// Current is a handle on the calling thread's network namespace.
func Current() (*os.File, error) { return os.Open("/proc/thread-self/ns/net") }

// In runs f on a thread inside the namespace. Sockets that f opens stay
// there; threads and processes that f starts must not.
func In(ns *os.File, f func() error) error {
	return onThread(func() error {
		if err := enter(ns); err != nil {
			return err
		}
		return f()
	})
}

// DialIn opens a netlink socket in the namespace.
func DialIn(ns *os.File) (*Conn, error) {
	var c *Conn
	err := In(ns, func() (err error) {
		c, err = Dial()
		return err
	})
	return c, err
}

func enter(ns *os.File) error {
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter namespace %s: %w", ns.Name(), err)
	}
	return nil
}

// onThread runs f, which may change the thread's network namespace, and puts
// the thread back. If that fails the thread is left locked, so that it ends
// with its goroutine instead of running others' code in a foreign namespace.
func onThread(f func() error) error {
	runtime.LockOSThread()
	home, err := Current()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("open the own namespace: %w", err)
	}
	defer home.Close()
	result := f()
	if err := enter(home); err != nil {
		return fmt.Errorf("return to the own namespace: %w", err)
	}
	runtime.UnlockOSThread()
	return result
}

// OpenNamespace opens a namespace file. A file on which nothing is mounted (a
// crash between create and mount) is os.ErrNotExist.
func OpenNamespace(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil || fs.Type != unix.NSFS_MAGIC {
		f.Close()
		return nil, fmt.Errorf("%s is not a namespace: %w", path, os.ErrNotExist)
	}
	return f, nil
}

// Bind gives a namespace a file name, replacing a broken leftover; the
// directory is made, for root only.
func Bind(ns *os.File, path string) error {
	if err := MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := Unbind(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o400)
	if err != nil {
		return err
	}
	f.Close()
	source := fmt.Sprintf("/proc/self/fd/%d", ns.Fd())
	if err := unix.Mount(source, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount a namespace on %s: %w", path, err)
	}
	return nil
}

// BindConcealed is Bind for the namespaces of tenants: the mount shows by a name
// that tells nothing, to which path leads.
func BindConcealed(ns *os.File, path string) error {
	if err := Unbind(path); err != nil {
		return err
	}
	target, err := Conceal(path)
	if err != nil {
		return err
	}
	return Bind(ns, target)
}

// Unbind removes what is mounted at a path and the file or empty directory
// there, present or not, and what Conceal made for it.
func Unbind(path string) error {
	if target := concealed(path); target != path {
		if err := Unbind(target); err != nil {
			return err
		}
	}
	for { // somebody may have mounted twice
		err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err == unix.EINVAL || err == unix.ENOENT {
			break
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// Sysctl writes a value of the calling thread's network namespace, such as
// "ipv4/ip_forward". A kernel without the protocol has nothing to set.
func Sysctl(name, value string) error {
	path := "/proc/sys/net/" + name
	err := os.WriteFile(path, []byte(value), 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("set %s to %s: %w", path, value, err)
	}
	return nil
}
