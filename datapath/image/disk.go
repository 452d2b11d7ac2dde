package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// Disk is what a virtual machine begins with.
type Disk struct {
	File *os.File // open for reading
	Size int64    // of the disk, in bytes
}

// sector is what sizes of disks are multiples of.
const sector = 512

// OpenDisk opens the image of a machine's disk, which is a file below the
// directory of the operator's. The format, "qcow2" or "raw", is not guessed: one
// that was taken for another would let a machine choose which files of the host it
// reads.
func (s *Store) OpenDisk(name, format string) (*Disk, error) {
	if s.Offered == "" {
		return nil, errors.New("this host offers no images: start its agent with --images")
	}
	root, err := os.OpenRoot(s.Offered)
	if err != nil {
		return nil, fmt.Errorf("open the directory of images: %w", plain(err))
	}
	defer root.Close()
	// A pipe of that name would be waited for.
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, plain(err))
	}
	size, err := sizeOf(f, format)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("image %s: %w", name, plain(err))
	}
	return &Disk{f, size}, nil
}

func sizeOf(f *os.File, format string) (int64, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, errors.New("it is no file")
	case format == "qcow2":
		return sizeOfQCOW2(f)
	case info.Size() == 0, info.Size()%sector != 0:
		return 0, fmt.Errorf("it has %d bytes, which is no disk of sectors of %d", info.Size(), sector)
	}
	return info.Size(), nil
}

// qcow2 is the part of the header that every version has, and the features of
// version 3 (QEMU, docs/interop/qcow2.txt).
type qcow2 struct {
	Magic         [4]byte
	Version       uint32
	BackingOffset uint64
	BackingSize   uint32
	ClusterBits   uint32
	Size          uint64
	CryptMethod   uint32
	_             [36]byte // tables and snapshots
	Incompatible  uint64
}

// Incompatible features that change nothing of where data is: an unclean end, a
// compression, and tables of subclusters.
const harmless = 1<<0 | 1<<3 | 1<<4

// sizeOfQCOW2 reads a header, and refuses an image that makes QEMU open other
// files: its backing file and an external data file are paths of its maker's choice.
func sizeOfQCOW2(f io.ReaderAt) (int64, error) {
	var h qcow2
	if err := binary.Read(io.NewSectionReader(f, 0, int64(binary.Size(h))), binary.BigEndian, &h); err != nil {
		return 0, errors.New("it is shorter than the header of qcow2")
	}
	if h.Version == 2 {
		h.Incompatible = 0 // tables begin there
	}
	switch {
	case string(h.Magic[:]) != "QFI\xfb":
		return 0, errors.New("it is not in the format qcow2: name it .raw if it is a plain disk")
	case h.Version != 2 && h.Version != 3:
		return 0, fmt.Errorf("it is of version %d of qcow2, 2 and 3 are known", h.Version)
	case h.BackingOffset != 0 || h.BackingSize != 0:
		return 0, errors.New("it has a backing file: make one without, by qemu-img convert -O qcow2")
	case h.Incompatible&^harmless != 0:
		return 0, errors.New("it has data in another file, or features that are not known: convert it, by qemu-img convert -O qcow2")
	case h.CryptMethod != 0:
		return 0, errors.New("it is encrypted: convert it, by qemu-img convert -O qcow2")
	case h.Size == 0 || h.Size > mostDisk || h.Size%sector != 0:
		return 0, fmt.Errorf("its disk has %d bytes", h.Size)
	}
	return int64(h.Size), nil
}

// mostDisk is far above what requests may state.
const mostDisk = 1 << 50

// What images and disks leave free of a file system: one part in so many of what it has
// for files, and no more than so many bytes.
const (
	reserve     = 10
	mostReserve = 4 << 30
)

// roomIn is how many bytes images and disks may still take of a file system.
func roomIn(fs *unix.Statfs_t) int64 {
	forFiles := fs.Blocks - fs.Bfree + fs.Bavail // without what is root's alone
	return int64(fs.Bavail)*fs.Bsize - min(int64(forFiles)*fs.Bsize/reserve, mostReserve)
}

// taking keeps whoever takes room from what another was just told is free.
var taking sync.Mutex

// NewLayer makes what a machine writes: a file without a name, in the format qcow2,
// for a disk of so many bytes. It goes when nobody has it open any more. The room
// is taken at once where the file system can.
func (s *Store) NewLayer(size int64) (*os.File, error) {
	fd, err := unix.Open(s.Dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a machine's disk in %s: %w", s.Dir, err)
	}
	f := os.NewFile(uintptr(fd), "layer")
	if err := TakeRoom(s.Dir, size, func() error { return FormatLayer(f, size) }); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// TakeRoom has take allocate so many bytes of the file system of a directory, if
// there is room for them.
func TakeRoom(dir string, size int64, take func() error) error {
	taking.Lock()
	defer taking.Unlock()
	if err := room(dir, size); err != nil {
		return err
	}
	return take()
}

// ErrNoDisk says that a disk does not fit on the host.
var ErrNoDisk = errors.New("the host has too little room for the node's disk")

// room says why a directory has none for a disk of so many bytes.
func room(dir string, size int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("make a disk: %w", err)
	}
	if free := roomIn(&fs); free < size {
		return fmt.Errorf("%w of %s: state a smaller one, take an image whose own is smaller, or another host", ErrNoDisk, inBinary(size))
	}
	return nil
}

// inBinary writes bytes in the largest unit of which they are whole ones.
func inBinary(bytes int64) string {
	unit := 0
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	for ; unit+1 < len(units) && bytes > 0 && bytes%1024 == 0; unit++ {
		bytes /= 1024
	}
	return fmt.Sprintf("%d %s", bytes, units[unit])
}

// FormatLayer makes an empty disk of a file, and takes its room.
func FormatLayer(f *os.File, size int64) error {
	if err := format(f, size); err != nil {
		return err
	}
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("take room for a machine's disk: %w", err)
	}
	return nil
}

// CheckLayer refuses a disk that a machine wrote to, if it is of another size or
// makes QEMU open other files: an emulator that its machine has broken writes any.
func CheckLayer(f *os.File, size int64) error {
	have, err := sizeOfQCOW2(f)
	if err == nil && have != (size+sector-1)/sector*sector {
		err = fmt.Errorf("its disk has %d bytes instead of %d", have, size)
	}
	return err
}

// format makes an empty disk of a file.
func format(f *os.File, size int64) error {
	cmd := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "/proc/self/fd/3", fmt.Sprint((size+sector-1)/sector*sector))
	cmd.ExtraFiles = []*os.File{f}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a machine's disk: %w: %s", err, out)
	}
	return nil
}
