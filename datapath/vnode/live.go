package vnode

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/plan"
)

// A machine that goes to another host while it runs is sent by its emulator, with what it
// wrote to its disk, and taken by one that waits for it there. What both agents pass on
// begins with a line of JSON (sent), which says what it is of.
//
//	$RUN/setup/HOST/TENANT.NETWORK.NODE.live   what becomes of it (plan.LiveMove), beside
//	                                           its setup, which stays as it is
//	KEPT/.../left                              it may run on the other host by now: here
//	                                           it is started again only when it is told to
const (
	liveSuffix = ".live"
	leftFile   = "left"
)

func (p *Part) livePath(key string) string { return p.setupPath(key) + liveSuffix }

func (p *Part) leftPath(key string) string { return filepath.Join(p.keptDir(key), leftFile) }

// doorPath is the socket by which agents tell the supervisor of a machine what to do.
func (p *Part) doorPath(key string) string { return p.consolePath(key) + "-door" }

// given is what a node was given, with what becomes of it.
func (p *Part) given(key string) (plan.Setup, error) {
	s, err := p.setupOf(key)
	if err != nil {
		return s, err
	}
	text, err := os.ReadFile(p.livePath(key))
	switch live := plan.LiveMove(text); {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case live == plan.LiveComes:
		s.Live, s.Carried = live, true
	default:
		s.Live = live
	}
	return s, err
}

// unmoved is a setup without what becomes of its machine.
func unmoved(s plan.Setup) plan.Setup {
	s.Live, s.Carried = "", false
	return s
}

// hasLeft says that a machine goes on elsewhere, with what it is.
func hasLeft(s plan.Setup) bool { return s.Live == plan.LiveLeaves && s.Carried }

// giveLive does what changes of a machine's move while it stays as it is; done: that is
// all that differs.
func (p *Part) giveLive(s plan.Setup) (done bool, err error) {
	key := s.Key()
	was, err := p.given(key)
	if err != nil || was.Live == "" && s.Live != plan.LiveLeaves {
		return false, nil // it is given anew
	}
	same := reflect.DeepEqual(unmoved(was), unmoved(s)) && p.supervised(key)
	switch {
	case same && was.Live == "" && !was.Carried && !s.Carried:
		return true, writeMark(p.livePath(key), s.Live)
	case same && was.Live != "" && s.Live == "" && !s.Carried: // it is taken back, or goes on here
		if err := p.GoOnLive(key); err == nil {
			return true, p.forgetLive(key)
		}
	case was.Live == plan.LiveLeaves && s.Carried && s.Live == "": // it is stopped first, with its memory
		_ = p.GoOnLive(key) // one that does not begins from its disk
	}
	return false, nil
}

// forgetLive removes what says that a machine moves.
func (p *Part) forgetLive(key string) error {
	return errors.Join(gone(os.Remove(p.leftPath(key))), gone(os.Remove(p.livePath(key))))
}

// keepLive notes what becomes of a machine that is given anew.
func (p *Part) keepLive(s plan.Setup) error {
	if s.Live == "" || hasLeft(s) {
		return nil
	}
	return writeMark(p.livePath(s.Key()), s.Live)
}

func writeMark(path string, live plan.LiveMove) error { return os.WriteFile(path, []byte(live), 0o600) }

// sent is what a machine is that is sent.
type sent struct {
	Saved
	Like string `json:"like"` // its emulator, and the processor if that shows inside
}

// liveSetup is that of a machine that is to be sent or taken, and nobody else's meanwhile.
func (p *Part) liveSetup(key string, live plan.LiveMove) (s plan.Setup, end func(), err error) {
	if end, err = p.alone(key); err != nil {
		return s, nil, err
	}
	if s, err = p.given(key); err == nil && (s.Live != live || hasLeft(s)) {
		err = fmt.Errorf("%w: it is not to be taken to another host while it runs, or not any more", ErrInUse)
	}
	if err != nil {
		end()
		return s, nil, err
	}
	return s, end, nil
}

// SendLive writes what a machine is, which runs until that has been written but for a
// rest. When it returns nil the machine stands still, until the plan says what becomes of
// it, or it is sent again. After an error it runs.
func (p *Part) SendLive(ctx context.Context, key string, w io.Writer) error {
	s, end, err := p.liveSetup(key, plan.LiveLeaves)
	if err != nil {
		return err
	}
	defer end()
	n, err := p.noteOf(key)
	if err != nil {
		return err
	}
	about, err := p.savedMachine(ctx, s, n)
	if err != nil {
		return err
	}
	line, err := json.Marshal(sent{about, likeness()})
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	if err != nil {
		return err
	}
	most := (mostCopied + 1) * (p.host.Group(key).Memory() + mostDiskFile(n.Size))
	return p.throughDoor(ctx, key, doorSend, func(conn *net.UnixConn) error {
		copied, err := io.Copy(w, io.LimitReader(conn, most))
		if err == nil && copied == most {
			err = fmt.Errorf("the machine is longer than %d bytes", most)
		}
		return err
	})
}

