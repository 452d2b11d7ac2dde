package vnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// A node that keeps what it writes has a directory of its own where the agent's data
// is, beyond restarts of the node and of the host. It goes when the node's setup
// leaves the plan. A machine's disk is a file of the format qcow2; the layers of other
// nodes are in a file with a file system, which bounds them: whatever file system the
// host has, nothing else counts what one directory takes.
//
//	KEPT/TENANT.NETWORK.NODE             a link to its directory: every user of the
//	                                     machine sees of which file a device is made
//	KEPT/.../note                        whose it is
//	KEPT/.../disk
//	$RUN/kept/HOST/TENANT.NETWORK.NODE   where the file system is mounted
const (
	keptKind   = "kept"
	noteFile   = "note"
	diskFile   = "disk"
	hiddenKept = "." // begins names of directories
)

// note says whose kept files are.
type note struct {
	Serial  uint64 `json:"serial"` // of the lease
	Image   string `json:"image"`  // below them, as the tenant wrote it
	Size    int64  `json:"size"`
	Machine bool   `json:"machine,omitempty"`
	Below   string `json:"below,omitempty"` // a machine's image, by size and time: its blocks refer to it

	Owner image.Owner `json:"owner"` // root of the node, and the range of its users
}

// fits says what keeps a node from its kept files although they are its own.
func (n note) fits(now note) error {
	switch {
	case n.Size != now.Size:
		return fmt.Errorf("its disk has %s, which stays while it is kept: state disk: %s, or release the lease", vnet.Bytes(n.Size), vnet.Bytes(n.Size))
	case n.Below != now.Below:
		return fmt.Errorf("the image %s has changed since its disk was made, which it does not fit any more: put it back, or release the lease", n.Image)
	case n.Owner.UID != now.Owner.UID || n.Owner.Base != now.Owner.Base:
		return fmt.Errorf("what it kept belongs to user %d and range %d, the node has %d and %d: let the host give that range to nobody else, or release the lease", n.Owner.UID, n.Owner.Base, now.Owner.UID, now.Owner.Base)
	}
	return nil
}

// same says whether files that were kept are those of a node.
func (n note) same(now note) bool {
	return n.Serial == now.Serial && n.Image == now.Image && n.Machine == now.Machine
}

func (p *Part) keptDir(key string) string { return filepath.Join(p.Kept, key) }

// keptPath is where what a node keeps is mounted.
func (p *Part) keptPath(key string) string { return filepath.Join(p.host.Dir(keptKind), key) }

// noteOf reads whose a node's kept files are.
func (p *Part) noteOf(key string) (n note, err error) {
	text, err := os.ReadFile(filepath.Join(p.keptDir(key), noteFile))
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	return n, err
}

// keptKeys lists the nodes that have kept files here.
func (p *Part) keptKeys() (keys []string, err error) {
	entries, err := p.keptEntries()
	for _, e := range entries {
		if _, _, ok := plan.ParseNamespace(e.Name()); ok && e.Type() == fs.ModeSymlink {
			keys = append(keys, e.Name())
		}
	}
	return keys, err
}

func (p *Part) keptEntries() ([]fs.DirEntry, error) {
	if p.Kept == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(p.Kept)
	return entries, gone(err)
}

// sweepKept removes what no node has: it was not completed, or not removed. Nobody
// makes any meanwhile, but what is brought.
func (p *Part) sweepKept() error {
	entries, err := p.keptEntries()
	led := make(map[string]bool)
	for _, e := range entries {
		if to, err := os.Readlink(p.keptDir(e.Name())); err == nil && !strings.HasPrefix(e.Name(), hiddenKept) {
			led[to] = true
		}
	}
	for _, e := range entries {
		if _, filling := p.brought.Load(e.Name()); strings.HasPrefix(e.Name(), hiddenKept) && !led[e.Name()] && !filling {
			err = errors.Join(err, os.RemoveAll(p.keptDir(e.Name())))
		}
	}
	return err
}

