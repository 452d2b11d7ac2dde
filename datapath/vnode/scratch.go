package vnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// shmDir is a node's shared memory in its scratch.
const shmDir = "dev/shm"

// Bounds of what a node may write: memory, which counts against its
// limit while it has one.
const (
	scratchSize  = 1 << 30
	scratchFiles = 1 << 17
)

func (p *Part) scratchPath(key string) string { return filepath.Join(p.host.Dir("tmp"), key) }

// scratch is the directory that holds what a node writes, made when the first
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
	_, err := os.Stat(filepath.Join(path, shmDir))
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
	shm := filepath.Join(target, shmDir)
	return errors.Join(os.MkdirAll(shm, 0o755), os.Chmod(shm, 0o777|os.ModeSticky))
}
