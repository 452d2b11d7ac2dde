package vnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of sending a machine that runs. A machine that changes so fast that more than
// mostCopied times its memory or its disk would have to be sent is not sent: its
// processors are slowed down before that (auto-converge).
const (
	liveBandwidth = 100 << 20 // bytes a second
	liveDowntime  = 100       // ms that the rest may take
	mostCopied    = 5
	liveStands    = 10 * time.Second
	liveLook      = 5 * time.Millisecond
)

// openDoor takes what agents tell a machine's supervisor.
func (s *supervisor) openDoor(path string) error {
	name, dir, err := socketName(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := gone(os.Remove(name)); err != nil {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return fmt.Errorf("make the machine's door: %w", err)
	}
	go func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			go s.hear(conn)
		}
	}()
	return nil
}

// hear does what an agent says, and stops when that has gone. What is said last ends what
// is being done.
func (s *supervisor) hear(conn *net.UnixConn) {
	defer conn.Close()
	word, with, err := readWord(conn)
	if err != nil {
		return
	}
	stop := s.newest()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = conn.Read(make([]byte, 1)) // it says no more
	}()
	s.obeying.Lock()
	defer s.obeying.Unlock()
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-over:
		case <-stop:
		case <-s.ending:
		case <-done:
			return
		}
		cut(with) // an emulator that waits for the other side goes on
	}()
	said := doorDone
	if err := s.obey(word, with, func() bool { return isClosed(over) || isClosed(stop) || s.isEnding() }); err != nil {
		said = err.Error()
		cut(with)
	}
	close(done)
	<-watched
	with.Close()
	_, _ = conn.Write([]byte(said)) // one who has gone hears nothing
}

