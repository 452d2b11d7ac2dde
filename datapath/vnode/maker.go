package vnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/datapath/kernel"
	"sublet/internal/proc"
)

// maker is a helper process inside a user namespace. It is kernel.Inner,
// started as "__init namespaces" with a socket; each byte it gets asks for one
// network namespace, which it sends back. It ends when the socket closes.
type maker struct {
	cmd  *exec.Cmd
	conn *os.File
}

const (
	makerCommand = "namespaces"
	makerSocket  = 3 // the first of exec.Cmd.ExtraFiles

	// answerTime is how long a helper may take at once; it mostly takes a
	// millisecond. On a machine that is busy starting, 2 s were too short: one
	// that is not stopped gets answerTries times as long.
	answerTime  = 2 * time.Second
	answerTries = 5
)

// startMaker starts a helper in the user namespace of a file, which is made
// if it is missing.
func startMaker(path string, owner image.Owner) (*maker, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	patience := unix.NsecToTimeval(answerTime.Nanoseconds())
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return nil, errors.Join(fmt.Errorf("bound the wait for a helper: %w", err), unix.Close(pair[0]), unix.Close(pair[1]))
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "maker"), os.NewFile(uintptr(pair[1]), "maker")
	defer theirs.Close()
	m := &maker{conn: ours}
	userns, err := kernel.OpenNamespace(path)
	if err == nil {
		m.cmd, err = enterOwner(userns, theirs)
		userns.Close()
	} else if errors.Is(err, os.ErrNotExist) {
		m.cmd, err = makeOwner(path, owner, theirs)
	}
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start a helper for user %d: %w", owner.UID, err)
	}
	return m, nil
}

// makeOwner starts the helper in a new user namespace and gives that a file.
func makeOwner(path string, owner image.Owner, socket *os.File) (*exec.Cmd, error) {
	cmd := exec.Command(kernel.Inner(), InitCommand, makerCommand)
	cmd.ExtraFiles, cmd.Env, cmd.Stderr = []*os.File{socket}, []string{}, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER,
		UidMappings:                users(owner.UID, owner.Base),
		GidMappings:                users(owner.GID, owner.Base),
		GidMappingsEnableSetgroups: true,
		// It never becomes the tenant, who could stop it: it stays the
		// agent's user, with the one right it needs in there.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	userns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	if err == nil {
		err = kernel.BindConcealed(userns, path)
		userns.Close()
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return nil, err
	}
	return cmd, nil
}

// users maps root inside to id outside, and the others to a range that is theirs
// alone. For root itself it is the first 65536 users, as on the host, without the
// host's capabilities.
func users(id, base uint32) []syscall.SysProcIDMap {
	const one = 1
	switch {
	case id == 0 && base == 0:
		return []syscall.SysProcIDMap{{Size: rangeSize}}
	case base == 0:
		return []syscall.SysProcIDMap{{HostID: int(id), Size: one}}
	}
	return []syscall.SysProcIDMap{{HostID: int(id), Size: one}, {ContainerID: one, HostID: int(base) + one, Size: rangeSize - one}}
}

// nobodyGroup is Debian's nogroup.
const nobodyGroup = 65534

// groupOf is a user's own group; nobody's if the host does not know the user.
func groupOf(uid uint32) int {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nobodyGroup
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nobodyGroup
	}
	return gid
}

// enterOwner starts the helper in an existing user namespace. A Go program
// cannot enter one itself, it has threads; nsenter(1) can, but the helper is
// then the tenant's process, who may stop it.
func enterOwner(userns, socket *os.File) (*exec.Cmd, error) {
	exe, err := os.Open(kernel.Inner())
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	cmd := exec.Command("nsenter", "--user=/proc/self/fd/4", "--", "/proc/self/fd/5", InitCommand, makerCommand)
	cmd.ExtraFiles, cmd.Env, cmd.Stderr = []*os.File{socket, userns, exe}, []string{}, os.Stderr
	return cmd, cmd.Start()
}

// namespace asks the helper for a network namespace.
func (m *maker) namespace() (*os.File, error) {
	fd := int(m.conn.Fd())
	if err := unix.Sendto(fd, []byte{1}, unix.MSG_NOSIGNAL, nil); err != nil {
		return nil, fmt.Errorf("ask the helper: %w", err)
	}
	text, oob := make([]byte, 256), make([]byte, unix.CmsgSpace(4))
	n, oobn, err := m.hear(text, oob)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("the helper says %q", text[:n])
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("the helper sent no namespace: %v", err)
	}
	return os.NewFile(uintptr(fds[0]), "network namespace"), nil
}

// hear waits for an answer. Of a helper that its tenant has stopped there will
// be none.
func (m *maker) hear(text, oob []byte) (n, oobn int, err error) {
	began := time.Now()
	for range answerTries {
		n, oobn, _, _, err = unix.Recvmsg(int(m.conn.Fd()), text, oob, unix.MSG_CMSG_CLOEXEC)
		if err == nil {
			return n, oobn, nil
		}
		helper, _ := proc.Living(m.cmd.Process.Pid)
		if !errors.Is(err, unix.EAGAIN) || helper.Stopped {
			break
		}
	}
	if errors.Is(err, unix.EAGAIN) {
		err = fmt.Errorf("no answer within %s: %w", time.Since(began).Round(time.Second), errSilent)
	}
	return 0, 0, fmt.Errorf("hear from the helper: %w", err)
}

// errSilent says that a helper lives and does not answer.
var errSilent = errors.New("it is stopped, or the machine is overloaded")

// close ends the helper, by force if it does not end by itself.
func (m *maker) close() {
	m.conn.Close()
	late := time.AfterFunc(answerTime, func() { m.cmd.Process.Kill() })
	defer late.Stop()
	m.cmd.Wait()
}

// A helper's first goroutine keeps the process's first thread. Any other thread
// ends with the goroutine that locks it; that one would stay, in a namespace
// that it would keep alive.
func init() {
	if len(os.Args) > 2 && os.Args[1] == InitCommand && os.Args[2] == makerCommand {
		runtime.LockOSThread()
	}
}

// makeNamespaces is the helper's life. Every namespace is made by a thread of
// its own, which ends, so that the helper keeps none of them alive.
func makeNamespaces() error {
	ask := make([]byte, 1)
	for {
		n, _, err := unix.Recvfrom(makerSocket, ask, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ECONNRESET) || err == nil && n == 0 {
			return nil // the agent is gone
		}
		if err != nil {
			return err
		}
		sent := make(chan error)
		go func() {
			runtime.LockOSThread() // for good
			sent <- sendNamespace()
		}()
		if err := <-sent; errors.Is(err, unix.EPIPE) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// sendNamespace makes one and sends it, or says why not.
func sendNamespace() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return unix.Sendmsg(makerSocket, []byte("unshare: "+err.Error()), nil, nil, 0)
	}
	ns, err := kernel.Current()
	if err != nil {
		return unix.Sendmsg(makerSocket, []byte(err.Error()), nil, nil, 0)
	}
	defer ns.Close()
	return unix.Sendmsg(makerSocket, []byte{0}, unix.UnixRights(int(ns.Fd())), nil, 0)
}
