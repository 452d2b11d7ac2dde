package image

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// DefaultQuota is what all images of a host may have unpacked, in bytes, unless its
// operator states another.
const DefaultQuota = 32 << 30

// fresh is how long an image stays in any case that somebody got: it takes a moment
// until their node is known to use it.
const fresh = time.Minute

// ErrNoRoom says that an image does not fit beside those that nodes use.
var ErrNoRoom = errors.New("it does not fit into the store of images of this host")

// claim says how much an image that is being unpacked has until now. Room is made for
// it: the images that nobody has used for longest leave.
func (s *Store) claim(id string, bytes int64) error {
	s.room.Lock()
	defer s.room.Unlock()
	s.claims[id] = bytes
	trees, err := s.trees()
	if err != nil {
		return err
	}
	total := int64(0)
	for _, claimed := range s.claims {
		total += claimed
	}
	for _, t := range trees {
		total += t.size
	}
	for _, t := range trees {
		if total <= s.Quota {
			return nil
		}
		if s.pinned == nil || s.pinned[t.id] || time.Since(t.last) < fresh {
			continue
		}
		if err := s.remove(t.id); err != nil {
			return err
		}
		total -= t.size
	}
	if total > s.Quota {
		return fmt.Errorf("%w: it has at least %d MiB, of %d MiB others use %d; its operator may state more (sublet agent --images-quota)", ErrNoRoom, toMiB(bytes), s.Quota>>20, toMiB(total-bytes))
	}
	return nil
}

func toMiB(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// unclaim forgets an image that is unpacked, or is not to be.
func (s *Store) unclaim(id string) {
	s.room.Lock()
	defer s.room.Unlock()
	delete(s.claims, id)
}

// stored is a tree of the store.
type stored struct {
	id   string
	size int64
	last time.Time // when somebody got it, or a node used it
}

// trees lists those of the store, the one not used for longest first.
func (s *Store) trees() (list []stored, err error) {
	entries, err := os.ReadDir(s.path("tree"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // removed in between
		}
		size, err := s.size(e.Name())
		if err != nil {
			return nil, err
		}
		list = append(list, stored{id: e.Name(), size: size, last: info.ModTime()})
	}
	slices.SortFunc(list, func(a, b stored) int { return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.id, b.id)) })
	return list, nil
}

// size is what a tree takes: noted when it was made, measured where a former version
// made it.
func (s *Store) size(id string) (int64, error) {
	text, err := os.ReadFile(s.path("tree", id, "size"))
	if err == nil {
		return strconv.ParseInt(string(text), 10, 64)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	return measure(s.path("tree", id))
}

// noteSize writes what a tree takes, beside it.
func noteSize(dir string) error {
	size, err := measure(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "size"), []byte(strconv.FormatInt(size, 10)), 0o400)
}

// entrySize is what each file takes beside its content: an inode and its name.
const entrySize = 512

// measure adds up the room of all files below a directory. A file with several names
// counts for each of them.
func measure(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		const block = 512 // stat(2)
		size += entrySize + info.Sys().(*syscall.Stat_t).Blocks*block
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		err = nil // it is being removed
	}
	return size, err
}
