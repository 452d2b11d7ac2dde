package vnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

const loopControl = "/dev/loop-control"

// loopTime bounds the wait for a disk that a node which has ended just now still has:
// the kernel lets go of its mounts when its last process is gone.
const loopTime = 5 * time.Second

// mountKept mounts the disk of a node's layers. Mounted twice it would be destroyed:
// the loop device has the open file, and with it a lock, for as long as it is mounted
// anywhere.
func (p *Part) mountKept(key, path string) error {
	if why := Keeping(); why != "" {
		return errors.New(why)
	}
	if err := kernel.Unbind(path); err != nil {
		return err
	}
	disk, err := openAlone(filepath.Join(p.keptDir(key), diskFile))
	if err != nil {
		return err
	}
	defer disk.Close()
	loop, err := attachLoop(disk)
	if err != nil {
		return fmt.Errorf("make a device of what it keeps: %w", err)
	}
	defer loop.Close() // the mount has it then; without one it goes
	target, err := kernel.Conceal(path)
	if err != nil {
		return err
	}
	if err := os.Mkdir(target, 0o711); err != nil {
		return err
	}
	if err := mount(loop.Name(), target, "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, "errors=remount-ro"); err != nil {
		return errors.Join(fmt.Errorf("mount what it keeps: %w", errors.Unwrap(err)), kernel.Unbind(path))
	}
	return os.Chmod(target, 0o711) // the way to what is the tenant's
}

// openAlone opens a file that nobody else has locked, and locks it for as long as
// anybody has what is returned.
func openAlone(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(loopTime); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			f.Close()
			return nil, fmt.Errorf("what it keeps is in use elsewhere: %w", err)
		}
	}
}

// attachLoop makes a block device of a file. It goes with its last user.
func attachLoop(disk *os.File) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	const tries = 64 // others take the one that is free meanwhile
	for range tries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &unix.LoopConfig{Fd: uint32(disk.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}})
		if err == nil {
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no device is free: %w", unix.EBUSY)
}
