package kernel

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// VTY speaks to a daemon of FRR over the socket that vtysh uses: a command
// ends with a zero byte; an answer with three, and the command's status.
type VTY struct {
	conn  net.Conn
	in    *bufio.Reader
	limit VTYLimit
}

// VTYLimit bounds each answer.
type VTYLimit struct {
	Time  time.Duration
	Bytes int
}

// DialVTY reaches a daemon whose socket is in a directory. The socket is not
// reached through a link, since the directory may be a tenant's.
func DialVTY(dir, daemon string, limit VTYLimit) (*VTY, error) {
	conn, err := dialSocket(filepath.Join(dir, daemon+".vty"), limit.Time)
	if err != nil {
		return nil, fmt.Errorf("reach %s of FRR: %w", daemon, err)
	}
	v := &VTY{conn, bufio.NewReader(conn), limit}
	if _, err := v.Ask("enable"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return v, nil
}

func dialSocket(path string, within time.Duration) (net.Conn, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("%s is no socket", path)
	}
	return net.DialTimeout("unix", fmt.Sprintf("/proc/self/fd/%d", fd), within)
}

// Close ends the connection.
func (v *VTY) Close() { _ = v.conn.Close() }

// Peer is the process that listens at the other end, as the kernel noted when
// it began to listen; an error if it cannot tell.
func (v *VTY) Peer() (pid int, err error) {
	raw, err := v.conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var asked error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); asked == nil {
			pid = int(cred.Pid)
		}
	})
	return pid, errors.Join(err, asked)
}

// Ask runs a command, within the limits for the whole answer.
func (v *VTY) Ask(command string) ([]byte, error) {
	_ = v.conn.SetDeadline(time.Now().Add(v.limit.Time))
	if _, err := v.conn.Write(append([]byte(command), 0)); err != nil {
		return nil, fmt.Errorf("ask FRR %q: %w", command, err)
	}
	var answer []byte
	for zeros := 0; zeros < 3; {
		b, err := v.in.ReadByte()
		if err != nil {
			return nil, fmt.Errorf("ask FRR %q: %w", command, err)
		}
		if b == 0 {
			zeros++
			continue
		}
		zeros = 0
		if answer = append(answer, b); len(answer) > v.limit.Bytes {
			return nil, fmt.Errorf("ask FRR %q: more than %d KiB of answer", command, v.limit.Bytes>>10)
		}
	}
	status, err := v.in.ReadByte()
	if err != nil || status != 0 {
		return nil, fmt.Errorf("ask FRR %q: status %d: %w", command, status, err)
	}
	return answer, nil
}
