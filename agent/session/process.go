package session

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Spec is what to run, and the client's terminal.
type Spec struct {
	Argv []string `json:"argv"`
	TTY  bool     `json:"tty,omitempty"`  // run on a terminal
	Rows uint16   `json:"rows,omitempty"` // of that terminal; 0: 24
	Cols uint16   `json:"cols,omitempty"` // 0: 80
	Term string   `json:"term,omitempty"` // the client's TERM
	// Detach leaves it running: the session ends when it was started.
	Detach bool `json:"detach,omitempty"`
	// User is whom of the node's users it runs as; "": whom the node was given.
	User string `json:"user,omitempty"`
}

var termPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}$`)

func (s Spec) check() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("start command: no command given")
	}
	if s.Detach && s.TTY {
		return errors.New("start command: one that is left running has no terminal")
	}
	if s.Term != "" && !termPattern.MatchString(s.Term) {
		return fmt.Errorf("start command: %q is not a terminal type", s.Term)
	}
	return nil
}

// process is a running command and our ends of its streams.
type process struct {
	cmd     *exec.Cmd
	program Program
	stdin   *os.File
	outputs map[frameType]*os.File
	tty     *os.File // both of the above, on a terminal; else nil

	done   chan struct{} // closed when the command has ended
	mu     sync.Mutex
	reaped bool
}

// launch starts cmd as the leader of a session of its own. On a terminal that
// is its controlling one, which forks through nsenter and unshare keep.
func launch(cmd *exec.Cmd, spec Spec) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Setpgid = false // a session's leader leads its group already
	p := &process{cmd: cmd, outputs: map[frameType]*os.File{}, done: make(chan struct{})}
	start := p.startPipes
	if spec.TTY {
		start = p.startTTY
	}
	if err := start(spec); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	go p.wait()
	return p, nil
}

func (p *process) startTTY(spec Spec) error {
	if spec.Term != "" {
		p.cmd.Env = append(p.cmd.Environ(), "TERM="+spec.Term)
	}
	size := &pty.Winsize{Rows: spec.Rows, Cols: spec.Cols}
	if size.Rows == 0 || size.Cols == 0 {
		size.Rows, size.Cols = 24, 80
	}
	tty, err := pty.StartWithSize(p.cmd, size)
	if err != nil {
		return err
	}
	p.tty, p.stdin, p.outputs[frameStdout] = tty, tty, tty
	return nil
}

func (p *process) startPipes(Spec) error {
	var pipes [3][2]*os.File // by file descriptor of the command: read end, write end
	for i := range pipes {
		var err error
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			for _, pipe := range pipes {
				closeAll(pipe[:]...)
			}
			return err
		}
	}
	p.stdin, p.outputs[frameStdout], p.outputs[frameStderr] = pipes[0][1], pipes[1][0], pipes[2][0]
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pipes[0][0], pipes[1][1], pipes[2][1]
	err := p.cmd.Start()
	closeAll(pipes[0][0], pipes[1][1], pipes[2][1])
	if err != nil {
		p.close()
	}
	return err
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close() // a nil file answers with an error, which is fine here
	}
}

// close releases our ends, which unblocks whoever reads or writes them.
func (p *process) close() {
	closeAll(p.stdin, p.outputs[frameStdout], p.outputs[frameStderr])
}

// wait notes the end but leaves the zombie: while it is there, nobody else can
// get its number, nor the number of its group and session. It waits in the
// poller: a thread for each of a thousand sessions would stay.
func (p *process) wait() {
	defer close(p.done)
	fd, err := unix.PidfdOpen(p.cmd.Process.Pid, unix.PIDFD_NONBLOCK)
	if err != nil { // a kernel before 5.10
		ended(unix.P_PID, p.cmd.Process.Pid, 0)
		return
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	defer file.Close()
	raw, err := file.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool { return ended(unix.P_PIDFD, int(fd), unix.WNOHANG) })
	}
	if err != nil {
		ended(unix.P_PID, p.cmd.Process.Pid, 0)
	}
}

// ended says whether a child has ended; without WNOHANG it waits for that.
func ended(kind, id, options int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOWAIT|options, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN): // of a pidfd that does not block: it lives
			return false
		default:
			return err != nil || info.Signo != 0
		}
	}
}

// reap collects the exit code once done is closed. It follows the shell: 128 +
// the number of the signal that ended the command.
func (p *process) reap() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	_ = p.cmd.Wait() // the state says it all
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + uint32(status.Signal())
	}
	return uint32(p.cmd.ProcessState.ExitCode())
}

// signal reaches the command's process group.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

func (p *process) resize(rows, cols uint16) {
	if p.tty != nil {
		_ = pty.Setsize(p.tty, &pty.Winsize{Rows: rows, Cols: cols})
	}
}

// hangupGrace is what a command gets between SIGHUP and SIGKILL when its
// client is gone: enough for a shell to write its history.
const hangupGrace = 250 * time.Millisecond

// hangUp ends the command and everything it started; call it before reap.
func (p *process) hangUp() {
	before := familyOf(p.cmd.Process.Pid)
	p.signal(syscall.SIGHUP)
	p.signal(syscall.SIGCONT)
	select {
	case <-p.done:
	case <-time.After(hangupGrace):
	}
	if p.program.Kill != nil {
		p.program.Kill()
	} else {
		p.killFamily(before)
	}
	<-p.done
}

// killFamily kills the processes of before, and members of the session that
// were born meanwhile; each round kills all there are, and only a fork bomb needs
// many.
func (p *process) killFamily(before family) {
	before.kill()
	for range 100 {
		family := familyOf(p.cmd.Process.Pid)
		if len(family) == 0 {
			return
		}
		family.kill()
		time.Sleep(time.Millisecond)
	}
}
