package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A client that breaks the rules loses its connection, and its command.
func TestHostileClient(t *testing.T) {
	spec, _ := json.Marshal(argv("sleep", "60"))
	huge := []byte{byte(frameStdin), 0xff, 0xff, 0xff, 0xff}
	cases := map[string]func(f *framer){
		"no spec":           func(f *framer) { _ = f.write(frameStdin, []byte("x")) },
		"bad spec":          func(f *framer) { _ = f.write(frameSpec, []byte("{")) },
		"huge frame":        func(f *framer) { _ = f.write(frameSpec, spec); _, _ = f.conn.Write(huge) },
		"beyond its credit": func(f *framer) { _ = f.write(frameSpec, spec); flood(f) },
		"exit frame":        func(f *framer) { _ = f.write(frameSpec, spec); _ = f.writeUint32(frameExit, 0) },
		"short resize":      func(f *framer) { _ = f.write(frameSpec, spec); _ = f.write(frameResize, []byte{1}) },
		"second spec":       func(f *framer) { _ = f.write(frameSpec, spec); _ = f.write(frameSpec, spec) },
		"half a frame": func(f *framer) {
			_ = f.write(frameSpec, spec)
			_, _ = f.conn.Write(huge[:3])
			f.closeWrite()
		},
	}
	dial := serve(t, commands())["direct"]
	for name, attack := range cases {
		t.Run(name, func(t *testing.T) {
			f, stop, err := upgrade(t.Context(), dial(), http.MethodPost, "/")
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			defer f.conn.Close()
			attack(f)
			_ = f.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			var timeout net.Error
			if _, err := io.Copy(io.Discard, f.r); errors.As(err, &timeout) && timeout.Timeout() {
				t.Error("still served after 5 s")
			}
		})
	}
}

// flood sends more input than the window to a command that reads none.
func flood(f *framer) {
	for range 8 {
		if f.write(frameStdin, make([]byte, maxPayload)) != nil {
			return
		}
	}
}

// A server that breaks the rules gives an error, not a hang or a fortune in memory.
func TestHostileServer(t *testing.T) {
	cases := map[string]func(f *framer){
		"huge frame":       func(f *framer) { _, _ = f.conn.Write([]byte{byte(frameStdout), 0xff, 0xff, 0xff, 0xff}) },
		"unknown type":     func(f *framer) { _ = f.write(99, nil) },
		"too much credit":  func(f *framer) { _ = f.writeUint32(frameCredit, 1<<31) },
		"short exit":       func(f *framer) { _ = f.write(frameExit, []byte{0}) },
		"end without exit": func(f *framer) {},
	}
	for name, attack := range cases {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				r := bufio.NewReader(far)
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				_, _ = io.WriteString(far, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
				f := newFramer(far, r)
				_, _, _ = f.read()
				attack(f)
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := Run(ctx, near, "/", argv("x"), Streams{})
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestStream(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ServeStream(w, r, func(ctx context.Context, w io.Writer) error {
			switch r.URL.Path {
			case "/short":
				_, err := io.WriteString(w, strings.Repeat("x", 3*maxPayload))
				return err
			case "/broken":
				_, _ = io.WriteString(w, "abc")
				return errors.New("device went away")
			}
			for ctx.Err() == nil {
				if _, err := io.WriteString(w, "tick"); err != nil {
					return err
				}
			}
			return nil
		})
	})
	for name, dial := range serve(t, handler) {
		t.Run(name, func(t *testing.T) {
			all, err := readStream(t, dial(), "/short")
			if len(all) != 3*maxPayload || err != nil {
				t.Errorf("short: %d bytes, error %v", len(all), err)
			}
			all, err = readStream(t, dial(), "/broken")
			var failure *Failure
			if all != "abc" || !errors.As(err, &failure) || err.Error() != "device went away" {
				t.Errorf("broken: %q, error %v", all, err)
			}
			s, err := OpenStream(t.Context(), dial(), "/endless")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, s, 1<<20); err != nil {
				t.Error(err)
			}
			s.Close() // goleak sees that the producer ends too
		})
	}
}

func readStream(t *testing.T, conn net.Conn, path string) (string, error) {
	t.Helper()
	s, err := OpenStream(t.Context(), conn, path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, err := io.ReadAll(s)
	return string(all), err
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 1, 'x'})
	f.Add([]byte{2, 0xff, 0, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		near, far := net.Pipe()
		defer near.Close()
		far.Close()
		frames := newFramer(near, bufio.NewReader(strings.NewReader(string(data))))
		for consumed := 0; ; {
			_, payload, err := frames.read()
			if err != nil {
				return
			}
			if consumed += headerSize + len(payload); consumed > len(data) {
				t.Fatal("a frame longer than its data")
			}
		}
	})
}
