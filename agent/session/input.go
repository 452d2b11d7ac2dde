package session

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// input is standard input of which a waiting Read can be given up if it is a
// file.
type input struct {
	reader io.Reader
	file   *os.File // nil if reader is not one
	// A pipe whose reading end is readable, for ever, once interrupted.
	wake, waker *os.File
}

func newInput(in io.Reader) *input {
	if in == nil {
		in = strings.NewReader("")
	}
	i := &input{reader: in}
	if file, ok := in.(*os.File); ok {
		if wake, waker, err := os.Pipe(); err == nil {
			i.file, i.wake, i.waker = file, wake, waker
		}
	}
	return i
}

// interrupt ends the Read that waits and all later ones.
func (i *input) interrupt() { closeAll(i.waker) }

// close frees what newInput took, when nobody reads any more.
func (i *input) close() { closeAll(i.waker, i.wake) }

func (i *input) Read(p []byte) (int, error) {
	if i.file != nil && !i.wait() {
		return 0, io.EOF
	}
	return i.reader.Read(p)
}

// wait says whether there is something to read, rather than a wake-up.
func (i *input) wait() bool {
	fds := []unix.PollFd{{Fd: -1, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}}
	poll := func(wake, file int) (err error) {
		fds[0].Fd, fds[1].Fd = int32(wake), int32(file)
		for {
			if _, err = unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	}
	err := control(i.wake, func(wake int) error {
		return control(i.file, func(file int) error { return poll(wake, file) })
	})
	return err == nil && fds[0].Revents == 0
}

// control calls do with a file's descriptor without changing its mode, as
// (*os.File).Fd would.
func control(file *os.File, do func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}
