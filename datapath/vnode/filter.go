package vnode

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutKeys takes the calling thread, and all that it starts, the system calls of
// the kernel's keys. Keys are counted for each user, not in control groups, and a
// node has 65536 users: with them it could take gigabytes of the kernel's memory. The
// thread must have given up new privileges. A kernel without filters has none of that.
func withoutKeys() error {
	filter := keyFilter()
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
	return fmt.Errorf("keep the node off the kernel's keys: %w", errno)
}

// foreign are the calls that 32-bit programs on amd64 make: add_key, request_key and
// keyctl follow one another there, as they do everywhere (syscall_32.tbl).
const foreignAddKey = 286

// keyFilter refuses calls by number: data are the number and the architecture
// (struct seccomp_data).
func keyFilter() []unix.SockFilter {
	const number, arch, three = 0, 4, 3
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(what uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
	}
	jump := func(kind uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | kind | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	switch runtime.GOARCH {
	case "amd64":
		const x32 = ^uint32(0x40000000) // the other numbering of the same architecture
		return []unix.SockFilter{
			load(arch),
			jump(unix.BPF_JEQ, unix.AUDIT_ARCH_I386, 0, 3),
			load(number),
			jump(unix.BPF_JGE, foreignAddKey, 0, 5),
			jump(unix.BPF_JGE, foreignAddKey+three, 4, 5),
			load(number),
			{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: x32},
			jump(unix.BPF_JGE, unix.SYS_ADD_KEY, 0, 1),
			jump(unix.BPF_JGE, unix.SYS_ADD_KEY+three, 0, 1),
			answer(unix.SECCOMP_RET_ALLOW),
			answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)),
		}
	case "arm64":
		return []unix.SockFilter{
			load(number),
			jump(unix.BPF_JGE, unix.SYS_ADD_KEY, 0, 1),
			jump(unix.BPF_JGE, unix.SYS_ADD_KEY+three, 0, 1),
			answer(unix.SECCOMP_RET_ALLOW),
			answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)),
		}
	}
	return nil
}
