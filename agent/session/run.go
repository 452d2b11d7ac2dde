package session

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Streams are the near ends of a command's streams; each may be nil.
// Signals, if any, are passed on to the command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Signals  <-chan os.Signal
}

// Run runs a command by POST path on a fresh connection, which it owns, and
// returns its exit code (128 + number for a signal). With spec.TTY and a
// terminal as In, that terminal is raw meanwhile and its size and TERM are the
// command's; if In is not a terminal the command gets one of 24 x 80. A context
// that ends breaks the session off, which kills the command; the error is then
// the context's. The error is a *Failure if the server refused.
//
// A Read of In still waiting when the command has ended is given up if In is
// an *os.File; another Reader keeps one goroutine until it returns.
func Run(ctx context.Context, conn net.Conn, path string, spec Spec, streams Streams) (exit int, err error) {
	terminal := terminalOf(spec, streams.In)
	if terminal != nil {
		spec.Cols, spec.Rows = terminal.size()
		if spec.Term == "" {
			spec.Term = os.Getenv("TERM")
		}
	}
	c, err := open(ctx, conn, path, spec)
	if err != nil {
		return -1, err
	}
	restore, err := terminal.raw()
	if err != nil {
		c.close()
		return -1, err
	}
	defer restore()
	in := newInput(streams.In)
	defer in.close()
	done := make(chan struct{})
	var helpers sync.WaitGroup
	helpers.Go(func() { c.pass(done, streams.Signals, terminal) })
	if in.file != nil {
		helpers.Go(func() { c.copyInput(in) })
	} else {
		go c.copyInput(in)
	}
	exit, err = c.receive(orDiscard(streams.Out), orDiscard(streams.Err))
	err = cause(ctx, err)
	close(done)
	c.close()
	in.interrupt()
	helpers.Wait()
	return exit, err
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// copyInput sends In and its end.
func (c *client) copyInput(input io.Reader) {
	data := make([]byte, chunk)
	for {
		n, err := input.Read(data)
		if n > 0 {
			if _, err := c.send(data[:n]); err != nil {
				return // the session is over; receive says why
			}
		}
		if err != nil {
			_ = c.endInput()
			return
		}
	}
}

// pass sends signals and changes of the terminal's size until done.
func (c *client) pass(done <-chan struct{}, signals <-chan os.Signal, terminal *terminal) {
	resized := make(chan os.Signal, 1)
	if terminal != nil {
		signal.Notify(resized, unix.SIGWINCH)
		defer signal.Stop(resized)
	}
	for {
		var err error
		select {
		case <-done:
			return
		case s, ok := <-signals:
			if number, is := s.(syscall.Signal); is {
				err = c.signal(number)
			} else if !ok {
				signals = nil
			}
		case <-resized:
			cols, rows := terminal.size()
			err = c.resize(int(rows), int(cols))
		}
		if err != nil {
			return
		}
	}
}

// terminal is the user's.
type terminal struct{ fd int }

func terminalOf(spec Spec, in io.Reader) *terminal {
	file, ok := in.(*os.File)
	if !ok || !spec.TTY || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &terminal{fd: int(file.Fd())}
}

// size of a terminal that does not know its own is 0, 0.
func (t *terminal) size() (cols, rows uint16) {
	width, height, err := term.GetSize(t.fd)
	if err != nil {
		return 0, 0
	}
	return uint16(width), uint16(height)
}

// raw hands every key to the command; restore undoes it. Without a terminal
// there is nothing to do.
func (t *terminal) raw() (restore func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	old, err := term.MakeRaw(t.fd)
	if err != nil {
		return nil, errors.New("make the terminal raw: " + err.Error())
	}
	return func() { _ = term.Restore(t.fd, old) }, nil
}
