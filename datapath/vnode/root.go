package vnode

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// rootFS is the root file system of a node.
type rootFS struct {
	Tree    string `json:"tree"`           // directory of its files: an image's, or /
	Host    bool   `json:"host,omitempty"` // it is the host's
	Mapped  bool   `json:"mapped"`         // they belong to root on disk, not to the node's
	Workdir string `json:"workdir"`        // made if it is missing
}

// fixed are what Sublet puts into a node: mounts that are not anywhere yet. They
// are opened before the host's files are out of sight.
type fixed struct{ hosts, self, shm *os.File }

func (f fixed) close() { closeAll([]*os.File{f.hosts, f.self, f.shm}) }

func (s pause) fixed() (f fixed, err error) {
	for _, tree := range []struct {
		file **os.File
		path string
	}{{&f.hosts, s.Hosts}, {&f.self, s.Program}, {&f.shm, path.Join(s.Scratch, shmDir)}} {
		fd, err := openTree(tree.path, tree.file != &f.shm)
		if errors.Is(err, os.ErrNotExist) {
			continue // a program that was removed, or no names
		}
		if err != nil {
			return f, fmt.Errorf("open %s: %w", path.Base(tree.path), err)
		}
		*tree.file = os.NewFile(uintptr(fd), tree.path)
	}
	return f, nil
}

// changeRoot makes the files of an image or of the host, below a layer of the
// node's own, the root of this mount namespace. No other mount of the host's is
// left in it, and none comes. Until /proc is there, no link can lead to what is
// not the node's.
func (s pause) changeRoot(userns *os.File) error {
	f, err := s.fixed()
	defer f.close()
	if err != nil {
		return err
	}
	given, err := readSetup(s.Given)
	if err != nil {
		return err
	}
	nodes := deviceNodes
	if given.Machine() {
		if withoutKVM() == "" {
			nodes = append(nodes[:len(nodes):len(nodes)], deviceNode{"kvm", 10, 232})
		}
		err = s.machineRoot()
	} else if err = s.overlay(userns); err == nil {
		err = s.putAll(given.Files)
	}
	if err != nil {
		return err
	}
	if err := s.fixtures(f); err != nil {
		return err
	}
	if err := kernelFiles(); err != nil {
		return err
	}
	if err := devices(f.shm, nodes); err != nil || !given.Machine() {
		return err
	}
	return s.seal()
}

// overlay mounts the root, with what is below it, and enters it. What the node
// writes is in its memory and ends with it.
func (s pause) overlay(userns *os.File) error {
	layers, err := s.layers(userns)
	defer func() {
		for _, l := range layers {
			l.close()
		}
	}()
	if err != nil {
		return err
	}
	if err := mount("sublet", s.Run, "tmpfs", safe, "size=64k,mode=0700"); err != nil {
		return err
	}
	root := s.Run + "/root"
	if err := errors.Join(os.Mkdir(s.Run+"/lower", 0o700), os.Mkdir(root, 0o700)); err != nil {
		return err
	}
	for _, l := range layers {
		if err := s.mountOn(l, path.Join(root, l.at)); err != nil {
			return err
		}
	}
	return pivot(root)
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
func (s pause) fixtures(f fixed) error {
	for _, dir := range s.leading() {
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
	if f.hosts != nil {
		if err := s.place(f.hosts, hostsFile); err != nil {
			return err
		}
	}
	return s.showSelf(f.self)
}

// leading are the directories on the way to what Sublet puts in place.
func (s pause) leading() []string { return append(above(s.Run), "/etc") }

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
		err = fmt.Errorf("%s is no directory", dir)
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

// place mounts a file in the place of whatever the node has there.
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

// showSelf mounts a directory that holds this program only.
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

type deviceNode struct {
	name         string
	major, minor uint32
}

// deviceNodes are those of every container (OCI runtime specification, default
// devices) and the maker of tunnels, by name and number (devices.txt of Linux).
var deviceNodes = []deviceNode{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}, {"net/tun", 10, 200}}

var deviceLinks = [][2]string{
	{"pts/ptmx", "ptmx"}, {"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
}

// mostTerminals is how many pseudo-terminals a node has of the machine's
// (kernel.pty.max, 4096 as Linux comes).
const mostTerminals = 256

// devices mounts /dev.
func devices(shm *os.File, nodes []deviceNode) error {
	if err := mount("sublet", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "size=64k,mode=0755"); err != nil {
		return err
	}
	if err := os.Mkdir("/dev/net", 0o755); err != nil {
		return err
	}
	for _, d := range nodes {
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
	options := fmt.Sprintf("newinstance,ptmxmode=0666,mode=0620,max=%d", mostTerminals)
	if err := mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, options); err != nil {
		return err
	}
	if shm == nil {
		return nil
	}
	return attach(shm, "/dev/shm")
}
