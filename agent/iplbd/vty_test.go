package iplbd

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/plan"
)

// fakeOSPF answers as ospfd does, from fixtures, over any number of
// connections; commands are noted.
type fakeOSPF struct {
	mu       sync.Mutex
	summary  string
	routers  string
	commands []string
}

func (f *fakeOSPF) serve(t *testing.T, dir string) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, "ospfd.vty"))
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	var conns []net.Conn
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			conns = append(conns, conn)
			f.mu.Unlock()
			done.Go(func() { f.talk(conn) })
		}
	})
	return func() {
		l.Close()
		f.mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		f.mu.Unlock()
		done.Wait()
	}
}

func (f *fakeOSPF) talk(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		command, err := in.ReadString(0)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.commands = append(f.commands, strings.TrimRight(command, "\x00"))
		answer := f.routers
		if strings.Contains(command, "database json") {
			answer = f.summary
		} else if command == "enable\x00" {
			answer = ""
		}
		f.mu.Unlock()
		if _, err := conn.Write([]byte(answer + "\x00\x00\x00\x00")); err != nil {
			return
		}
	}
}

// The link state is followed: paths are told once, again when an LSA has
// changed, and stay when ospfd goes and comes back.
func TestLinkStateIsFollowed(t *testing.T) {
	dir := t.TempDir()
	f := &fakeOSPF{summary: string(read(t, "summary.json")), routers: string(read(t, "routers.json"))}
	stop := f.serve(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan []plan.Spread, 16)
	var done sync.WaitGroup
	done.Go(func() {
		OSPF{Dir: dir, Choice: Choice{Paths: 4}, Log: slog.New(slog.DiscardHandler)}.Run(ctx, func(s []plan.Spread) { told <- s })
	})
	defer func() { cancel(); done.Wait(); stop() }()
	if first := wait(t, told); len(first) != 3 || len(first[2].Paths) != 2 {
		t.Fatalf("%v", first)
	}
	stop()
	stop = f.serve(t, dir)
	f.mu.Lock()
	// 10.255.0.3 no longer has its link to 10.255.0.4: its own news, one LSA.
	f.summary = bump(f.summary, "10.255.0.3")
	f.routers = strings.ReplaceAll(f.routers, `"neighborRouterId": "10.255.0.4", "routerInterfaceAddress": "10.1.5.1"`, `"neighborRouterId": "10.255.9.9", "routerInterfaceAddress": "10.1.5.1"`)
	f.commands = nil
	f.mu.Unlock()
	if left := wait(t, told); len(left[len(left)-1].Paths) != 1 || left[len(left)-1].Paths[0].Relays[0].String() != "10.255.0.2" {
		t.Errorf("after a lost link: %v", left)
	}
	wait(t, told)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.Contains(strings.Join(f.commands, "\n"), "show ip ospf database router 10.255.0.3 json") || strings.Contains(strings.Join(f.commands, "\n"), "router json") {
		t.Errorf("asked %q: want the changed LSA only", f.commands)
	}
}

// bump gives a router's LSA another instance.
func bump(summary, id string) string {
	before, after, _ := strings.Cut(summary, `"lsId": "`+id+`"`)
	after = strings.Replace(after, `"sequenceNumber": "8000`, `"sequenceNumber": "8001`, 1)
	return before + `"lsId": "` + id + `"` + after
}

func wait(t *testing.T, told chan []plan.Spread) []plan.Spread {
	t.Helper()
	select {
	case s := <-told:
		return s
	case <-time.After(20 * time.Second):
		t.Fatal("no paths are told")
		return nil
	}
}
