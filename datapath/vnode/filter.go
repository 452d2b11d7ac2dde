package vnode

import (
	"errors"
	"fmt"
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
func confine() error {
	filter := nodeFilter()
	if filter == nil {
		return nil
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Speculation stays as it was: the filter keeps no secrets.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno == 0 || errors.Is(errno, unix.ENOSYS) || errors.Is(errno, unix.EINVAL) {
		return nil
	}
	return fmt.Errorf("keep the node off calls of the kernel that are not divided: %w", errno)
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
}

// Calls that have one number everywhere.
const (
	ioUringSetup = unix.SYS_IO_URING_SETUP
	clone3       = unix.SYS_CLONE3
)

// callsOf has, for each architecture, its own numbers and those of its 32-bit programs
// (syscall_64.tbl, syscall_32.tbl, asm-generic/unistd.h, arm/tools/syscall.tbl).
var callsOf = map[string][]calls{
	"amd64": {{unix.AUDIT_ARCH_X86_64, 248, 41, 53, 0, 272, 56}, {unix.AUDIT_ARCH_I386, 286, 359, 360, 102, 310, 120}},
	"arm64": {{unix.AUDIT_ARCH_AARCH64, 217, 198, 199, 0, 97, 220}, {unix.AUDIT_ARCH_ARM, 309, 281, 288, 0, 337, 120}},
}

// x32 marks calls of the other numbering of AUDIT_ARCH_X86_64, which has these numbers, too.
const x32 = 0x40000000

// nodeFilter has a part for each architecture.
func nodeFilter() (filter []unix.SockFilter) {
	for _, c := range callsOf[runtime.GOARCH] {
		part := c.filter()
		filter = append(filter, load(archOfCall), jump(unix.BPF_JEQ, c.arch, 0, uint8(len(part))))
		filter = append(filter, part...)
	}
	if filter == nil {
		return nil
	}
	return append(filter, refuse(unix.ENOSYS))
}

func (c calls) filter() []unix.SockFilter {
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
	numberOfCall  = 0
	archOfCall    = 4
	firstArgument = 16
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
