package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plainly runs what the client asks for, here.
func plainly(spec Spec) (Program, error) {
	if spec.Argv[0] == "forbidden" {
		return Program{}, errors.New("no node of that name")
	}
	return Program{Cmd: exec.Command(spec.Argv[0], spec.Argv[1:]...)}, nil
}

// serve starts an agent on a unix socket and a proxy in front of it, and gives
// a dialer for each.
func serve(t *testing.T, handler http.Handler) map[string]func() net.Conn {
	t.Helper()
	agent := listen(t, handler)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "agent"}) },
		Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", agent)
		}},
	}
	t.Cleanup(proxy.Transport.(*http.Transport).CloseIdleConnections)
	front := listen(t, proxy)
	dial := func(path string) func() net.Conn {
		return func() net.Conn {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
	}
	return map[string]func() net.Conn{"direct": dial(agent), "proxied": dial(front)}
}

func listen(t *testing.T, handler http.Handler) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return path
}

func commands() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Serve(w, r, plainly) })
}

func both(t *testing.T, test func(t *testing.T, dial func() net.Conn)) {
	for name, dial := range serve(t, commands()) {
		t.Run(name, func(t *testing.T) { test(t, dial) })
	}
}

func argv(s ...string) Spec { return Spec{Argv: s} }

func TestRun(t *testing.T) {
	cases := []struct {
		name     string
		spec     Spec
		in       string
		exit     int
		out, err string
	}{
		{"output", argv("echo", "hi"), "", 0, "hi\n", ""},
		{"exit code", argv("sh", "-c", "echo bad >&2; exit 7"), "", 7, "", "bad\n"},
		{"signal", argv("sh", "-c", "kill -TERM $$"), "", 128 + 15, "", ""},
		{"input", argv("tr", "a-z", "A-Z"), "abc", 0, "ABC", ""},
		{"input not read", argv("true"), strings.Repeat("x", 1<<20), 0, "", ""},
		{"input half read", argv("head", "-c", "3"), strings.Repeat("x", 1<<20), 0, "xxx", ""},
		{"background process keeps the output open", argv("sh", "-c", "sleep 60 & echo now"), "", 0, "now\n", ""},
		{"terminal", Spec{Argv: []string{"sh", "-c", "stty size; tty >/dev/null && echo $TERM; echo ctty >/dev/tty"}, TTY: true, Rows: 33, Cols: 77, Term: "xterm"}, "", 0, "33 77\r\nxterm\r\nctty\r\n", ""},
		{"end of input on a terminal", Spec{Argv: []string{"cat"}, TTY: true}, "abc\n", 0, "abc\r\nabc\r\n", ""},
	}
	both(t, func(t *testing.T, dial func() net.Conn) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				var out, errs bytes.Buffer
				begun := time.Now()
				exit, err := Run(t.Context(), dial(), "/", c.spec, Streams{In: strings.NewReader(c.in), Out: &out, Err: &errs})
				if err != nil || exit != c.exit || out.String() != c.out || errs.String() != c.err {
					t.Errorf("exit %d, out %q, err %q, error %v", exit, out.String(), errs.String(), err)
				}
				if took := time.Since(begun); took > 30*time.Second {
					t.Errorf("took %v", took)
				}
			})
		}
	})
}

func TestRefusals(t *testing.T) {
	cases := []struct {
		name string
		spec Spec
		want string
	}{
		{"by start", argv("forbidden"), "no node of that name"},
		{"not found", argv("/no/such/program"), "no such file"},
		{"empty", argv(), "no command given"},
		{"bad terminal type", Spec{Argv: []string{"true"}, TTY: true, Term: "a\nb"}, "not a terminal type"},
	}
	both(t, func(t *testing.T, dial func() net.Conn) {
		for _, c := range cases {
			_, err := Run(t.Context(), dial(), "/", c.spec, Streams{})
			var failure *Failure
			if !errors.As(err, &failure) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want a failure with %q", c.name, err, c.want)
			}
		}
	})
}

func TestRefusalBeforeUpgrade(t *testing.T) {
	path := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error":"no such lease"}`, http.StatusNotFound)
	}))
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), conn, "/", argv("true"), Streams{})
	var failure *Failure
	if !errors.As(err, &failure) || failure.Status != 404 || failure.Message != `{"error":"no such lease"}` {
		t.Errorf("error %#v", err)
	}
}

func TestPlainRequestIsTold(t *testing.T) {
	w := httptest.NewRecorder()
	Serve(w, httptest.NewRequest("POST", "/", nil), plainly)
	if w.Code != http.StatusUpgradeRequired || w.Header().Get("Upgrade") != Protocol {
		t.Errorf("code %d, header %v", w.Code, w.Header())
	}
}

// Much data in both directions at once arrives whole.
func TestBulk(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB
	both(t, func(t *testing.T, dial func() net.Conn) {
		sum := sha256.New()
		exit, err := Run(t.Context(), dial(), "/", argv("cat"), Streams{In: bytes.NewReader(data), Out: sum})
		if want := sha256.Sum256(data); err != nil || exit != 0 || !bytes.Equal(sum.Sum(nil), want[:]) {
			t.Errorf("exit %d, error %v, equal %v", exit, err, bytes.Equal(sum.Sum(nil), want[:]))
		}
	})
}

// headless makes a process of this program whose first thread ends while
// another lives on: by its state it is a zombie. It prints its number then.
const headless = "SUBLET_TEST_HEADLESS"

