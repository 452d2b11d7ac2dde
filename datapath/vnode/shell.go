package vnode

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// A node that is no machine has a console too: a shell on a terminal, which begins
// when somebody attaches and lives until it ends by itself or with the node. What
// keeps the terminal is a process of its own, as a supervisor is: root of the host,
// outside of the node's process namespace, in the node's control group.
type terminal struct {
	session
	Console string `json:"console"` // path of the socket
	Ptmx    uint   `json:"ptmx"`    // descriptor of the terminal's other end
}

const (
	shellCommand = "shell"
	shellGroup   = "console" // inside the node's
	defaultTerm  = "xterm"
)

// shells are looked for in this order.
var shells = []string{"bash", "sh"}

// openShell sees to it that there is a console of a node without a machine.
func (p *Part) openShell(key string, given plan.Setup, term string) error {
	lock := p.shells.of(key)
	lock.Lock()
	defer lock.Unlock()
	if conn, err := dialConsole(p.consolePath(key)); err == nil {
		return conn.Close()
	}
	owner, err := p.host.Owner(key)
	if err != nil {
		return fmt.Errorf("the node is not here: %w", err)
	}
	if given, err = p.whole(given); err != nil {
		return err
	}
	spaces, err := p.open(key)
	if err != nil {
		return err
	}
	defer closeAll(spaces)
	return p.startShell(key, given, owner, cmp.Or(term, defaultTerm), spaces)
}

// startShell starts the process that keeps the console, and waits until it has begun.
// Its descriptors are the terminal, the pipe, the terminal's other end and the
// namespaces.
func (p *Part) startShell(key string, given plan.Setup, owner uint32, term string, spaces []*os.File) error {
	if err := kernel.MkdirAll(p.host.Dir(setupKind), 0o700); err != nil {
		return err
	}
	group := p.host.Group(key).Sub(shellGroup)
	if err := group.Make(); err != nil {
		return err
	}
	ptmx, tty, err := pty.Open()
	if err != nil {
		return fmt.Errorf("make a terminal: %w", err)
	}
	defer closeAll([]*os.File{ptmx, tty})
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		return err
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	id, node, _ := plan.ParseNamespace(key)
	s := terminal{Console: p.consolePath(key), Ptmx: readyPipe + 1, session: session{
		Node: node, Hosts: p.namesPath(plan.Fabric(id)), FRR: p.host.FRRDirs(key), Run: p.host.Run, Program: p.program, TTY: true,
		Groups: group.Files(), Group: group.Files()[0], Env: variables(given.Setup), Dir: given.Workdir, As: given.User, Order: keepLast, Memory: p.host.Group(key).MemoryFiles(),
	}}
	for i := range spaces {
		s.Rooms = append(s.Rooms, fmt.Sprintf("/proc/self/fd/%d", readyPipe+2+i))
	}
	cmd := exec.Command(kernel.Inner(), InitCommand, shellCommand)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = "/", tty, tty, tty
	cmd.ExtraFiles = append([]*os.File{theirs, ptmx}, spaces...)
	cmd.Env = append(environment(owner, node), "TERM="+term, oneProcessor+"=1", kernel.SpecVariable+"="+encode(s))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("start the console: %w", err)
	}
	late := time.AfterFunc(answerTries*answerTime, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	go func() { _ = cmd.Wait() }() // as long as the shell lives, or this program
	said, err := io.ReadAll(ready)
	if len(said) > 0 {
		err = errors.New(string(said))
	}
	return err
}

// run is the life of the process that keeps a console. What the terminal sends to
// its leader is for the shell.
func (s *terminal) run() error {
	// Caught, not ignored: what is ignored the shell's commands would ignore too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	pipe := os.NewFile(readyPipe, "ready")
	unix.CloseRange(readyPipe, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(keepLast), 0)
	os.Unsetenv(oneProcessor)
	s.answers = new(*rings)
	child, err := s.begin()
	if err == nil {
		var c *console
		if c, err = openConsole(s.Console); err == nil {
			ptmx := os.NewFile(uintptr(s.Ptmx), "terminal")
			c.started(ptmx)
			go c.follow(ptmx)
		}
	}
	if err != nil {
		fmt.Fprint(pipe, err)
		return err
	}
	pipe.Close()
	_, err = child.Wait()
	time.Sleep(slowest) // for what it wrote last
	return errors.Join(err, s.handOver(), os.Remove(s.Console))
}

// begin starts the first shell that the node has.
func (s *terminal) begin() (child *os.Process, err error) {
	for _, name := range shells {
		one := s.session
		one.Argv = []string{name}
		if one.findsItself() {
			one.Argv = shells[len(shells)-1:] // where it is, is known inside only
		}
		entered := make(chan bool)
		go func() {
			defer close(entered)
			child, err = one.enter([]*os.File{os.Stdin, os.Stdout, os.Stderr}) // its thread ends with it
		}()
		if <-entered; child != nil || err != nil {
			return child, err
		}
	}
	return nil, errors.New("the node has no shell")
}

// follow passes on what is written to a terminal.
func (c *console) follow(ptmx *os.File) {
	text := make([]byte, 4<<10)
	for {
		n, err := ptmx.Read(text)
		c.wrote(text[:n])
		if err != nil {
			return
		}
	}
}

func dialConsole(path string) (*net.UnixConn, error) {
	name, dir, err := socketName(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
}

// fit gives the terminal of a console the size of the one that this process is on,
// now and when that changes.
func fit(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var keeper *unix.Ucred
	if failed := raw.Control(func(fd uintptr) { keeper, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); failed != nil || err != nil {
		return errors.Join(failed, err)
	}
	// It is the same process as long as the connection is.
	tty, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/0", keeper.Pid), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	size := func() error { return pty.InheritSize(os.Stdin, tty) }
	go func() {
		for range changed {
			_ = size() // the console has ended
		}
	}()
	return size()
}
