package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Self is the running program.
const Self = "/proc/self/exe"

// inner is the program that does what follows InitCommand: this one, or a smaller
// one. A Go program sets up all of its packages whenever it starts, and an agent
// starts itself a few times for each node.
var inner = Self

// Inner is the path of that program, for a child of this process, which finds it by
// a descriptor that it loses when it has become it.
func Inner() string { return inner }

// innerFile is the descriptor of the inner program. Those below it are reserved:
// while a child is made, descriptors that it is to have move to numbers behind the
// highest of them (syscall.forkExec), of which there are far fewer than reserved.
const (
	innerFile = 1000
	reserved  = 16
)

// SetInner makes what follows InitCommand the work of a smaller program, which
// lies in memory: where the agent's files are, programs may be forbidden.
func SetInner(program []byte) error {
	file, err := memoryFile(program)
	if err != nil {
		return fmt.Errorf("keep the program of nodes in memory: %w", err)
	}
	defer file.Close()
	for number := innerFile - reserved; number <= innerFile; number++ {
		got, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, number)
		if err != nil {
			return fmt.Errorf("keep the program of nodes open: %w", err)
		}
		inner = fmt.Sprintf("/proc/self/fd/%d", got)
	}
	if err := tryInner(); err != nil {
		inner = Self
		return fmt.Errorf("start the program of nodes: %w", err)
	}
	return nil
}

// tryInner says whether the machine lets it be started. Without arguments it does
// nothing but complain.
func tryInner() error {
	err := exec.Command(inner).Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return nil
	}
	return err
}

// memoryFile is a program that nobody can change (memfd_create(2)).
func memoryFile(program []byte) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("sublet", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("sublet", flags)
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "sublet")
	_, err = file.Write(program)
	if err == nil {
		_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err == nil { // one that is open for writing cannot be started
		var read *os.File
		read, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
		err = errors.Join(err, file.Close())
		file = read
	}
	return file, err
}

// OnDisk is the path of the running program, or of what has taken its place since
// it started.
func OnDisk() (string, error) {
	path, err := os.Readlink(Self)
	return strings.TrimSuffix(path, " (deleted)"), err
}
