package vnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// rings answers for a node's programs that ask for rings of packet sockets, as
// tcpdump(1) does. The kernel lets them wait (seccomp_unotify(2)), and this process,
// root of the host and outside of the node's process namespace, makes the ring on a
// duplicate of their socket, out of a copy of what they ask for: nothing of it can be
// changed after it was judged. All rings of a node's network are within a share of its
// memory. The kernel has the list of them, so whoever answers needs no book.
type rings struct {
	asked   *os.File // where the calls come
	network *os.File // of the node
	memory  kernel.MemoryFiles

	busy  sync.Mutex // of one answer, and of the end; whoever has it for good is the last
	ended bool       // and its files are closed
}

const (
	ringsCommand = "rings"
	// ringShare is the part of its memory that a node has of rings beside it; leastRings
	// is what it always has, twice what tcpdump takes, and unlimitedRings what one has
	// without a limit.
	ringShare      = 8
	leastRings     = 4 << 20
	unlimitedRings = 64 << 20
	// ringTurn is how long one answer may wait for others of the node.
	ringTurn = time.Second
)

// answerRings begins to answer for what is started in the node from now on.
func (s session) answerRings(asked *os.File) error {
	if asked == nil {
		return nil
	}
	network, err := os.Open(s.room("net"))
	if err != nil {
		return errors.Join(err, asked.Close())
	}
	r := &rings{asked: asked, network: network, memory: s.Memory}
	if s.answers != nil {
		*s.answers = r
	}
	go r.serve()
	return nil
}

// handOver leaves answers to a process of its own if the session ends before what it
// started.
func (s session) handOver() error {
	if s.answers == nil || *s.answers == nil {
		return nil
	}
	r := *s.answers
	r.busy.Lock() // for good: what was taken is answered
	if r.ended {
		return nil
	}
	if ended, err := r.wait(0); ended || err != nil {
		return err
	}
	spec, err := json.Marshal(r.memory)
	if err != nil {
		return err
	}
	cmd := exec.Command(kernel.Self, InitCommand, ringsCommand)
	cmd.Dir, cmd.Env = "/", []string{oneProcessor + "=1", kernel.SpecVariable + "=" + string(spec)}
	cmd.ExtraFiles = []*os.File{r.asked, r.network}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("leave a process for rings: %w", err)
	}
	return cmd.Process.Release()
}

// keepRings is the life of that process.
func keepRings() error {
	r := &rings{asked: os.NewFile(readyPipe, "rings"), network: os.NewFile(readyPipe+1, "network")}
	if err := kernel.ReadSpec(&r.memory); err != nil {
		return err
	}
	r.serve()
	return nil
}

// serve answers until all have ended that may ask. Its thread is in the node's network
// and ends with it.
func (r *rings) serve() {
	runtime.LockOSThread()
	defer r.end()
	book, err := kernel.Rings{}, unix.Setns(int(r.network.Fd()), unix.CLONE_NEWNET)
	if err == nil {
		if book, err = kernel.FindRings(); err == nil {
			defer book.Close()
		}
	}
	for {
		ended, failed := r.wait(-1)
		if ended || failed != nil {
			return
		}
		r.busy.Lock()
		r.next(book, err)
		r.busy.Unlock()
	}
}

func (r *rings) end() {
	r.busy.Lock()
	defer r.busy.Unlock()
	r.ended = true
	closeAll([]*os.File{r.asked, r.network})
}

// wait returns when somebody asks, or nobody is left who could.
func (r *rings) wait(milliseconds int) (ended bool, err error) {
	poll := []unix.PollFd{{Fd: int32(r.asked.Fd()), Events: unix.POLLIN}}
	for {
		_, err = unix.Poll(poll, milliseconds)
		if !errors.Is(err, unix.EINTR) {
			return poll[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0, err
		}
	}
}

// ringCall is struct seccomp_notif of linux/seccomp.h, ringAnswer seccomp_notif_resp.
type ringCall struct {
	id        uint64
	thread    uint32
	_         [5]uint32 // flags, number, architecture, place
	arguments [6]uint64
}

type ringAnswer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// next answers one call. Whoever asked may have ended meanwhile.
func (r *rings) next(book kernel.Rings, unable error) {
	var call ringCall
	if r.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&call)) != nil {
		return
	}
	err := unable
	if err == nil {
		err = r.make(book, call)
	}
	answer := ringAnswer{id: call.id}
	if err != nil {
		refused := unix.EPERM
		errors.As(err, &refused)
		answer.errno = -int32(refused)
	}
	_ = r.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
}

