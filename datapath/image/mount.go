package image

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenTree opens a directory as a mount that is read only and has neither
// devices nor set-uid programs. What root owns on disk belongs in there to root
// of the user namespace; nil: it keeps its owners.
func OpenTree(root string, userns *os.File) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, root, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open the files of an image: %w", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if userns != nil {
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(userns.Fd())
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("mount the files of an image: %w", err)
	}
	return os.NewFile(uintptr(fd), root), nil
}

// Maps says whether files of a directory can be shown as another owner's
// (mount_setattr(2), MOUNT_ATTR_IDMAP): not all file systems can.
func Maps(dir string, userns *os.File) bool {
	tree, err := OpenTree(dir, userns)
	if err != nil {
		return false
	}
	tree.Close()
	return true
}
