package filecopy

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A file with holes is carried as its data only. Where they lie stands in two
// records of the entry, named as POSIX.1-2001 has it for vendors: archive/tar
// reads GNU's sparse files, and refuses to write them.
const (
	recordSize = "SUBLET.size" // of the file, with its holes
	recordData = "SUBLET.data" // offset and length of each piece, in order, with spaces
)

// mostPieces bounds that record, which archive/tar reads up to 1 MiB of. The holes
// behind so many pieces are carried as zeros.
const mostPieces = 16384

// piece is data of a file: what lies between pieces is a hole.
type piece struct{ at, length int64 }

// piecesOf lists a file's data. A file system that knows no holes has one piece.
func piecesOf(f *os.File, size int64) (list []piece) {
	for end := int64(0); end < size; {
		from, err := unix.Seek(int(f.Fd()), end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return list // the rest is a hole
		}
		if err != nil || len(list) == mostPieces-1 {
			return append(list, piece{end, size - end})
		}
		if end, err = unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE); err != nil {
			end = size
		}
		if from = min(from, size); from < size {
			list = append(list, piece{from, min(end, size) - from})
		}
	}
	return list
}

// describe puts a file's pieces into its entry, unless it has no holes, and gives
// what is to be carried.
func describe(h *tar.Header, f *os.File) io.Reader {
	pieces := piecesOf(f, h.Size)
	if len(pieces) == 1 && pieces[0].length == h.Size {
		_, _ = f.Seek(0, io.SeekStart) // a place where it was already
		return f
	}
	var words []string
	var readers []io.Reader
	total := int64(0)
	for _, p := range pieces {
		words = append(words, strconv.FormatInt(p.at, 10), strconv.FormatInt(p.length, 10))
		readers = append(readers, io.NewSectionReader(f, p.at, p.length))
		total += p.length
	}
	h.PAXRecords = map[string]string{recordSize: strconv.FormatInt(h.Size, 10), recordData: strings.Join(words, " ")}
	h.Size = total
	return io.MultiReader(readers...)
}

// layout is the size of an entry's file and where its data lies.
func layout(h *tar.Header) (size int64, pieces []piece, err error) {
	if _, holes := h.PAXRecords[recordSize]; !holes {
		return h.Size, []piece{{0, h.Size}}, nil
	}
	wrong := fmt.Errorf("read files: %q has holes that do not fit its data", h.Name)
	if size, err = strconv.ParseInt(h.PAXRecords[recordSize], 10, 64); err != nil || size < 0 {
		return 0, nil, wrong
	}
	words := strings.Fields(h.PAXRecords[recordData])
	if len(words)%2 != 0 || len(words) > 2*mostPieces {
		return 0, nil, wrong
	}
	end, total := int64(0), int64(0)
	for i := 0; i < len(words); i += 2 {
		at, err1 := strconv.ParseInt(words[i], 10, 64)
		length, err2 := strconv.ParseInt(words[i+1], 10, 64)
		if errors.Join(err1, err2) != nil || at < end || length <= 0 || length > size || at > size-length {
			return 0, nil, wrong
		}
		pieces, end, total = append(pieces, piece{at, length}), at+length, total+length
	}
	if total != h.Size {
		return 0, nil, wrong
	}
	return size, pieces, nil
}

// write makes an entry's data, with its holes, what is in a file.
func write(f *os.File, h *tar.Header, content io.Reader) error {
	size, pieces, err := layout(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	for _, p := range pieces {
		if _, err := f.Seek(p.at, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(f, content, p.length); err != nil {
			return err
		}
	}
	return f.Truncate(size)
}

// fits refuses data that a file's file system has no room for in its place, before any
// of it is written.
func fits(f *os.File, data int64) error {
	var fs unix.Statfs_t
	var was unix.Stat_t
	if unix.Fstatfs(int(f.Fd()), &fs) != nil || fs.Blocks == 0 || unix.Fstat(int(f.Fd()), &was) != nil {
		return nil // no bound is known
	}
	const mebi = 1 << 20
	if free := int64(fs.Bavail)*fs.Bsize + was.Blocks*512; data > free {
		return fmt.Errorf("it has %d MiB, and %d MiB are free there: make room, or copy it to another place", (data+mebi-1)/mebi, free/mebi)
	}
	return nil
}
