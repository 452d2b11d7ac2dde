package test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
	f = append(f, // to an address of netlink, or to none, as datapath/kernel sends and others do: see isNetlink
		unix.SockFilter{Code: equal, K: unix.SYS_SENDTO, Jf: 5},
		unix.SockFilter{Code: load, K: argument(5)},
		unix.SockFilter{Code: equal, K: sizeofSockaddrNetlink, Jt: 1},
		unix.SockFilter{Code: equal, K: 0, Jf: 1},
		unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF},
		unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
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
