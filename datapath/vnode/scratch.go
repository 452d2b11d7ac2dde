package vnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// shared are the directories that every user of a machine may write. In a node
// they are the node's own: all its sessions share them, nobody else does, and
// they end with it.
var shared = []string{"/tmp", "/var/tmp", "/dev/shm"}

// Bounds of what a node may write to them: memory, which counts against its
// limit while it has one.
const (
	scratchSize  = 1 << 30
	scratchFiles = 1 << 17
)

func (p *Part) scratchPath(key string) string { return filepath.Join(p.host.Dir("tmp"), key) }

// scratch is the directory that holds a node's shared ones, made when the first
// session begins.
func (p *Part) scratch(key string) (string, error) {
	p.making.Lock()
	defer p.making.Unlock()
	path := p.scratchPath(key)
	if mounted(path) {
		return path, nil
	}
	if err := kernel.Unbind(path); err != nil {
		return "", err
	}
	target, err := kernel.Conceal(path)
	if err != nil {
		return "", err
	}
	return path, mountScratch(target, p.host.Group(key).Memory())
}

// mounted says whether path leads to a memory file system with everything in it.
func mounted(path string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
		return false
	}
	_, err := os.Stat(filepath.Join(path, shared[len(shared)-1]))
	return err == nil
}

// mountScratch makes the file system; limit is the node's of memory in bytes,
// 0: none.
func mountScratch(target string, limit int64) error {
	if err := os.Mkdir(target, 0o700); err != nil {
		return err
	}
	size := int64(scratchSize)
	if limit > 0 {
		size = min(size, limit/2) // what fills it is told so, and not killed for memory
	}
	data := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0711", size, scratchFiles)
	if err := mount("sublet", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return err
	}
	for _, dir := range shared {
		path := filepath.Join(target, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o777|os.ModeSticky); err != nil {
			return err
		}
	}
	return nil
}

// showScratch puts the node's shared directories in the place of the host's.
// The run directory, with the node's, may be below one of them: they are opened
// before any is covered, and it keeps a place to be hidden at.
func (s pause) showScratch() error {
	own := make(map[string]*os.File)
	for _, dir := range shared {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			continue
		}
		file, err := os.Open(filepath.Join(s.Scratch, dir))
		if err != nil {
			return err
		}
		defer file.Close()
		own[dir] = file
	}
	for dir, file := range own {
		if err := mount(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), dir, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return os.MkdirAll(s.Run, 0o711)
}
