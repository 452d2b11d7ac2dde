package ofswitch

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// rights that a switch keeps when it is confined. CAP_NET_ADMIN is for large buffers
// of packet sockets and for programs on ports that come later: it can make no netlink
// socket, and those that it has were opened without that right, so it changes no
// device and no route (netlink(7)).
func rights(cache bool) uint64 {
	keep := uint64(1)<<unix.CAP_NET_RAW | 1<<unix.CAP_NET_ADMIN
	if cache {
		keep |= 1 << unix.CAP_BPF
	}
	return keep
}

// Confine gives up for good, for the whole process, what a running switch does not
// need, so that who takes it over through a controller's message has not much: all
// files but those of the working directory, all rights but those above, and all
// system calls but those of confine_calls.go. It is called when the switch is open.
func (s *Switch) Confine() error {
	if err := errors.Join(unix.Chroot("."), unix.Chdir("/")); err != nil {
		return fmt.Errorf("give up files: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("give up core dumps: %w", err)
	}
	if err := keepRights(rights(s.cache != nil)); err != nil {
		return fmt.Errorf("give up rights: %w", err)
	}
	policy, err := calls(s.cache != nil)
	if err != nil {
		return err
	}
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: policy})
}

// keepRights takes all others from every thread. A program with cgo cannot, by what
// package syscall says.
func keepRights(keep uint64) error {
	for right := uintptr(0); right < 64; right++ {
		if keep>>right&1 != 0 {
			continue
		}
		if _, _, e := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, right, 0); e == unix.EINVAL {
			break // there is none of that number
		} else if e != 0 {
			return e
		}
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	low, high := uint32(keep), uint32(keep>>32)
	data := &[2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0); e != 0 {
		return e
	}
	return nil
}

// harmless runs f, which opens a netlink socket, without CAP_NET_ADMIN: the socket
// only reads, whatever rights who writes to it without an address has
// (netlink_ns_capable in the kernel).
func harmless(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	less := data
	less[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	if err := unix.Capset(&header, &less[0]); err != nil {
		return err
	}
	return errors.Join(f(), unix.Capset(&header, &data[0]))
}
