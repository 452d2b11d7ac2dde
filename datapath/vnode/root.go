package vnode

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
)

// rootFS is the root file system of a node with an image. Nodes without see the
// host's.
type rootFS struct {
	Tree    string `json:"tree"`    // directory of the image's files
	Mapped  bool   `json:"mapped"`  // they belong to root on disk, not to the node's
	Workdir string `json:"workdir"` // made if it is missing
}

// trees are what a node's root is made of: mounts that are not anywhere yet, and
// the node's memory. They are opened before the host's files are out of sight.
type rootTrees struct {
	lower, hosts, self, shm *os.File
	scratch                 *os.File
}

func (t rootTrees) close() { closeAll([]*os.File{t.lower, t.hosts, t.self, t.shm, t.scratch}) }

func (s pause) rootTrees(userns *os.File) (t rootTrees, err error) {
	if !s.Root.Mapped {
		userns = nil
	}
	if t.lower, err = image.OpenTree(s.Root.Tree, userns); err != nil {
		return t, err
	}
	exe, err := programOnDisk()
	if err != nil {
		return t, err
	}
	for _, tree := range []struct {
		file **os.File
		path string
	}{{&t.hosts, s.Hosts}, {&t.self, exe}, {&t.shm, path.Join(s.Scratch, "dev/shm")}} {
		fd, err := openTree(tree.path, tree.file != &t.shm)
		if errors.Is(err, os.ErrNotExist) {
			continue // a program that was removed, or no names: as in nodes without an image
		}
		if err != nil {
			return t, fmt.Errorf("open %s: %w", path.Base(tree.path), err)
		}
		*tree.file = os.NewFile(uintptr(fd), tree.path)
	}
	t.scratch, err = os.Open(s.Scratch)
	return t, err
}

// changeRoot makes the image's files, below a layer of the node's own, the root
// of this mount namespace. Nothing of the host's is left in it. Until /proc is
// there, no link of the image can lead to what is not the image's.
func (s pause) changeRoot(userns *os.File) error {
	t, err := s.rootTrees(userns)
	defer t.close()
	if err != nil {
		return err
	}
	if err := s.overlay(t); err != nil {
		return err
	}
	if err := s.fixtures(t); err != nil {
		return err
	}
	if err := kernelFiles(); err != nil {
		return err
	}
	return devices(t.shm)
}

// overlay mounts the root and enters it. The writable layer is in the node's
// memory, with what it writes to /tmp, and ends with the node.
func (s pause) overlay(t rootTrees) error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := mount("sublet", s.Run, "tmpfs", safe, "size=64k,mode=0700"); err != nil {
		return err
	}
	lower, root := s.Run+"/lower", s.Run+"/root"
	if err := errors.Join(os.Mkdir(lower, 0o700), os.Mkdir(root, 0o700)); err != nil {
		return err
	}
	if err := attach(t.lower, lower); err != nil {
		return err
	}
	below, err := os.Open(lower) // by number: a path may have what overlayfs takes for a separator
	if err != nil {
		return err
	}
	defer below.Close()
	data := fmt.Sprintf("lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/upper,workdir=/proc/self/fd/%d/work", below.Fd(), t.scratch.Fd(), t.scratch.Fd())
	if err := mount("sublet", root, "overlay", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return err
	}
	return pivot(root)
}

// writable makes the directories of the layer that the node writes.
func (s pause) writable() error {
	for _, name := range []string{"upper", "work"} {
		dir := path.Join(s.Scratch, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, int(s.Owner.UID), int(s.Owner.GID))); err != nil {
			return err
		}
	}
	return nil
}

// pivot makes a mounted directory the root, and lets go of the one before
// (pivot_root(2), "." for both).
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root directory: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's files: %w", err)
	}
	return os.Chdir("/")
}

// attach mounts a tree on a path, whose last element is no link.
func attach(tree *os.File, at string) error {
	if err := unix.MoveMount(int(tree.Fd()), "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", at, err)
	}
	return nil
}

// fixtures puts in place what every node has: the names of its network, this
// program, and directories. The ways to the first two are mounts, so that nobody
// in the node can put others in their place.
func (s pause) fixtures(t rootTrees) error {
	for _, dir := range append(above(s.Run), "/etc") {
		if err := s.directory(dir); err != nil {
			return err
		}
		if err := mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/proc", "/sys", "/dev", s.Run} {
		if err := s.directory(dir); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if err := s.sharedDirectory(dir); err != nil {
			return err
		}
	}
	if s.Root.Workdir != "" {
		if _, err := os.Stat(s.Root.Workdir); errors.Is(err, os.ErrNotExist) {
			if err := errors.Join(os.MkdirAll(s.Root.Workdir, 0o755), os.Chown(s.Root.Workdir, int(s.Owner.UID), int(s.Owner.GID))); err != nil {
				return fmt.Errorf("make the working directory: %w", err)
			}
		}
	}
	if t.hosts != nil {
		if err := s.place(t.hosts, hostsFile); err != nil {
			return err
		}
	}
	return s.showSelf(t.self)
}

// above lists the directories on the way to a path, from the top.
func above(at string) (dirs []string) {
	for dir := path.Dir(path.Clean(at)); dir != "/"; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// directory makes one if it is missing.
func (s pause) directory(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, int(s.Owner.UID), int(s.Owner.GID)))
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s of the image is no directory", dir)
	}
	return err
}

// sharedDirectory makes one that all may write, if it is missing.
func (s pause) sharedDirectory(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o777|os.ModeSticky))
}

// place mounts a file in the place of whatever the image has there.
func (s pause) place(tree *os.File, at string) error {
	if info, err := os.Lstat(at); err == nil && !info.Mode().IsRegular() {
		if err := os.Remove(at); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_RDONLY|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	f.Close()
	return attach(tree, at)
}

// showSelf mounts a directory that holds this program only, where nodes without
// an image have it.
func (s pause) showSelf(tree *os.File) error {
	if err := mount("sublet", s.Run, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=0755"); err != nil {
		return err
	}
	if tree != nil {
		if err := s.place(tree, SelfInside(s.Run)); err != nil {
			return err
		}
	}
	return mount("", s.Run, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
}

// deviceNodes are those of every container (OCI runtime specification, default
// devices), by name and number (devices.txt of Linux).
var deviceNodes = []struct {
	name         string
	major, minor uint32
}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}}

var deviceLinks = [][2]string{
	{"pts/ptmx", "ptmx"}, {"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
}

// devices mounts /dev.
func devices(shm *os.File) error {
	if err := mount("sublet", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "size=64k,mode=0755"); err != nil {
		return err
	}
	for _, d := range deviceNodes {
		at := "/dev/" + d.name
		err := unix.Mknod(at, unix.S_IFCHR|0o666, int(unix.Mkdev(d.major, d.minor)))
		if err = errors.Join(err, os.Chmod(at, 0o666)); err != nil {
			return fmt.Errorf("make %s: %w", at, err)
		}
	}
	for _, l := range deviceLinks {
		if err := os.Symlink(l[0], "/dev/"+l[1]); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Mkdir("/dev/pts", 0o755), os.Mkdir("/dev/shm", 0o755)); err != nil {
		return err
	}
	if err := mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return err
	}
	if shm == nil {
		return nil
	}
	return attach(shm, "/dev/shm")
}
