package live

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uring is an io_uring for reads and writes that do not wait: all that was put
// is done, in order, when run returns. So no buffer is the kernel's in between,
// and whichever thread may call. Entering the kernel takes a tenth of the time
// that it needs for a small frame; here up to 128 reads and writes share it.
type uring struct {
	fd      int
	files   int    // of its table; one more is for waitless
	rings   []byte // of submissions and of completions, shared with the kernel
	entries []byte // of submissions
	head    *uint32
	tail    *uint32
	mask    uint32
	done    completions
	put     uint32           // since the last run
	reads   uint32           // of them: each is answered; of writes only what fails
	results [uringJobs]int32 // by number of put: bytes read, 0 for what was written, or a negative errno
	broken  unix.Errno       // the kernel takes nothing any more
}

// completions is the ring of what was done.
type completions struct {
	head, tail *uint32
	mask       uint32
	all        []completion
}

// Structures and numbers of the kernel (linux/io_uring.h).
type (
	submission struct {
		opcode, flags uint8
		_             uint16
		file          int32
		offset, addr  uint64
		len, rwFlags  uint32
		number        uint64
		_             [3]uint64
	}
	completion struct {
		number uint64
		result int32
		_      uint32
	}
	uringOffsets struct{ head, tail, mask, entries, x, y, z, _, _, _ uint32 }
	uringParams  struct {
		submissions, completions, flags, _, _, features, _, _, _, _ uint32
		sq, cq                                                      uringOffsets
	}
)

const (
	uringJobs = 128 // in one run

	uringSubmitAll = 1 << 7 // a failure does not end a run
	uringCoop      = 1 << 8 // no interrupts
	uringSingleMap = 1 << 0
	uringAtEntries = 0x10000000
	uringGetEvents = 1 << 0
	uringFiles     = 2
	uringUpdate    = 6
	uringRead      = 22
	uringWrite     = 23
	uringFixedFile = 1 << 0
	uringSkip      = 1 << 6 // success is not told
	uringNoWait    = 8      // RWF_NOWAIT
)

// newUring makes a ring for so many files. What it uses came with Linux 5.19.
func newUring(files int) (u *uring, err error) {
	u = &uring{files: files}
	p := uringParams{flags: uringSubmitAll | uringCoop}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uringJobs, uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("make an io_uring: %w", errno)
	}
	u.fd = int(fd)
	if err = u.share(&p); err == nil {
		err = u.register(uringFiles, unsafe.Pointer(unsafe.SliceData(none(files+1))), files+1)
	}
	if err != nil {
		u.close()
		return nil, fmt.Errorf("set up an io_uring: %w", err)
	}
	return u, nil
}

// none is a table of files without any.
func none(n int) []int32 {
	table := make([]int32, n)
	for i := range table {
		table[i] = -1
	}
	return table
}

// share maps the rings.
func (u *uring) share(p *uringParams) (err error) {
	if p.features&uringSingleMap == 0 {
		return unix.EOPNOTSUPP
	}
	const how, kind = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	size := max(p.sq.z+4*p.submissions, p.cq.y+p.completions*uint32(unsafe.Sizeof(completion{})))
	if u.rings, err = unix.Mmap(u.fd, 0, int(size), how, kind); err != nil {
		return err
	}
	if u.entries, err = unix.Mmap(u.fd, uringAtEntries, int(p.submissions)*int(unsafe.Sizeof(submission{})), how, kind); err != nil {
		return err
	}
	u.head, u.tail, u.mask = u.word(p.sq.head), u.word(p.sq.tail), *u.word(p.sq.mask)
	u.done = completions{u.word(p.cq.head), u.word(p.cq.tail), *u.word(p.cq.mask), unsafe.Slice((*completion)(unsafe.Pointer(&u.rings[p.cq.y])), p.completions)}
	for i := range p.submissions { // the k-th entry is always in the k-th place
		*u.word(p.sq.z + 4*i) = i
	}
	return nil
}

func (u *uring) word(at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&u.rings[at])) }

