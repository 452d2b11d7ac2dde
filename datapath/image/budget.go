package image

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// budget is what an image may still take, of each of two: what its layers have,
// unpacked, and what its files have, which is more if they are sparse.
type budget struct {
	ctx     context.Context
	dir     int // descriptor in the file system that takes the files
	stream  allowance
	files   allowance
	entries int
	most    Limits
	claim   func(bytes int64) error // room in the store
}

// allowance is how many bytes may still be read.
type allowance struct{ left, looked int64 }

// ErrTooLarge says that an image is beyond the limits, or what the disk has.
var ErrTooLarge = errors.New("the image is too large for this host")

func newBudget(ctx context.Context, dir int, l Limits) *budget {
	return &budget{ctx: ctx, dir: dir, stream: allowance{left: l.Bytes}, files: allowance{left: l.Bytes}, entries: l.Entries, most: l}
}

// entry counts one.
func (b *budget) entry() error {
	if b.entries--; b.entries < 0 {
		return fmt.Errorf("%w: it has too many files", ErrTooLarge)
	}
	return b.ctx.Err()
}

// taken is what the image has until now.
func (b *budget) taken() int64 {
	return b.most.Bytes - b.files.left + int64(b.most.Entries-b.entries)*entrySize
}

// bounded reads what an allowance is left for.
type bounded struct {
	io.Reader
	*budget
	of *allowance
}

func (r bounded) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.of.left -= int64(n); r.of.left < 0 {
		return 0, fmt.Errorf("%w: it has too many bytes", ErrTooLarge)
	}
	if failed := r.look(r.of); failed != nil {
		return 0, failed
	}
	return n, err
}

// look refuses to fill the disk (roomIn). It looks once in 16 MiB.
func (b *budget) look(of *allowance) error {
	const often = 16 << 20
	if of.looked != 0 && of.looked-of.left < often {
		return nil
	}
	of.looked = of.left
	if err := b.ctx.Err(); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(b.dir, &fs); err != nil {
		return err
	}
	if err := b.claim(b.taken()); err != nil {
		return err
	}
	if roomIn(&fs) < 0 {
		return fmt.Errorf("%w: its disk has only %d MiB left, make room there", ErrTooLarge, int64(fs.Bavail)*fs.Bsize>>20)
	}
	if fs.Files > 0 && fs.Ffree < fs.Files/reserve {
		return fmt.Errorf("%w: its disk has only %d inodes left, make room there", ErrTooLarge, fs.Ffree)
	}
	return nil
}
