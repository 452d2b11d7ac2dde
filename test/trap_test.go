package test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
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

// trapVariable makes the test's own program install a filter and become the
// program in its arguments. Its value is the descriptor to hand the filter's
// listener over.
const trapVariable = "SUBLET_TEST_TRAP"

// answers says that reading netlink answers is trapped, too.
const answersVariable = "SUBLET_TEST_TRAP_ANSWERS"

func init() {
	value := os.Getenv(trapVariable)
	if value == "" {
		return
	}
	socket, err := strconv.Atoi(value)
	if err == nil {
		err = becomeTrapped(socket, os.Getenv(answersVariable) != "")
	}
	fmt.Fprintln(os.Stderr, "trap:", err)
	os.Exit(125)
}

func becomeTrapped(socket int, answers bool) error {
	runtime.LockOSThread() // the filter is this thread's; exec keeps this thread
	filter := trapFilter(answers)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	flags := unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uintptr(flags), uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("install a seccomp filter: %w", errno)
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return err
	}
	unix.CloseOnExec(socket)
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, trapVariable) {
			env = append(env, v)
		}
	}
	return unix.Exec(os.Args[1], os.Args[1:], env)
}

// Sizes by which netlink is told from other sockets: struct sockaddr_nl, and
// the buffer of datapath/kernel.
const (
	sizeofSockaddrNetlink = 12
	netlinkBuffer         = 64 << 10
)

var trapped = map[int]string{
	unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount", unix.SYS_MKDIRAT: "mkdir", unix.SYS_MKDIR: "mkdir",
	unix.SYS_UNLINKAT: "unlink", unix.SYS_RMDIR: "rmdir", unix.SYS_RENAMEAT: "rename", unix.SYS_RENAMEAT2: "rename",
	unix.SYS_UNSHARE: "unshare", unix.SYS_OPENAT: "create", unix.SYS_SENDTO: "netlink",
	unix.SYS_RECVFROM: "answer",
}

// trapFilter is the classic BPF program of the filter: struct seccomp_data has
// the number at 0 and the arguments from 16 on, the low word first.
func trapFilter(answers bool) []unix.SockFilter {
	const load, equal, set, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	argument := func(i int) uint32 { return uint32(16 + 8*i) }
	f := []unix.SockFilter{{Code: load, K: 0}}
	only := func(number, arg int, code uint16, k uint32) {
		f = append(f,
			unix.SockFilter{Code: equal, K: uint32(number), Jf: 4},
			unix.SockFilter{Code: load, K: argument(arg)},
			unix.SockFilter{Code: code, K: k, Jf: 1},
			unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF},
			unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
	}
	only(unix.SYS_SENDTO, 5, equal, sizeofSockaddrNetlink)
	only(unix.SYS_OPENAT, 2, set, unix.O_CREAT)
	if answers {
		only(unix.SYS_RECVFROM, 2, equal, netlinkBuffer)
	}
	for number := range trapped {
		if number != unix.SYS_SENDTO && number != unix.SYS_RECVFROM && number != unix.SYS_OPENAT {
			f = append(f,
				unix.SockFilter{Code: equal, K: uint32(number), Jf: 1},
				unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF})
		}
	}
	return append(f, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
}

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
	if tr.decide != nil {
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

func (n notification) describe() syscallInfo {
	s := syscallInfo{name: trapped[int(n.number)], fd: n.arguments[0]}
	switch n.number {
	case unix.SYS_SENDTO:
		s.text, s.read = describeNetlink(n.memory(n.arguments[1], int(min(n.arguments[2], 4096))))
	case unix.SYS_MOUNT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_OPENAT:
		s.text = n.string(n.arguments[1])
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		s.text = n.string(n.arguments[3])
	case unix.SYS_UMOUNT2, unix.SYS_RMDIR, unix.SYS_MKDIR:
		s.text = n.string(n.arguments[0])
	}
	return s
}

// memory reads from the process; short or nothing if it cannot.
func (n notification) memory(address uint64, size int) []byte {
	buffer := make([]byte, size)
	local := []unix.Iovec{{Base: &buffer[0]}}
	local[0].SetLen(size)
	got, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(address), Len: size}}, 0)
	if err != nil {
		return nil
	}
	return buffer[:got]
}

// string reads a path; it may end at the end of a page.
func (n notification) string(address uint64) string {
	const page = 4096
	text := n.memory(address, int(page-address%page))
	if len(text) < 256 {
		text = append(text, n.memory(address+uint64(len(text)), page)...)
	}
	s, _, _ := strings.Cut(string(text), "\x00")
	return s
}

var netlinkNames = []string{"new", "del", "get", "set"}
var netlinkKinds = map[uint16]string{
	16: "link", 20: "address", 24: "route", 28: "neighbour", 32: "rule",
	36: "qdisc", 40: "class", 44: "filter", 88: "nsid",
}

// describeNetlink tells what a request is: RTM_* types come in fours.
func describeNetlink(b []byte) (text string, read bool) {
	if len(b) < 16 {
		return "unreadable", false
	}
	kind := binary.NativeEndian.Uint16(b[4:])
	what, known := netlinkKinds[kind&^3]
	if !known {
		what = fmt.Sprint(kind &^ 3)
	}
	index := uint32(0)
	if len(b) >= 24 {
		index = binary.NativeEndian.Uint32(b[20:])
	}
	name := ""
	if kind&^3 == 16 && len(b) > 36 && binary.NativeEndian.Uint16(b[34:]) == unix.IFLA_IFNAME {
		name, _, _ = strings.Cut(string(b[36:min(len(b), 52)]), "\x00")
	}
	text = fmt.Sprintf("%s %s %s#%d", netlinkNames[kind&3], what, name, index)
	for size := int(binary.NativeEndian.Uint32(b)+3) &^ 3; size < len(b) && size > 0; {
		more, _ := describeNetlink(b[size:])
		return text + ", " + more, false
	}
	return text, kind&3 == 2
}

// The trap itself: no call is missed, of a child either; failing and killing work.
func TestTrap(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("seccomp filters take root")
	}
	dir := t.TempDir()
	script := "mkdir " + dir + "/a; mkdir " + dir + "/b; echo $?; mkdir " + dir + "/c; echo never"
	cmd := exec.Command("/bin/sh", "-c", script)
	var out strings.Builder
	cmd.Stdout = &out
	third := make(chan struct{})
	tr := startTrapped(t, cmd, false, func(c *exec.Cmd) error { return c.Start() })
	var seen []string
	tr.on(func(s syscallInfo) verdict {
		if s.name == "mkdir" {
			seen = append(seen, s.text)
		}
		switch s.text {
		case dir + "/b":
			return verdict{fail: unix.ENOSPC}
		case dir + "/c":
			close(third)
			return verdict{kill: true}
		}
		return pass
	})
	select {
	case <-third:
	case <-time.After(10 * time.Second):
		t.Error("never got to the third call")
	}
	tr.kill()
	tr.on(nil)
	if got := strings.Join(seen, " "); got != dir+"/a "+dir+"/b "+dir+"/c" || out.String() != "1\n" {
		t.Errorf("saw %q, output %q", got, out.String())
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": true} { // c: by the child that lived on
		if _, err := os.Stat(dir + "/" + name); (err == nil) != want {
			t.Errorf("directory %s: %v", name, err)
		}
	}
}
