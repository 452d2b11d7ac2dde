package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// ballast is a file that holds disk space for the time when others have filled
// the disk, in units of Config.floor: two for the writes by which leases end,
// two for a server that starts.
type ballast struct {
	path string
	full int64 // bytes, when the disk has room for it

	mu   sync.Mutex
	size int64
}

// newBallast finds the ballast of an earlier process, which may have spent some of it.
func newBallast(dir string, full int64) *ballast {
	b := &ballast{path: filepath.Join(dir, "ballast"), full: full}
	var stat unix.Stat_t
	if unix.Stat(b.path, &stat) == nil {
		b.size = stat.Blocks * 512
	}
	return b
}

// refill takes what is missing of the ballast if the disk then has spare bytes
// left. A file system that cannot allocate ahead leaves it as it is.
func (b *ballast) refill(free, spare int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if missing := b.full - b.size; missing <= 0 || free-missing < spare {
		return nil
	}
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("keep space for releases: %w", err)
	}
	defer f.Close()
	switch err := unix.Fallocate(int(f.Fd()), 0, 0, b.full); {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSPC):
		return f.Truncate(b.size)
	case err != nil:
		return fmt.Errorf("keep space for releases: %w", err)
	}
	b.size = b.full
	return nil
}

// spend gives bytes of the ballast back to the disk, or what is left of it.
func (b *ballast) spend(bytes int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size == 0 {
		return nil
	}
	left := max(0, b.size-bytes)
	if err := os.Truncate(b.path, left); err != nil {
		return fmt.Errorf("give back the space kept for releases: %w", err)
	}
	b.size = left
	return nil
}

// held is the ballast's present size in bytes.
func (b *ballast) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// reserveOf is the reserve of a store in a directory that may not be there yet.
// A disk that tells no size is taken for a large one: the store's own start
// says what is wrong with it.
func reserveOf(dir string) int64 {
	const most, part = 160 << 20, 4 // and as much for the store itself
	var stat unix.Statfs_t
	for unix.Statfs(dir, &stat) == unix.ENOENT && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	if size := int64(stat.Blocks) * stat.Bsize; size > 0 {
		return min(most, max(size-most, size/part))
	}
	return most
}

// floor is what must be free on the embedded store's disk for any write, in bytes.
func (c Config) floor() int64 { return c.Reserve / 5 }

// Room is an error when the embedded store's disk is too full to take on
// anything new. What is there already may still change and go.
func (s *Store) Room() error {
	if s.embedded == nil {
		return nil
	}
	free, err := s.embedded.free()
	if err != nil {
		return err
	}
	if err := s.embedded.ballast.refill(free, s.config.floor()); err != nil {
		return err
	}
	return s.embedded.room(s.config.Reserve - s.embedded.ballast.held())
}

// rounding is more than a file system rounds a truncated file by.
const rounding = 1 << 20

// makeRoom sees to it that need bytes are free, if need be by ballast, of which
// keep bytes stay.
func (e *embedded) makeRoom(need, keep int64) error {
	free, err := e.free()
	if err != nil || free >= need {
		return err
	}
	if spare := e.ballast.held() - keep; spare > 0 {
		if err := e.ballast.spend(min(spare, need-free+rounding)); err != nil {
			return err
		}
	}
	return e.room(need)
}

// room is an error when less than need bytes are free on the store's disk.
func (e *embedded) room(need int64) error {
	free, err := e.free()
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("%w: the disk of %s has %d MiB free, needed are %d MiB", ErrNoSpace, e.dir, free>>20, need>>20)
	}
	return nil
}

// free is the space in bytes that this process may still use on the store's disk.
func (e *embedded) free() (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(e.dir, &stat); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", e.dir, err)
	}
	return int64(stat.Bavail) * stat.Bsize, nil
}