func init() {
	if os.Getenv(headless) == "" {
		return
	}
	runtime.LockOSThread() // init runs on the first thread
	go func() {
		for text := []byte(nil); !bytes.Contains(text, []byte(") Z ")); time.Sleep(time.Millisecond) {
			text, _ = os.ReadFile("/proc/self/stat")
		}
		fmt.Println(os.Getpid())
		time.Sleep(time.Hour)
	}()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

// A client that is gone takes the command with it, and all its descendants,
// also while the command neither reads nor writes.
func TestClientGone(t *testing.T) {
	both(t, func(t *testing.T, dial func() net.Conn) {
		for _, script := range []string{
			"echo $$; exec sleep 60",
			"echo $$; setsid sleep 60 & wait",
			"trap '' HUP TERM; echo $$; sleep 60 & sleep 61; sleep 62",
			"echo $$; exec yes",
			"trap '' HUP; " + headless + "=1 exec " + os.Args[0],
		} {
			p, err := OpenPipe(t.Context(), dial(), "/", argv("sh", "-c", script))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = p.Write(make([]byte, stdinWindow)) // nobody reads it
			pid := firstLine(t, p)
			family := familyOf(pid)
			if len(family) == 0 {
				t.Fatalf("%s: no process %d", script, pid)
			}
			p.Close()
			waitGone(t, family)
		}
	})
}

func TestContextEnds(t *testing.T) {
	both(t, func(t *testing.T, dial func() net.Conn) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		r, w, err := os.Pipe() // an input that never comes
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(r, w)
		_, err = Run(ctx, dial(), "/", argv("sleep", "60"), Streams{In: r})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func TestSignals(t *testing.T) {
	both(t, func(t *testing.T, dial func() net.Conn) {
		signals := make(chan os.Signal, 1)
		ready := writerFunc(func(p []byte) (int, error) {
			signals <- syscall.SIGUSR1
			return len(p), nil
		})
		exit, err := Run(t.Context(), dial(), "/", argv("sh", "-c", "trap 'exit 9' USR1; echo; while :; do sleep 0.01; done"), Streams{Out: ready, Signals: signals})
		if exit != 9 || err != nil {
			t.Errorf("exit %d, error %v", exit, err)
		}
	})
}

// Run on a real terminal: raw, resized, restored.
func TestTerminal(t *testing.T) {
	both(t, func(t *testing.T, dial func() net.Conn) {
		user, near, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(user, near)
		_ = pty.Setsize(user, &pty.Winsize{Rows: 30, Cols: 90})
		result := make(chan int)
		go func() {
			exit, _ := Run(t.Context(), dial(), "/", Spec{Argv: []string{"sh", "-c", "trap 'stty size' WINCH; stty size; while :; do sleep 0.01; done"}, TTY: true}, Streams{In: near, Out: near})
			result <- exit
		}()
		expect(t, user, "30 90")
		_ = pty.Setsize(user, &pty.Winsize{Rows: 31, Cols: 91})
		_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH)
		expect(t, user, "31 91")
		_, _ = user.Write([]byte{3}) // the interrupt key must go to the command
		if exit := <-result; exit != 130 {
			t.Errorf("exit %d, want 130", exit)
		}
	})
}

// Job control works through the wrappers that enter a node.
func TestTerminalThroughWrapper(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	both(t, func(t *testing.T, dial func() net.Conn) {
		var out bytes.Buffer
		spec := Spec{Argv: []string{"unshare", "--pid", "--fork", "--mount-proc", "--net", "bash", "--norc", "-i"}, TTY: true, Term: "dumb"}
		exit, err := Run(t.Context(), dial(), "/", spec, Streams{In: strings.NewReader("sleep 60 &\nkill %1; wait %1; echo job=$?\nexit 5\n"), Out: &out})
		if err != nil || exit != 5 || !strings.Contains(out.String(), "job=143") || strings.Contains(out.String(), "no job control") {
			t.Errorf("exit %d, error %v, output %q", exit, err, out.String())
		}
	})
}

func TestStderrOfPipe(t *testing.T) {
	both(t, func(t *testing.T, dial func() net.Conn) {
		p, err := OpenPipe(t.Context(), dial(), "/", argv("sh", "-c", "cat; echo oops >&2; exit 3"))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, _ = io.WriteString(p, "ping")
		_ = p.CloseWrite()
		out, err := io.ReadAll(p)
		exit, waited := p.Wait()
		if string(out) != "ping" || err != nil || exit != 3 || waited != nil || p.Stderr() != "oops\n" {
			t.Errorf("out %q %v, exit %d %v, stderr %q", out, err, exit, waited, p.Stderr())
		}
	})
}

func firstLine(t *testing.T, r io.Reader) int {
	t.Helper()
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := r.Read(b); err != nil {
			t.Fatal(err)
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	n, err := strconv.Atoi(string(line))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func waitGone(t *testing.T, f family) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for _, p := range f {
		for p.Alive() {
			if time.Now().After(deadline) {
				t.Fatalf("process %d still there", p.PID)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func expect(t *testing.T, f *os.File, want string) {
	t.Helper()
	var got []byte
	b := make([]byte, 256)
	_ = f.SetReadDeadline(time.Now().Add(5 * time.Second))
	for !strings.Contains(string(got), want) {
		n, err := f.Read(b)
		if err != nil {
			t.Fatalf("got %q, want %q: %v", got, want, err)
		}
		got = append(got, b[:n]...)
	}
}