// TakeLive has a machine become what SendLive wrote, and stand still. When it returns nil
// all of it has come, and its disk is where it stays.
func (p *Part) TakeLive(ctx context.Context, key string, r io.Reader) error {
	s, end, err := p.liveSetup(key, plan.LiveComes)
	if err != nil {
		return err
	}
	defer end()
	from := bufio.NewReaderSize(r, mostAbout)
	line, err := from.ReadSlice('\n')
	var is sent
	if err == nil {
		err = json.Unmarshal(line, &is)
	}
	if err == nil && is.Like != likeness() {
		err = fmt.Errorf("the machine runs on %s, and would on %s here", is.Like, likeness())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", image.ErrArchive, err)
	}
	if _, err := p.newNote(ctx, s, is.Saved); err != nil {
		return err
	}
	disk, err := os.OpenFile(filepath.Join(p.keptDir(key), diskFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer disk.Close()
	stop := syncAlong(disk)
	defer stop()
	err = p.throughDoor(ctx, key, doorTake, func(conn *net.UnixConn) error {
		_, err := io.Copy(conn, from)
		if err == nil {
			err = conn.CloseWrite()
		}
		return err
	})
	stop()
	return errors.Join(err, disk.Sync())
}

// syncAlong writes a file to disk every second until stop, so that little is left to be
// written in the end.
func syncAlong(f *os.File) (stop func()) {
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Second):
				_ = f.Sync() // the last one says what failed
			}
		}
	}()
	return sync.OnceFunc(func() { close(over); <-stopped })
}

// GoOnLive lets a machine go on that stands still for its move.
func (p *Part) GoOnLive(key string) error {
	return p.throughDoor(context.Background(), key, doorGoOn, func(*net.UnixConn) error { return nil })
}

// What a supervisor is told, with an open socket for what is sent or taken. It answers
// when it is done.
const (
	doorSend = "send"
	doorTake = "take"
	doorGoOn = "go on"
	doorDone = "done"
	mostWord = 1 << 10
)

// throughDoor tells a machine's supervisor to do something while pass handles what is
// sent or taken. The supervisor stops when ctx ends, or this process.
func (p *Part) throughDoor(ctx context.Context, key, word string, pass func(*net.UnixConn) error) error {
	door, err := dialConsole(p.doorPath(key))
	if err != nil {
		return fmt.Errorf("its machine is being started, or has ended: %w", err)
	}
	defer door.Close()
	ours, theirs, err := pairOf()
	if err != nil {
		return err
	}
	defer ours.Close()
	_, _, err = door.WriteMsgUnix([]byte(word), unix.UnixRights(int(theirs.Fd())), nil)
	if err = errors.Join(err, theirs.Close()); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { door.Close(); ours.Close() })()
	passed := pass(ours)
	if passed != nil {
		ours.Close()
		door.CloseWrite()
	}
	_ = door.SetReadDeadline(time.Now().Add(suspendTime))
	said, err := io.ReadAll(io.LimitReader(door, mostWord))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case passed != nil:
		return fmt.Errorf("%w (%s)", passed, said)
	case err != nil || len(said) == 0:
		return errors.Join(err, errors.New("what runs the machine has ended, or does not answer"))
	case string(said) != doorDone:
		return errors.New(string(said))
	}
	return nil
}

// pairOf are two connected sockets.
func pairOf() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(pair[1]), "theirs")
	file := os.NewFile(uintptr(pair[0]), "ours")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// likeness is what two hosts must have alike for a machine to run on without noticing:
// the version of the emulator and, where the machine sees it, the processor.
var likeness = sync.OnceValue(func() string {
	accelerator, _ := Machines()
	text, _ := exec.Command(emulator, "--version").Output() // none is like none
	first, _, _ := strings.Cut(string(text), "\n")
	if accelerator != AcceleratorKVM {
		return first + " in software"
	}
	info, _ := os.ReadFile("/proc/cpuinfo")
	return first + " on " + strings.Join(processorLines.FindAllString(firstOf(string(info)), -1), ", ")
})

// processorLines are what of a processor a machine sees.
var processorLines = regexp.MustCompile(`(?m)^(model name|stepping|flags)\s*:.*$`)

// firstOf is the first paragraph of a text.
func firstOf(text string) string {
	first, _, _ := strings.Cut(text, "\n\n")
	return first
}
