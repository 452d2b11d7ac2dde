package vnode

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine takes the calling thread, and all that it starts, system calls by which a
// node gets at what no namespace divides or no control group counts. The thread must
// have given up new privileges. A kernel without filters is left as it is.
//
//   - Keys are counted for each user, and a node has 65536 users: with them it could
//     take gigabytes of the kernel's memory.
//   - Sockets of other families than those of networks: those of virtual machines
//     (AF_VSOCK) are in no network namespace, and what others hold is not counted.
//   - io_uring makes sockets that a filter does not see.
//   - Namespaces of control groups: whoever has one of their own may mount hierarchies,
//     and sees the host's root group of those in which the node has none. clone3(2)
//     states them by a pointer; C libraries then take clone(2).
//   - Rings of packet sockets, which no control group counts: what the filter returns
//     is where they are asked for (rings); nil where that is not possible. They are
//     refused then.
func confine() (asked *os.File, err error) {
	if nodeFilter(allow) == nil {
		return nil, nil
	}
	notify := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF}
	listener, errno := install(nodeFilter(notify), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errno == 0 {
		return os.NewFile(listener, "rings"), nil
	}
	// There may be another listener of the thread's (EBUSY), or none may be.
	_, errno = install(nodeFilter(refuse(unix.EPERM)), 0)
	if errno == 0 || errors.Is(errno, unix.ENOSYS) || errors.Is(errno, unix.EINVAL) {
		return nil, nil
	}
	return nil, fmt.Errorf("keep the node off calls of the kernel that are not divided: %w", errno)
}

func install(filter []unix.SockFilter, flags uintptr) (uintptr, unix.Errno) {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Speculation stays as it was: the filter keeps no secrets.
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW|flags, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	return listener, errno
}

// families are those of the sockets that a node may make.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET}

// calls are the numbers of system calls on an architecture. request_key and keyctl
// follow add_key, and io_uring has one number, everywhere.
type calls struct {
	arch                       uint32
	addKey, socket, socketpair uint32
	// socketcall is the call of i386 that does all of this by a pointer, which a
	// filter cannot follow; 0: there is none.
	socketcall     uint32
	unshare, clone uint32
	setsockopt     [2]uint32 // the second is x32's; where there is none, the same twice
}

// Calls that have one number everywhere.
const (
	ioUringSetup = unix.SYS_IO_URING_SETUP
	clone3       = unix.SYS_CLONE3
)

// callsOf has, for each architecture, its own numbers and those of its 32-bit programs
// (syscall_64.tbl, syscall_32.tbl, asm-generic/unistd.h, arm/tools/syscall.tbl).
var callsOf = map[string][]calls{
	"amd64": {{unix.AUDIT_ARCH_X86_64, 248, 41, 53, 0, 272, 56, [2]uint32{54, 541}}, {unix.AUDIT_ARCH_I386, 286, 359, 360, 102, 310, 120, [2]uint32{366, 366}}},
	"arm64": {{unix.AUDIT_ARCH_AARCH64, 217, 198, 199, 0, 97, 220, [2]uint32{208, 208}}, {unix.AUDIT_ARCH_ARM, 309, 281, 288, 0, 337, 120, [2]uint32{294, 294}}},
}

// x32 marks calls of the other numbering of AUDIT_ARCH_X86_64, which has these numbers, too.
const x32 = 0x40000000

// nodeFilter has a part for each architecture; rings is what becomes of calls that
// ask for rings of packet sockets.
func nodeFilter(rings unix.SockFilter) (filter []unix.SockFilter) {
	for _, c := range callsOf[runtime.GOARCH] {
		part := c.filter(rings)
		filter = append(filter, load(archOfCall), jump(unix.BPF_JEQ, c.arch, 0, uint8(len(part))))
		filter = append(filter, part...)
	}
	if filter == nil {
		return nil
	}
	return append(filter, refuse(unix.ENOSYS))
}

func (c calls) filter(rings unix.SockFilter) []unix.SockFilter {
	f := []unix.SockFilter{
		load(numberOfCall),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: ^uint32(x32)},
		jump(unix.BPF_JGE, c.addKey, 0, 2),
		jump(unix.BPF_JGE, c.addKey+3, 1, 0),
		refuse(unix.EPERM),
		jump(unix.BPF_JEQ, ioUringSetup, 1, 0),
		jump(unix.BPF_JEQ, clone3, 0, 1),
		refuse(unix.ENOSYS),
		jump(unix.BPF_JEQ, c.unshare, 1, 0),
		jump(unix.BPF_JEQ, c.clone, 0, 4),
		load(firstArgument),
		jump(unix.BPF_JSET, unix.CLONE_NEWCGROUP, 0, 1),
		refuse(unix.EPERM),
		allow,
		jump(unix.BPF_JEQ, c.setsockopt[0], 1, 0),
		jump(unix.BPF_JEQ, c.setsockopt[1], 0, 7),
		load(secondArgument),
		jump(unix.BPF_JEQ, unix.SOL_PACKET, 0, 4),
		load(thirdArgument),
		jump(unix.BPF_JEQ, unix.PACKET_RX_RING, 1, 0),
		jump(unix.BPF_JEQ, unix.PACKET_TX_RING, 0, 1),
		rings,
		allow,
	}
	if c.socketcall != 0 {
		f = append(f, jump(unix.BPF_JEQ, c.socketcall, 0, 1), refuse(unix.ENOSYS))
	}
	f = append(f,
		jump(unix.BPF_JEQ, c.socket, 2, 0),
		jump(unix.BPF_JEQ, c.socketpair, 1, 0),
		allow,
		load(firstArgument),
	)
	for i, family := range families {
		f = append(f, jump(unix.BPF_JEQ, family, uint8(len(families)-i), 0))
	}
	return append(f, refuse(unix.EAFNOSUPPORT), allow)
}

// Places in struct seccomp_data; of an argument its lower half, on these architectures.
const (
	numberOfCall   = 0
	archOfCall     = 4
	firstArgument  = 16
	secondArgument = 24
	thirdArgument  = 32
)

var allow = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}

func refuse(with unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(with)}
}

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func jump(kind uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | kind | unix.BPF_K, K: k, Jt: yes, Jf: no}
}
