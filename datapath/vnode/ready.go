package vnode

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Readiness is looked for often at first, then more rarely.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = time.Second
	probeTime = 10 * time.Second // for a command that tells
)

// wait looks for a program's readiness until ended is closed, and says so. The
// function it returns waits until nobody looks any more.
func (s *supervisor) wait(ended <-chan struct{}, i int, failed string, ready func(), line <-chan struct{}) func() {
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		if s.becomesReady(ended, i, failed, line) {
			s.say(i, programState{})
			ready()
		}
	}()
	return func() { <-looked }
}

func (s *supervisor) becomesReady(ended <-chan struct{}, i int, failed string, line <-chan struct{}) bool {
	program := s.Programs[i]
	awaited, look := s.look(program)
	if awaited == "" {
		return failed == "" || s.lives(ended)
	}
	if failed == "" {
		s.say(i, programState{Why: "is not ready: " + awaited})
	}
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if look != nil && look(ended) {
			return true
		}
		tick := time.After(pause)
		select {
		case <-ended:
			return false
		case <-s.ending:
			return false
		case <-line:
			return true
		case <-tick:
		}
	}
}

// lives says that a program that failed before has lived for a moment.
func (s *supervisor) lives(ended <-chan struct{}) bool {
	select {
	case <-ended:
	case <-s.ending:
	case <-time.After(lastLook):
		return true
	}
	return false
}

// look is what a program's readiness waits for, "" for nothing, and how to find
// out; nil: the program says it.
func (s *supervisor) look(p supervised) (awaited string, look func(<-chan struct{}) bool) {
	switch r := p.Ready; {
	case s.Machine != nil:
		tap, address := awaits(s.nics)
		if address.IsValid() {
			return fmt.Sprintf("it does not answer for %s yet", address), func(<-chan struct{}) bool { return s.answers(tap, address) }
		}
	case r.Port != 0:
		return fmt.Sprintf("nothing listens on TCP port %d", r.Port), func(<-chan struct{}) bool { return s.listens(r.Port) }
	case r.Cmd != nil:
		return fmt.Sprintf("%s has not ended with exit code 0", printable(r.Cmd[0])), func(ended <-chan struct{}) bool { return s.probe(p, r.Cmd, ended) }
	case r.Line != "":
		return fmt.Sprintf("it has not written %q", r.Line), nil
	}
	return "", nil
}

// probe runs a command, as the program's user, that tells whether it is ready.
func (s *supervisor) probe(p supervised, argv []string, ended <-chan struct{}) bool {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer null.Close()
	child, err := s.start(p, argv, null)
	if err != nil {
		return false
	}
	done := make(chan exit, 1)
	go func() { done <- exitOf(child) }()
	select {
	case e := <-done:
		return e == exit{}
	case <-time.After(probeTime):
	case <-ended:
	case <-s.ending:
	}
	unix.Kill(-child.Pid, unix.SIGKILL)
	<-done
	return false
}

// listens says whether something in the node listens on a TCP port, as the
// kernel tells: no packet is sent. In its list, those that listen come first.
func (s *supervisor) listens(port int) (found bool) {
	done := make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: it ends inside
		for i, room := range rooms {
			if room.name == "net" && s.setns(s.Rooms[i], room.flag) != nil {
				return
			}
		}
		found = listensIn("/proc/thread-self/net/tcp", port) || listensIn("/proc/thread-self/net/tcp6", port)
	}()
	<-done
	return found
}

func listensIn(table string, port int) bool {
	f, err := os.Open(table)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // the heading
	const listening = "0A"
	for lines.Scan() {
		// sl local_address rem_address st ...
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != listening {
			return false
		}
		_, local, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(local, 16, 16); err == nil && int(n) == port {
			return true
		}
	}
	return false
}

// pipe takes a program's output. Its end of it is the node's root's, who may
// open it by name (/dev/stdout).
func (s *supervisor) pipe() (ours, theirs *os.File, err error) {
	if ours, theirs, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if err := theirs.Chown(int(s.Owner), groupOf(s.Owner)); err != nil {
		ours.Close()
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// relay copies a program's output to the log, until all that have it have ended;
// what it returns is closed when a line contains what is awaited.
func (s *supervisor) relay(from *os.File, awaited string) <-chan struct{} {
	found := make(chan struct{})
	go func() {
		defer from.Close()
		text := make([]byte, 64<<10)
		line := finder{awaited: awaited}
		for {
			n, err := from.Read(text)
			if line.in(text[:n]) {
				close(found)
			}
			if s.console != nil {
				s.console.wrote(text[:n])
			}
			s.log(string(text[:n]))
			if err != nil {
				return
			}
		}
	}()
	return found
}

// finder looks for a text in what is read piece by piece.
type finder struct {
	awaited string
	tail    string // of what was read, shorter than awaited
	found   bool
}

// in says that the text was found now, for the first time.
func (f *finder) in(text []byte) bool {
	if f.found || f.awaited == "" {
		return false
	}
	all := f.tail + string(text)
	f.found = strings.Contains(all, f.awaited)
	f.tail = all[max(0, len(all)-len(f.awaited)+1):]
	return f.found
}

// log appends to the node's log, which it keeps short.
func (s *supervisor) log(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := openLog(s.Log)
	if err != nil {
		return // the node ends
	}
	defer f.Close()
	_, _ = f.WriteString(text) // a full log has the rest
	_ = trim(s.Log)
}
