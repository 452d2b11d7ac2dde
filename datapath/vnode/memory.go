package vnode

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/plan"
)

// A machine that keeps its disk goes to another host with its memory, too: it stands
// still, its emulator writes what it is to a file beside the disk, and ends; the next
// emulator goes on from there. The file is read once. What does not fit, as memory of
// another version of the emulator, leaves a machine that begins from its disk, as after
// a power failure.
const (
	memoryFile  = "memory"
	savedMemory = "memory" // in an archive
)

// suspendTime is how long a machine may take to write its memory. An agent does nothing
// else to its host's nodes meanwhile.
const suspendTime = 20 * time.Second

func (p *Part) memoryPath(key string) string { return filepath.Join(p.keptDir(key), memoryFile) }

// suspend has a machine that is carried write its memory, and end. One that does not
// is stopped by who calls.
func (p *Part) suspend(s plan.Setup) {
	key := s.Key()
	pid := p.supervisorOf(key)
	if _, err := os.Lstat(p.stillPath(key)); err == nil || pid == 0 || !s.Machine() || !s.Keeps() {
		return
	}
	if image.TakeRoom(p.Kept, p.host.Group(key).Memory(), func() error { return nil }) != nil {
		return
	}
	unix.Kill(pid, suspendSignal)
	for end := time.Now().Add(suspendTime); p.supervisorOf(key) == pid && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}

// suspendSignal tells a supervisor to end with its machine's memory written.
const suspendSignal = unix.SIGUSR1

// suspend writes the memory of the machine that runs. It has its name when it is whole,
// and the machine then runs no more.
func (s *supervisor) suspend() error {
	control := s.control.Load()
	if s.Machine == nil || s.Machine.Asleep == "" || control == nil {
		return errors.New("nothing runs that keeps it")
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	err = errors.Join(control.ask("getfd", map[string]any{"fdname": savedMemory}, theirs), theirs.Close())
	if err == nil {
		err = control.ask("stop", nil, nil)
	}
	// Since a copy that ended it would wait before its end for a word that nobody says. An
	// emulator that does not know these never had them.
	_ = control.liveCapabilities(false)
	if err == nil {
		err = control.ask("migrate-set-parameters", map[string]any{"max-bandwidth": 1 << 40}, nil)
	}
	if err == nil {
		err = control.ask("migrate", map[string]any{"uri": "fd:" + savedMemory}, nil)
	}
	if err != nil {
		return err
	}
	part := s.Machine.Asleep + ".part"
	if err := write(part, ours, s.Machine.Memory<<20+machineState); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := control.until("query-migrate", "completed"); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, s.Machine.Asleep)
}

// machineState bounds what a machine is beside its memory, in bytes.
const machineState = 64 << 20

// write makes a file of what comes to an end, and does not go on beyond a bound.
func write(path string, from io.Reader, most int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(f, io.LimitReader(from, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("a machine's memory has more than %d bytes", most)
	}
	return errors.Join(err, f.Sync())
}

// asleep opens what a machine is to go on from, which nothing finds afterwards; nil: it
// begins anew.
func (s *supervisor) asleep() *os.File {
	if s.Machine.Asleep == "" {
		return nil
	}
	f, err := os.Open(s.Machine.Asleep)
	if err != nil {
		return nil
	}
	if os.Remove(s.Machine.Asleep) != nil { // it would be older than the disk the next time
		f.Close()
		return nil
	}
	return f
}

// goOn has a machine go on that has been given its memory.
func (s *supervisor) goOn(c *control) {
	if c.until("query-status", "paused") == nil && c.ask("cont", nil, nil) == nil {
		s.resuming.Store(false)
	}
}

// until waits until the emulator says that it is in a state.
func (c *control) until(question, state string) error {
	var is struct{ Status string }
	for end := time.Now().Add(suspendTime); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, err := c.execute(question, nil, nil)
		if err == nil {
			err = json.Unmarshal(text, &is)
		}
		if err != nil || is.Status == state {
			return err
		}
	}
	return fmt.Errorf("%s says %.50q, not %q", question, is.Status, state)
}

// control is how a supervisor speaks to its emulator (QEMU Machine Protocol).
type control struct {
	conn    *net.UnixConn
	answers chan answer
	ready   chan struct{} // closed: it takes commands
	mu      sync.Mutex    // one question at a time
}

type answer struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
}

// Bounds of what an emulator says, which may be the tenant's by now.
const (
	mostSaid   = 64 << 10 // bytes of one message
	answerWait = 15 * time.Second
)

// openControl makes one, and the emulator's end of it.
func openControl() (c *control, theirs *os.File, err error) {
	conn, theirs, err := pairOf()
	if err != nil {
		return nil, nil, err
	}
	c = &control{conn: conn, answers: make(chan answer, 1), ready: make(chan struct{})}
	go c.read()
	return c, theirs, nil
}

func (c *control) close() { c.conn.Close() }

// read takes in what the emulator says, so that it never waits. Greeting and events
// answer nothing.
func (c *control) read() {
	defer close(c.answers)
	lines := bufio.NewScanner(c.conn)
	lines.Buffer(nil, mostSaid)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			return
		}
		if a.Return == nil && a.Error == nil {
			continue
		}
		select {
		case c.answers <- a:
		default: // nobody asked
		}
	}
}

// ask has the emulator do something, with a file if it takes one.
func (c *control) ask(command string, arguments any, with *os.File) error {
	_, err := c.execute(command, arguments, with)
	return err
}

func (c *control) execute(command string, arguments any, with *os.File) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := map[string]any{"execute": command}
	if arguments != nil {
		said["arguments"] = arguments
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	var rights []byte
	if with != nil {
		rights = unix.UnixRights(int(with.Fd()))
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(answerWait))
	if _, _, err := c.conn.WriteMsgUnix(append(text, '\n'), rights, nil); err != nil {
		return nil, fmt.Errorf("tell the emulator: %w", err)
	}
	select {
	case a, is := <-c.answers:
		switch {
		case !is:
			return nil, errors.New("the emulator has ended")
		case a.Error != nil:
			return nil, fmt.Errorf("the emulator refuses %s: %.200q", command, a.Error.Desc)
		}
		return a.Return, nil
	case <-time.After(answerWait):
		c.close() // an answer that comes late is none of the next question
		return nil, fmt.Errorf("the emulator does not answer %s", command)
	}
}

// packMemory adds a machine's memory to an archive, if it has been written.
func (p *Part) packMemory(ctx context.Context, to *tar.Writer, key string) error {
	f, err := os.Open(p.memoryPath(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: savedMemory, Mode: 0o600, Size: info.Size(), Format: tar.FormatPAX}); err != nil {
		return err
	}
	return image.Copy(ctx, to, f, info.Size())
}

// bringMemory takes a machine's memory out of an archive, where it may follow the disk.
func (p *Part) bringMemory(ctx context.Context, key, dir string, from *tar.Reader) error {
	h, err := from.Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil || h.Name != savedMemory || h.Typeflag != tar.TypeReg || h.Size > p.host.Group(key).Memory() {
		return fmt.Errorf("%w: what follows the disk is not the memory of this machine", errors.Join(image.ErrArchive, err))
	}
	f, err := os.OpenFile(filepath.Join(dir, memoryFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := image.TakeRoom(p.Kept, h.Size, func() error { return image.Copy(ctx, f, from, h.Size) }); err != nil {
		return fmt.Errorf("take a machine's memory: %w", err)
	}
	if _, err := from.Next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more follows its memory", image.ErrArchive)
	}
	return f.Sync()
}