// keep sees to it that a node has its disk, made by format unless it is there.
func (p *Part) keep(key string, now note, format func(*os.File) error) error {
	if p.Kept == "" {
		return errors.New("this host has no place for what nodes keep")
	}
	was, err := p.noteOf(key)
	switch {
	case err == nil && was.same(now):
		return was.fits(now)
	case err == nil:
		if err := p.dropKept(key); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("whose the files are that it kept %w: %w", kernel.ErrUnseen, err)
	}
	if err := p.makeKept(key, now, format); err != nil {
		return fmt.Errorf("make a disk for what it keeps: %w", err)
	}
	return nil
}

// makeKept makes the directory, to which a link leads once it is whole and on disk.
func (p *Part) makeKept(key string, n note, format func(*os.File) error) error {
	if err := kernel.MkdirAll(p.Kept, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(p.Kept, hiddenKept)
	if err != nil {
		return err
	}
	if err = image.TakeRoom(p.Kept, n.Size, func() error { return fillKept(dir, n, format) }); err == nil {
		err = os.Symlink(filepath.Base(dir), p.keptDir(key))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return syncFile(p.Kept)
}

func fillKept(dir string, n note, format func(*os.File) error) error {
	f, err := os.OpenFile(filepath.Join(dir, diskFile), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	about := filepath.Join(dir, noteFile)
	if err := errors.Join(format(f), writeWhole(about, n), f.Sync()); err != nil {
		return err
	}
	return errors.Join(syncFile(about), syncFile(dir))
}

// syncFile writes a file, or the names in a directory, to disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// dropKept removes what a node kept. Nothing runs in it.
func (p *Part) dropKept(key string) error {
	if err := kernel.Unbind(p.keptPath(key)); err != nil || p.Kept == "" {
		return err
	}
	link := p.keptDir(key)
	dir, err := os.Readlink(link)
	if err != nil {
		return gone(err)
	}
	if err := errors.Join(os.Remove(link), os.RemoveAll(p.keptDir(filepath.Base(dir)))); err != nil {
		return fmt.Errorf("remove what it kept: %w", err)
	}
	return nil
}

// keptRanges are the ranges of users that kept files belong to, and whose they are.
func (p *Part) keptRanges() (map[uint32]uint32, error) {
	keys, err := p.keptKeys()
	ranges := make(map[uint32]uint32)
	for _, key := range keys {
		if n, err := p.noteOf(key); err == nil && n.Owner.Base != 0 { // else nobody can use it
			ranges[n.Owner.Base] = n.Owner.UID
		}
	}
	return ranges, err
}

// keepLayers is the directory of the layers of a node that keeps them.
func (p *Part) keepLayers(s plan.Setup, owner image.Owner) (string, error) {
	size := int64(s.Disk)
	if size == 0 {
		size = int64(vnet.KeptDisk)
	}
	err := p.keep(s.Key(), note{Serial: s.Serial, Image: s.Image, Size: size, Owner: owner}, func(f *os.File) error { return formatFiles(f, size) })
	if err != nil {
		return "", err
	}
	path := p.keptPath(s.Key())
	if !isMount(path) {
		err = p.mountKept(s.Key(), path)
	}
	return filepath.Join(path, layersDir), err
}

// isMount says whether path leads to a file system of the kind that nodes keep.
func isMount(path string) bool {
	var fs unix.Statfs_t
	var own, above unix.Stat_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.EXT4_SUPER_MAGIC &&
		unix.Stat(path, &own) == nil && unix.Stat(filepath.Dir(path), &above) == nil && own.Dev != above.Dev
}

// formatFiles makes a file system of a file, whose room is taken at once.
func formatFiles(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("take its room: %w", err)
	}
	cmd := exec.Command(maker4, "-q", "-F", "-m", "0", "-E", "nodiscard", "/proc/self/fd/3")
	cmd.ExtraFiles, cmd.Env = []*os.File{f}, []string{searchPath}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", maker4, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// maker4 makes file systems.
const maker4 = "mkfs.ext4"

// Keeping says why nodes of this host keep nothing; "": they do.
func Keeping() string {
	if _, err := exec.LookPath(maker4); err != nil {
		return maker4 + " is not installed: apt-get install e2fsprogs"
	}
	if text, err := os.ReadFile("/proc/filesystems"); err == nil && !strings.Contains(string(text), "\text4\n") {
		return "this kernel has no ext4"
	}
	if _, err := os.Stat(loopControl); err != nil {
		return "there are no loop devices: modprobe loop"
	}
	return ""
}
