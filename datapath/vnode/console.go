package vnode

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/term"
)

// console is the serial line of a machine, or the terminal of a shell: what is written
// there goes to all who are attached, and what they write goes to it. That of a machine
// lives as long as the supervisor, so
// that nobody has to attach again when the machine starts anew.
type console struct {
	mu     sync.Mutex
	in     *os.File // of the machine that runs
	recent []byte   // its last output, for those who come
	all    map[net.Conn]bool
}

const (
	mostRecent   = 4 << 10 // bytes
	mostAttached = 16
	slowest      = 100 * time.Millisecond // who takes longer to read is let go
)

// openConsole makes a console behind a socket.
func openConsole(path string) (*console, error) {
	name, dir, err := socketName(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, fmt.Errorf("make the console: %w", err)
	}
	c := &console{all: make(map[net.Conn]bool)}
	go c.serve(l)
	return c, nil
}

// consolePath is the socket of the console of a node's machine, in a directory that
// is root's.
func (p *Part) consolePath(key string) string {
	return filepath.Join(p.host.Dir(setupKind), fmt.Sprintf("console-%x", sha256.Sum256([]byte(key)))[:32])
}

// socketName is a name of a socket that is short enough (unix(7)), as long as its
// directory is open.
func socketName(path string) (string, *os.File, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), dir, nil
}

func (c *console) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if c.enter(conn) {
			go c.read(conn)
		} else {
			conn.Close()
		}
	}
}

// enter shows what was written last.
func (c *console) enter(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= mostAttached {
		return false
	}
	c.all[conn] = true
	c.send(conn, c.recent)
	return true
}

// send is called under the lock.
func (c *console) send(conn net.Conn, text []byte) {
	_ = conn.SetWriteDeadline(time.Now().Add(slowest))
	if _, err := conn.Write(text); err != nil {
		delete(c.all, conn)
		conn.Close()
	}
}

// read passes on what somebody writes. A machine that does not read keeps them
// waiting, and nobody else.
func (c *console) read(conn net.Conn) {
	text := make([]byte, 512)
	for {
		n, err := conn.Read(text)
		if err != nil {
			break
		}
		c.mu.Lock()
		in := c.in
		c.mu.Unlock()
		if in != nil {
			_, _ = in.Write(text[:n]) // a machine that has ended reads nothing
		}
	}
	c.mu.Lock()
	delete(c.all, conn)
	c.mu.Unlock()
	conn.Close()
}

// started takes the input of a machine that has been started.
func (c *console) started(in *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in != nil {
		c.in.Close()
	}
	c.in = in
}

// wrote passes on what the machine writes.
func (c *console) wrote(text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.all {
		c.send(conn, text)
	}
	c.recent = append(c.recent, text...)
	if n := len(c.recent) - mostRecent; n > 0 {
		c.recent = append([]byte(nil), c.recent[n:]...)
	}
}

// attached is a session at a console.
type attached struct {
	Groups  []string `json:"groups"`  // cgroup.procs files to join
	Console string   `json:"console"` // path of the socket
	TTY     bool     `json:"tty,omitempty"`
	Shell   bool     `json:"shell,omitempty"` // it is no machine's
}

const attachCommand = "attach"

// leave is what ends a session on a terminal, as it does in telnet(1): Ctrl-].
const leave = 0x1d

// Attach prepares a session at the console of a node, a machine's serial line or a
// shell: its streams are what is written there, and what is written to it.
func (p *Part) Attach(key string, o Options) (*Command, error) {
	p.busy.RLock() // nobody sweeps what is not begun
	defer p.busy.RUnlock()
	given, err := p.setupOf(key)
	if err == nil && !given.Machine() {
		err = p.openShell(key, given, o.Term)
	}
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", key, err)
	}
	c := p.newCommand(key)
	if err = c.group().Make(); err == nil {
		err = c.become(attachCommand, attached{Groups: c.group().Files(), Console: p.consolePath(key), TTY: o.TTY, Shell: !given.Machine()})
	}
	if err != nil {
		c.Done()
		return nil, fmt.Errorf("attach to %s: %w", key, err)
	}
	c.Env = append(c.Env, searchPath)
	return c, nil
}

// run is the session's process.
func (s attached) run() error {
	conn, err := dialConsole(s.Console)
	if err != nil {
		return errors.New("the node has no console now: it is being started, or has ended")
	}
	defer conn.Close()
	if s.TTY {
		if _, err := term.MakeRaw(int(os.Stdin.Fd())); err != nil {
			return err
		}
		if s.Shell {
			if err := fit(conn); err != nil {
				return err
			}
		}
	}
	over := make(chan error, 2)
	go func() {
		_, err := io.Copy(os.Stdout, conn)
		over <- err
	}()
	go func() { over <- s.typed(conn) }()
	return <-over
}

// typed passes on what is typed, until that is over.
func (s attached) typed(conn net.Conn) error {
	text := make([]byte, 512)
	for {
		n, err := os.Stdin.Read(text)
		for _, b := range text[:n] {
			if b == leave && s.TTY {
				return nil
			}
		}
		if _, err := conn.Write(text[:n]); err != nil {
			return nil
		}
		if errors.Is(err, io.EOF) {
			time.Sleep(slowest) // for the machine's echo
			return nil
		}
		if err != nil {
			return err
		}
	}
}