func (r *rings) ioctl(request uint, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, r.asked.Fd(), uintptr(request), uintptr(argument))
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}

// make makes a ring as setsockopt(2) does, whose arguments are socket, level, name,
// value and size.
func (r *rings) make(book kernel.Rings, call ringCall) error {
	socket, err := socketOf(int(call.thread), int(int32(call.arguments[0])))
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	option, err := optionOf(int(call.thread), uintptr(call.arguments[3]), int32(call.arguments[4]))
	if err != nil {
		return err
	}
	// The thread's number was another's if it has ended meanwhile.
	if err := r.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&call.id)); err != nil {
		return err
	}
	// What is sent in a namespace of the tenant's own is in no list here.
	if ours, err := book.Owns(socket); err != nil || !ours {
		return errors.Join(err, unix.EPERM)
	}
	done, err := r.turn()
	if err != nil {
		return err
	}
	defer done()
	held, err := book.Held()
	if err != nil {
		return err
	}
	if wanted := kernel.RingSize(option); wanted > 0 && held+wanted > r.most() {
		return unix.ENOMEM
	}
	return unix.SetsockoptString(socket, unix.SOL_PACKET, int(int32(call.arguments[2])), string(option))
}

// most is what all rings of the node may take.
func (r *rings) most() uint64 {
	limit := uint64(r.memory.Most())
	if limit == 0 {
		return unlimitedRings
	}
	return max(limit/ringShare, leastRings)
}

// turn keeps others who answer for the node from making rings at the same time. A
// tenant who locks their network namespace gets none.
func (r *rings) turn() (done func(), err error) {
	// A lock is of an open file, which processes share that inherit it.
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", r.network.Fd()))
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(ringTurn); ; time.Sleep(time.Millisecond) {
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { file.Close() }, nil
		}
		if time.Now().After(end) {
			file.Close()
			return nil, unix.EAGAIN
		}
	}
}

// socketOf duplicates a descriptor of another process. Before Linux 6.9 only those of a
// process's first thread can be had: a thread with others of its own gets the ring
// there, or none.
func socketOf(thread, fd int) (int, error) {
	const ofThread = unix.O_EXCL // PIDFD_THREAD
	process, err := unix.PidfdOpen(thread, ofThread)
	if errors.Is(err, unix.EINVAL) {
		process, err = unix.PidfdOpen(processOfThread(thread), 0)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(process)
	return unix.PidfdGetfd(process, fd, 0)
}

// processOfThread is the number of the process that a thread is of; 0: it has ended.
func processOfThread(thread int) int {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(thread), "status"))
	_, rest, _ := strings.Cut(string(text), "\nTgid:")
	line, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.Atoi(strings.TrimSpace(line))
	return n
}

// Sizes of struct tpacket_req and tpacket_req3.
const (
	leastOption = 16
	mostOption  = 28
)

// optionOf copies the value of an option; what is behind the largest one the kernel
// does not read.
func optionOf(thread int, at uintptr, size int32) ([]byte, error) {
	if size < leastOption {
		return nil, unix.EINVAL
	}
	option := make([]byte, min(size, mostOption))
	here := []unix.Iovec{{Base: &option[0]}}
	here[0].SetLen(len(option))
	n, err := unix.ProcessVMReadv(thread, here, []unix.RemoteIovec{{Base: at, Len: len(option)}}, 0)
	if err == nil && n < len(option) {
		err = unix.EFAULT
	}
	return option, err
}
