package vnode

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"sublet/plan"
	"sublet/vnet"
)

// seat is somebody at a console.
type seat struct {
	t    *testing.T
	cmd  *Command
	tty  *os.File
	read chan string
	all  string
}

func sit(t *testing.T, p *Part, n plan.VNode, rows, cols uint16) *seat {
	t.Helper()
	c, err := p.Attach(n.Key(), Options{TTY: true, Term: "vt100"})
	check(t, err)
	tty, err := pty.StartWithSize(c.Cmd, &pty.Winsize{Rows: rows, Cols: cols})
	check(t, err)
	s := &seat{t: t, cmd: c, tty: tty, read: make(chan string, 1000)}
	go func() {
		defer close(s.read)
		for text := make([]byte, 4096); ; {
			n, err := tty.Read(text)
			if err != nil {
				return
			}
			s.read <- string(text[:n])
		}
	}()
	return s
}

// sees waits for a text.
func (s *seat) sees(want string) {
	s.t.Helper()
	for late := time.After(20 * time.Second); !strings.Contains(s.all, want); {
		select {
		case text, ok := <-s.read:
			if s.all += text; !ok {
				s.t.Fatalf("the session ended without %q:\n%s", want, s.all)
			}
		case <-late:
			s.t.Fatalf("no %q in 20 s:\n%s", want, s.all)
		}
	}
}

func (s *seat) types(text string) {
	s.t.Helper()
	_, err := s.tty.WriteString(text)
	check(s.t, err)
}

// leaves ends the session, by the key or because the console has ended.
func (s *seat) leaves(key string) {
	s.t.Helper()
	s.types(key)
	for late := time.After(20 * time.Second); ; {
		select {
		case _, ok := <-s.read:
			if ok {
				continue
			}
			_ = s.cmd.Wait()
			s.cmd.Done()
			s.tty.Close()
			return
		case <-late:
			s.t.Fatal("the session does not end")
		}
	}
}

// A shell at a console has a terminal of the size of its user's, goes on when they
// leave and with the next agent, is shown to all who come, begins anew when it has
// ended, and goes with the node.
func TestShellAtAConsole(t *testing.T) {
	for _, owner := range tenants() {
		t.Run(fmt.Sprint(owner), func(t *testing.T) {
			p, h := newPart(t)
			n := node("n0", owner)
			s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{User: "1500", Workdir: "/tmp", Env: map[string]string{"A": "b", "PS1": "> "}}}
			do(t, p, plan.Add, names(), n, s)
			one := sit(t, p, n, 33, 101)
			one.types("X=1$A; stty size; id -u; pwd; tty -s && echo a terminal of $TERM\n")
			one.sees("a terminal of vt100\r\n")
			for _, want := range []string{"33 101", "1500", "/tmp"} {
				if !strings.Contains(one.all, want) {
					t.Errorf("no %q in\n%s", want, one.all)
				}
			}
			one.types("sleep 1000\n")
			wait(t, "sleep", func() bool {
				list, err := p.Processes(n.Key())
				return err == nil && strings.Contains(fmt.Sprint(list), "sleep 1000")
			})
			one.types("\x03echo after $((40+2))\n") // to the shell's command, not to what keeps the console
			one.sees("after 42")
			one.leaves("\x1d")
			next := partOn(h)
			t.Cleanup(next.Close)
			has(t, next, names(), n, s)
			again, other := sit(t, next, n, 24, 80), sit(t, next, n, 24, 80)
			again.sees("after 42") // what was written last
			again.types("echo still ${X}c; stty size\n")
			other.sees("still 1bc")
			other.sees("24 80")
			other.leaves("\x1d")
			again.leaves("exit\n")
			wait(t, "end of the console", func() bool { _, err := os.Stat(next.consolePath(n.Key())); return os.IsNotExist(err) })
			anew := sit(t, next, n, 24, 80)
			anew.types("echo new ${X}shell\n")
			anew.sees("new shell")
			do(t, next, plan.Delete, s, n)
			anew.leaves("")
			if left, _ := os.ReadDir(h.Dir(setupKind)); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