// newest is closed when something is said later.
func (s *supervisor) newest() chan struct{} {
	s.latest.Lock()
	defer s.latest.Unlock()
	if s.stopLatest != nil {
		close(s.stopLatest)
	}
	s.stopLatest = make(chan struct{})
	return s.stopLatest
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// cut ends both directions of a socket, whoever has it.
func cut(f *os.File) { _ = unix.Shutdown(int(f.Fd()), unix.SHUT_RDWR) }

func readWord(conn *net.UnixConn) (word string, with *os.File, err error) {
	text, rights := make([]byte, mostWord), make([]byte, unix.CmsgSpace(4))
	_ = conn.SetReadDeadline(time.Now().Add(answerWait))
	n, m, _, _, err := conn.ReadMsgUnix(text, rights)
	if err != nil {
		return "", nil, err
	}
	_ = conn.SetReadDeadline(time.Time{})
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || len(messages) != 1 {
		return "", nil, errors.Join(err, errors.New("it comes without a socket"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return "", nil, errors.Join(err, errors.New("it comes without a socket"))
	}
	unix.CloseOnExec(fds[0])
	return string(text[:n]), os.NewFile(uintptr(fds[0]), "moved"), nil
}

func (s *supervisor) obey(word string, with *os.File, ended func() bool) error {
	switch word {
	case doorSend:
		return s.send(with, ended)
	case doorTake:
		return s.take(with, ended)
	case doorGoOn:
		return s.stay()
	}
	return fmt.Errorf("the supervisor does not do %.20q", word)
}

func (s *supervisor) leftPath() string {
	return filepath.Join(filepath.Dir(s.Machine.Asleep), leftFile)
}

// stay has the machine go on here.
func (s *supervisor) stay() error {
	if s.comes.Load() && !s.whole.Load() {
		return errors.New("the machine has not come")
	}
	s.comes.Store(false)
	s.handed.Store(false)
	if err := gone(os.Remove(s.leftPath())); err != nil {
		return err
	}
	c := s.control.Load()
	if c == nil {
		return nil // it is started
	}
	is, err := c.status("query-status")
	if err != nil || is != "paused" && is != "postmigrate" && is != "finish-migrate" {
		return nil // it runs, or is started again
	}
	return c.ask("cont", nil, nil)
}

// send sends the machine, which then stands still. That it may have left is on disk
// before it can have.
func (s *supervisor) send(to *os.File, ended func() bool) error {
	if err := s.stay(); err != nil { // it may stand still since an earlier try
		return err
	}
	c, err := s.speaks(ended)
	if err != nil {
		return err
	}
	if err := writeSynced(s.leftPath()); err != nil {
		return err
	}
	err = c.prepareLive()
	if err == nil {
		err = c.ask("getfd", map[string]any{"fdname": "live"}, to)
	}
	if err == nil {
		err = c.ask("migrate", map[string]any{"uri": "fd:live"}, nil)
	}
	if err == nil {
		err = s.follow(c, to, ended)
	}
	if err != nil {
		cut(to)
		return errors.Join(err, c.cancelLive(), s.stay())
	}
	return nil
}

// prepareLive sets how the emulator sends its machine: with what its disk has above the
// image.
func (c *control) prepareLive() error {
	if err := c.liveCapabilities(true); err != nil {
		return err
	}
	return c.ask("migrate-set-parameters", map[string]any{
		"max-bandwidth": liveBandwidth, "downtime-limit": liveDowntime, "block-incremental": true,
	}, nil)
}

// liveCapabilities has the emulator send the disk too, and wait before its machine stands
// still for good, or not.
func (c *control) liveCapabilities(on bool) error {
	var list []map[string]any
	for _, name := range []string{"block", "auto-converge", "pause-before-switchover"} {
		list = append(list, map[string]any{"capability": name, "state": on})
	}
	return c.ask("migrate-set-capabilities", map[string]any{"capabilities": list}, nil)
}

// sending is what an emulator says of it.
type sending struct {
	Status string
	RAM    amount
	Disk   amount
	Error  string `json:"error-desc"`
}

type amount struct{ Transferred, Total int64 }

// follow waits until all has been sent. Before the machine is stopped for good it notes
// that it is not to be started again. It does not stand still for longer than liveStands.
func (s *supervisor) follow(c *control, to *os.File, ended func() bool) error {
	late := time.AfterFunc(math.MaxInt64, func() { cut(to) })
	defer late.Stop()
	for ; ; time.Sleep(liveLook) {
		text, err := c.execute("query-migrate", nil, nil)
		var is sending
		if err == nil {
			err = json.Unmarshal(text, &is)
		}
		switch {
		case err != nil:
			return err
		case is.Status == "completed":
			return nil
		case is.Status == "failed" || is.Status == "cancelled":
			return fmt.Errorf("the emulator does not send the machine: %.200q", is.Error)
		case ended():
			return errors.New("nobody takes the machine any more")
		case is.RAM.Transferred > mostCopied*is.RAM.Total || is.Disk.Transferred > mostCopied*is.Disk.Total:
			return fmt.Errorf("it changes faster than it is copied: %d MiB of memory and %d MiB of its disk were sent", is.RAM.Transferred>>20, is.Disk.Transferred>>20)
		case is.Status == "pre-switchover":
			late.Reset(liveStands)
			s.handed.Store(true)
			if err := c.ask("migrate-continue", map[string]any{"state": "pre-switchover"}, nil); err != nil {
				return err
			}
		}
	}
}

// cancelLive ends sending, after which the machine runs. What has been sent to the end
// meanwhile stands still, which is not for long.
func (c *control) cancelLive() error {
	if err := c.ask("migrate_cancel", nil, nil); err != nil {
		return err
	}
	for end := time.Now().Add(suspendTime); time.Now().Before(end); time.Sleep(liveLook) {
		switch is, err := c.status("query-migrate"); is {
		case "active", "setup", "cancelling", "pre-switchover", "device":
		default:
			return err
		}
	}
	return errors.New("the emulator does not stop sending")
}

// status is what the emulator says to a question about a state.
func (c *control) status(question string) (string, error) {
	text, err := c.execute(question, nil, nil)
	var is struct{ Status string }
	if err == nil {
		err = json.Unmarshal(text, &is)
	}
	return is.Status, err
}

// take has the emulator that waits become a machine that is sent, and stand still.
func (s *supervisor) take(from *os.File, ended func() bool) error {
	if !s.comes.Load() {
		return errors.New("the machine waits for nothing")
	}
	if s.whole.Swap(false) { // of a try whose end was not heard of
		s.another()
	}
	c, err := s.speaks(ended)
	if err != nil {
		return err
	}
	err = c.ask("getfd", map[string]any{"fdname": "live"}, from)
	if err == nil {
		err = c.ask("migrate-incoming", map[string]any{"uri": "fd:live"}, nil)
	}
	for err == nil {
		is, asked := c.status("query-migrate")
		switch err = asked; {
		case err != nil:
		case is == "completed":
			if err = c.until("query-status", "paused"); err == nil {
				s.whole.Store(true)
				return nil
			}
		case is == "failed":
			err = errors.New("the emulator does not take the machine")
		case ended():
			err = errors.New("nobody sends the machine any more")
		}
		time.Sleep(liveLook)
	}
	s.another()
	return err
}

// another ends an emulator that waits: the next one has nothing of what this one took.
func (s *supervisor) another() {
	if pid := s.emulator.Load(); pid != 0 && s.comes.Load() {
		unix.Kill(int(pid), unix.SIGKILL) // one that has ended is fine
	}
}

// speaks waits until an emulator runs that does what it is asked.
func (s *supervisor) speaks(ended func() bool) (*control, error) {
	for end := time.Now().Add(suspendTime); time.Now().Before(end) && !ended(); time.Sleep(liveLook) {
		c := s.control.Load()
		if c == nil {
			continue
		}
		select {
		case <-c.ready:
			is, err := c.status("query-status")
			if err == nil && (is == "inmigrate") == s.comes.Load() {
				return c, nil
			}
			if err != nil && s.control.Load() == c {
				s.another()
			}
		default:
		}
	}
	return nil, errors.New("the machine's emulator does not run")
}

// awaitReturn waits for as long as the machine may run on another host.
func (s *supervisor) awaitReturn(i int) {
	if s.Machine == nil || s.Machine.Asleep == "" {
		return
	}
	if s.isAway() {
		s.say(i, programState{Why: "goes on on another host"})
	}
	for s.isAway() {
		select {
		case <-s.ending:
			return
		case <-time.After(10 * liveLook):
		}
	}
}

func (s *supervisor) isAway() bool {
	_, err := os.Lstat(s.leftPath())
	return err == nil
}

// cameHome forgets that a machine may have left, if it ended before it could have.
func (s *supervisor) cameHome() {
	if s.Machine != nil && s.Machine.Asleep != "" && !s.handed.Load() {
		_ = os.Remove(s.leftPath()) // else it waits for the agent
	}
}

// writeSynced makes an empty file that is there after a power failure, too.
func writeSynced(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncFile(filepath.Dir(path)))
}
