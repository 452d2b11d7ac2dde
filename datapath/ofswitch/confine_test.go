package ofswitch

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/openflow/pipeline"
)

// confinedVariable tells this test's process that it is the one to be confined, and
// with which datapath.
const confinedVariable = "SUBLET_TEST_CONFINED"

// A confined switch reads devices and opens packet sockets, and nothing that it could
// do to the machine is left to it.
func TestConfine(t *testing.T) {
	if os.Getenv(confinedVariable) == "" {
		confinedProcess(t, "process")
		confinedProcess(t, "kernel")
		return
	}
	confined(t, os.Getenv(confinedVariable) == "kernel")
}

func confinedProcess(t *testing.T, datapath string) {
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestConfine$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), confinedVariable+"="+datapath), t.TempDir()
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Errorf("%s: %v: %s", datapath, err, out)
	}
}

func confined(t *testing.T, inKernel bool) {
	runtime.LockOSThread() // the thread ends with its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip(err)
	}
	s, err := New(Config{Pipeline: pipeline.Config{DatapathID: 0xc0f, Tables: 1, Entries: 1}, Kernel: inKernel, Ports: []string{"lo"}, Log: func(err error) { t.Log(err) }})
	if err != nil {
		t.Skip(err)
	}
	defer s.Close()
	if err := s.Confine(); errors.Is(err, syscall.ENOTSUP) {
		t.Skip("a program with cgo cannot be confined")
	} else if err != nil {
		t.Fatal(err)
	}
	if _, err := s.conn.LinkByName("lo"); err != nil {
		t.Errorf("it does not see devices: %v", err)
	}
	if d, err := openIndex("lo", 1, 1, false); err != nil {
		t.Errorf("it opens no packet socket: %v", err)
	} else {
		unix.Close(d.fd)
	}
	if err := s.conn.Do(kernel.DownLink(1)); !errors.Is(err, unix.EPERM) {
		t.Errorf("it changes devices: %v", err)
	}
	for name, attempt := range attempts() {
		if err := attempt(); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func attempts() map[string]func() error {
	return map[string]func() error{
		"a netlink socket": func() error { _, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0); return err },
		"a program":        func() error { return exec.Command("/bin/true").Run() },
		"a file":           func() error { _, err := os.ReadFile("/etc/passwd"); return err },
		"another root":     func() error { return unix.Chroot("/") },
		"a mount":          func() error { return unix.Mount("x", "/", "tmpfs", 0, "") },
		"a namespace":      func() error { return unix.Unshare(unix.CLONE_NEWNET) },
		"a namespace by clone": func() error {
			_, _, e := syscall.RawSyscall(unix.SYS_CLONE, unix.CLONE_NEWNET|uintptr(unix.SIGCHLD), 0, 0)
			return e
		},
		"a signal":  func() error { return unix.Kill(os.Getppid(), 0) },
		"a process": func() error { return unix.PtraceAttach(os.Getppid()) },
		"rules of the firewall": func() error {
			return unix.SetsockoptString(socketOf(), unix.IPPROTO_IP, 64, strings.Repeat("x", 200))
		},
		"a message to an address": func() error {
			return unix.Sendto(socketOf(), []byte{0}, 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
		},
		"code": func() error {
			_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
			return err
		},
		"a program in the kernel": func() error {
			_, _, e := syscall.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, 0, 0)
			return e
		},
	}
}

func socketOf() int {
	fd, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	return fd
}
