package session

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// specTimeout bounds how long an upgraded client may take to say what it wants.
const specTimeout = 10 * time.Second

// Program is a command, not started, and what is to be done with what it starts.
type Program struct {
	*exec.Cmd
	Kill func() // ends it and all that it started; nil: its descendants, and members of its session, are killed
	Done func() // called when it has ended, or could not be started; nil: nothing
}

// Serve answers one request to run a command. start makes the command out of
// what the client asked for, and chooses where it runs; its error is shown to
// the client. Serve returns when the command has ended and the client knows its
// exit code, or when the client is gone (or the server's base context ended) and
// the command and all that it started is killed.
func Serve(w http.ResponseWriter, r *http.Request, start func(spec Spec) (Program, error)) {
	f, err := accept(w, r)
	if err != nil {
		return // answered
	}
	defer f.conn.Close()
	p, err := begin(f, start)
	if err != nil {
		f.fail(err)
		f.closeWrite()
		_, _ = io.Copy(io.Discard, f.conn)
		return
	}
	s := &server{framer: f, process: p, stdin: newBuffer(stdinWindow), gone: make(chan struct{})}
	s.run(r.Context())
}

// begin reads the spec and starts its command.
func begin(f *framer, start func(Spec) (Program, error)) (*process, error) {
	spec, err := f.readSpec()
	if err != nil {
		return nil, err
	}
	program, err := start(spec)
	if err != nil {
		return nil, err
	}
	p, err := launch(program.Cmd, spec)
	if err != nil {
		program.done()
		return nil, err
	}
	p.program = program
	return p, nil
}

func (p Program) done() {
	if p.Done != nil {
		p.Done()
	}
}

func (f *framer) readSpec() (Spec, error) {
	var spec Spec
	_ = f.conn.SetReadDeadline(time.Now().Add(specTimeout))
	t, payload, err := f.read()
	if err != nil {
		return spec, err
	}
	_ = f.conn.SetReadDeadline(time.Time{})
	if t != frameSpec {
		return spec, unexpected(t)
	}
	if err := json.Unmarshal(payload, &spec); err != nil {
		return spec, fmt.Errorf("read command: %w", err)
	}
	return spec, spec.check()
}

// server is one running session.
type server struct {
	*framer
	process *process
	stdin   *buffer
	gone    chan struct{} // closed when the client is
}

func (s *server) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	var inward, outward sync.WaitGroup
	inward.Go(s.receive)
	inward.Go(s.feed)
	for t, file := range s.process.outputs {
		outward.Go(func() { s.forward(t, file) })
	}
	select {
	case <-s.process.done:
		s.drain(&outward)
	case <-s.gone:
	}
	if s.isGone() {
		s.process.hangUp()
		s.drain(&outward)
	}
	code := s.process.reap()
	s.process.program.done()
	s.stdin.discard()
	s.process.close()
	_ = s.writeUint32(frameExit, code) // fails only if the client is gone
	s.closeWrite()
	inward.Wait()
}

func (s *server) isGone() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// drain waits until the rest of the output is sent or the client is gone.
func (s *server) drain(outward *sync.WaitGroup) {
	for _, file := range s.process.outputs {
		_ = file.SetReadDeadline(time.Now())
	}
	outward.Wait()
}

// receive reads what the client sends until it is gone or misbehaves.
func (s *server) receive() {
	defer close(s.gone)
	for {
		t, payload, err := s.read()
		if err == nil {
			err = s.handle(t, payload)
		}
		if err != nil {
			s.conn.Close() // unblocks forward
			return
		}
	}
}

func (s *server) handle(t frameType, payload []byte) error {
	switch {
	case t == frameStdin && len(payload) == 0:
		s.stdin.finish(nil)
	case t == frameStdin:
		return s.stdin.offer(payload)
	case t == frameResize && len(payload) == 4:
		s.process.resize(binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:]))
	case t == frameSignal && len(payload) == 1:
		s.process.signal(syscall.Signal(payload[0]))
	default:
		return unexpected(t)
	}
	return nil
}

// feed moves standard input to the command, and credit back to the client.
// When the command no longer reads, the rest is taken and thrown away, as a
// closed pipe would.
func (s *server) feed() {
	data := make([]byte, chunk)
	broken := false
	for {
		n, err := s.stdin.Read(data)
		if err != nil {
			s.endInput(err)
			return
		}
		if !broken {
			_, err := s.process.stdin.Write(data[:n])
			broken = err != nil
		}
		if s.writeUint32(frameCredit, uint32(n)) != nil {
			return
		}
	}
}

// endInput passes the end of standard input on; a terminal has a character for it.
func (s *server) endInput(err error) {
	switch {
	case err != io.EOF:
	case s.process.tty != nil:
		const endOfTransmission = 4
		_, _ = s.process.tty.Write([]byte{endOfTransmission})
	default:
		s.process.stdin.Close()
	}
}

// quiet is how long an output must be silent after the command's end for us to
// believe that only a background process still holds it open.
const quiet = 200 * time.Millisecond

// forward sends one output until it ends, or, once a deadline says that the
// command has ended, until it is quiet.
func (s *server) forward(t frameType, file *os.File) {
	data := make([]byte, chunk)
	ended := false
	for {
		n, err := file.Read(data)
		switch {
		case n > 0:
			if s.write(t, data[:n]) != nil {
				s.throwAway(file, data)
				return
			}
		case errors.Is(err, os.ErrDeadlineExceeded) && !ended:
			ended = true
		case err != nil: // the end, EIO of a terminal without users, or quiet
			return
		}
		if ended {
			_ = file.SetReadDeadline(time.Now().Add(quiet))
		}
	}
}

// throwAway keeps a command from blocking on output nobody will see while it
// is being ended.
func (s *server) throwAway(file *os.File, data []byte) {
	for {
		if _, err := file.Read(data); err != nil {
			return
		}
	}
}
