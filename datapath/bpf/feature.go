package bpf

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Features tries out what the programs of the datapath need, in a namespace of
// its own. It needs root.
func Features() []kernel.Feature {
	return append(vital(),
		kernel.Feature{Name: "AF_XDP sockets", Err: lacking(tryXSK()), Means: "hosting and OpenFlow switches have no xdp ports; packet sockets and TAP devices work (Linux 5.10)"},
		kernel.Feature{Name: "io_uring", Err: lacking(tryUring()), Means: "hosting switches make two calls for each frame of a TAP device; with it many share one (Linux 6.4)"},
		kernel.Feature{Name: "tunnel headers in queues", Err: lacking(tryCounting()), Means: "rates of links between hosts are corrected by what queues do not count (Linux 6.17)"},
		kernel.Feature{Name: "bpf file system", Needed: true, Err: lacking(tryFS()), Means: "networks do not outlive their agent"},
	)
}

// vital are those that older kernels lack and no lease between hosts works without.
func vital() []kernel.Feature {
	return []kernel.Feature{
		{Name: "program links (TCX)", Needed: true, Err: lacking(tryTCX()), Means: "no link between hosts, router or switch works (Linux 6.6)"},
		{Name: "redirect to peer", Needed: true, Err: lacking(features.HaveProgramHelper(ebpf.SchedCLS, asm.FnRedirectPeer)), Means: "no virtual link works (Linux 5.10)"},
		{Name: "room for headers", Needed: true, Err: lacking(features.HaveProgramHelper(ebpf.SchedCLS, asm.FnSkbAdjustRoom)), Means: "links between hosts do not work"},
	}
}

// tryTCX attaches a program that does nothing to a loopback.
func tryTCX() error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer p.Close()
	const loopback = 1
	ns, err := kernel.NewNamespace(func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: loopback, Program: p, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			return err
		}
		return l.Close()
	})
	if err != nil {
		return err
	}
	return ns.Close()
}

// tryXSK makes a socket and the table that a program finds it in.
func tryXSK() error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	unix.Close(fd)
	return features.HaveMapType(ebpf.XSKMap)
}

// tryUring makes a ring, which the system may forbid (kernel.io_uring_disabled).
func tryUring() error {
	var params [120]byte // struct io_uring_params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	switch errno {
	case 0:
		return unix.Close(int(fd))
	case unix.EPERM, unix.ENOSYS:
		return fmt.Errorf("%w (%w)", kernel.ErrNotSupported, errno)
	}
	return errno
}

// tryCounting asks whether queues count all headers of large packets. Agents ask
// too, when there are links between hosts; before that, veth may be a module
// that is not loaded.
func tryCounting() error {
	if kernel.Loadable("veth") {
		return errors.New("known when there are virtual links")
	}
	short, err := Undercounts()
	if short {
		return kernel.ErrNotSupported
	}
	return err
}

// tryFS mounts one where nobody looks.
func tryFS() error {
	dir, err := os.MkdirTemp("", "sublet-bpf")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := unix.Mount("sublet", dir, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return err
	}
	return unix.Unmount(dir, unix.MNT_DETACH)
}

// lacking makes the library's and the kernel's ways to say so ours.
func lacking(err error) error {
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w (%w)", kernel.ErrNotSupported, err)
	}
	return err
}
