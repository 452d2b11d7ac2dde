package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A trap stands between a process and the kernel: every system call that
// changes something, of every thread and child, waits for the test's decision
// (seccomp_unotify(2)). So the calls have one order, whatever thread makes
// them, each can be the last one, and none is missed.
type trap struct {
	cmd    *exec.Cmd
	listen int
	ended  chan struct{} // closed when the process is reaped

	mu     sync.Mutex
	decide func(syscallInfo) verdict
}

// syscallInfo is one trapped call.
type syscallInfo struct {
	child bool   // by a child of the process
	name  string // such as "mount", "netlink", "answer"
	fd    uint64 // of netlink and answer
	text  string // for people: what it would do
	read  bool   // a netlink request that changes nothing
}

func (s syscallInfo) String() string { return s.name + " " + s.text }

// verdict on a call: let it pass, let it fail without being done, or end the
// whole process before it is done.
type verdict struct {
	fail syscall.Errno
	kill bool
}

var pass = verdict{}

// startTrapped starts a program with a trap around it; start runs cmd.Start,
// in a namespace perhaps.
func startTrapped(t *testing.T, cmd *exec.Cmd, answers bool, start func(*exec.Cmd) error) *trap {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "trap")
	defer theirs.Close()
	defer unix.Close(pair[0])
	cmd.Args = append([]string{"trap", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/proc/self/exe"
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = append(cmd.Env, trapVariable+"=3")
	if answers {
		cmd.Env = append(cmd.Env, answersVariable+"=1")
	}
	if err := start(cmd); err != nil {
		t.Fatal(err)
	}
	tr := &trap{cmd: cmd, ended: make(chan struct{})}
	if tr.listen, err = receiveDescriptor(pair[0]); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if errors.Is(err, unix.EINVAL) {
			t.Skip("this kernel has no seccomp user notification")
		}
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait(); close(tr.ended) }()
	go tr.serve()
	return tr
}

func receiveDescriptor(socket int) (int, error) {
	text, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, text, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return 0, fmt.Errorf("no filter was handed over: %w", unix.EINVAL)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return fds[0], nil
}

// on sets who decides from now on; nil lets everything pass. Calls are
// decided one after the other.
func (tr *trap) on(decide func(syscallInfo) verdict) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.decide = decide
}

// kill ends the process at once and waits until it is gone.
func (tr *trap) kill() {
	_ = tr.cmd.Process.Kill()
	<-tr.ended
}

// notification is struct seccomp_notif (linux/seccomp.h).
type notification struct {
	id        uint64
	pid       uint32
	flags     uint32
	number    int32
	arch      uint32
	pc        uint64
	arguments [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// serve answers until the process and its children are gone.
func (tr *trap) serve() {
	defer unix.Close(tr.listen)
	for {
		fds := []unix.PollFd{{Fd: int32(tr.listen), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil || fds[0].Revents&unix.POLLIN == 0 {
			return // nobody is trapped any more
		}
		var asked notification
		if err := ioctl(tr.listen, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked)); err == nil {
			tr.answer(asked)
		}
	}
}

func ioctl(fd int, request uint, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument))
		switch errno {
		case 0:
			return nil
		case unix.EINTR: // the runtime's signals
		default:
			return errno
		}
	}
}

func (tr *trap) answer(asked notification) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	v := pass
	if tr.decide != nil && (asked.number != unix.SYS_SENDTO || asked.isNetlink()) {
		s := asked.describe()
		s.child = !tr.owns(asked.pid)
		v = tr.decide(s)
	}
	if v.kill {
		_ = tr.cmd.Process.Kill()
		if tr.owns(asked.pid) {
			return // the call is never made: its thread dies waiting
		}
	}
	r := response{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if v.fail != 0 {
		r.flags, r.errno = 0, -int32(v.fail)
	}
	_ = ioctl(tr.listen, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // ENOENT: it died
}

// owns says that a thread is the process's own, not a child's.
func (tr *trap) owns(thread uint32) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", tr.cmd.Process.Pid, thread))
	return err == nil
}