func (u *uring) close() {
	if u == nil {
		return
	}
	for _, m := range [][]byte{u.rings, u.entries} {
		if m != nil {
			unix.Munmap(m)
		}
	}
	unix.Close(u.fd)
}

func (u *uring) register(what uintptr, p unsafe.Pointer, n int) error {
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(u.fd), what, uintptr(p), uintptr(n), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// file makes file fd the ring's file i, or none if fd is -1: a file that the
// ring has stays open.
func (u *uring) file(i, fd int) error {
	fds := []int32{int32(fd)}
	update := struct {
		offset, _ uint32
		fds       uint64
	}{offset: uint32(i), fds: uint64(uintptr(unsafe.Pointer(&fds[0])))}
	err := u.register(uringUpdate, unsafe.Pointer(&update), 1)
	runtime.KeepAlive(fds)
	return err
}

// full says that nothing more can be put before the next run.
func (u *uring) full() bool { return u.put == uringJobs }

// read puts a read of file i to b, which must be where it is, not on a stack,
// until run. It returns its number.
func (u *uring) read(i int, b []byte) int {
	u.reads++
	return u.add(uringRead, uringFixedFile, i, b, -int32(unix.EAGAIN))
}

// write puts a write.
func (u *uring) write(i int, b []byte) int {
	return u.add(uringWrite, uringFixedFile|uringSkip, i, b, 0)
}

func (u *uring) add(op, flags uint8, i int, b []byte, result int32) int {
	n := u.put
	at := *u.tail
	*u.entry(at) = submission{
		opcode: op, flags: flags, file: int32(i), offset: ^uint64(0),
		addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), len: uint32(len(b)), rwFlags: uringNoWait, number: uint64(n),
	}
	atomic.StoreUint32(u.tail, at+1)
	u.results[n] = result
	u.put++
	return int(n)
}

// run does what was put.
func (u *uring) run() {
	for *u.tail != atomic.LoadUint32(u.head) {
		if errno := u.enter(*u.tail-*u.head, 0); errno != 0 && errno != unix.EINTR {
			u.abandon(errno)
		}
	}
	for answered := u.reap(); answered < u.reads; answered += u.reap() { // what does not wait is done by now
		u.enter(0, u.reads-answered)
	}
	u.put, u.reads = 0, 0
}

// abandon takes back what the kernel has not begun: it has failed for want of
// memory.
func (u *uring) abandon(errno unix.Errno) {
	if errno != unix.EAGAIN && errno != unix.EBUSY && errno != unix.ENOMEM {
		u.broken = errno
	}
	head, tail := *u.head, *u.tail
	for at := head; at != tail; at++ {
		e := u.entry(at)
		u.results[e.number] = -int32(unix.ENOBUFS)
		if e.opcode == uringRead {
			u.reads--
		}
	}
	atomic.StoreUint32(u.tail, head)
}

func (u *uring) entry(at uint32) *submission {
	return (*submission)(unsafe.Pointer(&u.entries[uintptr(at&u.mask)*unsafe.Sizeof(submission{})]))
}

// waitless says whether the kernel reads and writes file fd without waiting
// here: TAP devices do since Linux 6.4. It reads nothing.
func (u *uring) waitless(fd int) bool {
	if u.file(u.files, fd) != nil {
		return false
	}
	n := u.read(u.files, make([]byte, 0, 1))
	u.run()
	return u.file(u.files, -1) == nil && u.results[n] == 0
}

// reap takes the answers that are there, and returns how many are of reads.
func (u *uring) reap() (reads uint32) {
	c := &u.done
	at := *c.head
	for end := atomic.LoadUint32(c.tail); at != end; at++ {
		e := &c.all[at&c.mask]
		if u.results[e.number] != 0 { // a read's, as it was put
			reads++
		}
		u.results[e.number] = e.result
	}
	atomic.StoreUint32(c.head, at)
	return reads
}

func (u *uring) enter(put, wait uint32) unix.Errno {
	var flags uintptr
	if wait > 0 {
		flags = uringGetEvents
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(u.fd), uintptr(put), uintptr(wait), flags, 0, 0)
	return errno
}
