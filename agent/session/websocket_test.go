package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// openSocket asks for a session as a browser or a script does.
func openSocket(t *testing.T, dial func() net.Conn) *websocket.Conn {
	t.Helper()
	dialer := websocket.Dialer{
		Subprotocols:   []string{Subprotocol},
		NetDialContext: func(context.Context, string, string) (net.Conn, error) { return dial(), nil },
	}
	socket, response, err := dialer.DialContext(t.Context(), "ws://sublet/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Sec-WebSocket-Protocol"); got != Subprotocol {
		t.Errorf("the protocol is %q", got)
	}
	t.Cleanup(func() { socket.Close() })
	_ = socket.SetReadDeadline(time.Now().Add(30 * time.Second))
	return socket
}

func say(t *testing.T, socket *websocket.Conn, kind int, message string) {
	t.Helper()
	if err := socket.WriteMessage(kind, []byte(message)); err != nil {
		t.Fatal(err)
	}
}

// heard is all that a session says, by the type of its frames, and its end.
func heard(socket *websocket.Conn) (map[frameType]string, *websocket.CloseError) {
	frames := make(map[frameType]string)
	for {
		_, message, err := socket.ReadMessage()
		if err != nil {
			closed := new(websocket.CloseError)
			errors.As(err, &closed)
			return frames, closed
		}
		frames[frameType(message[0])] += string(message[1:])
	}
}

// TestSessionsOverWebSocket: what a command reads and writes, its exit code, and
// why there is none.
func TestSessionsOverWebSocket(t *testing.T) {
	both(t, func(t *testing.T, dial func() net.Conn) {
		socket := openSocket(t, dial)
		say(t, socket, websocket.TextMessage, `{"argv": ["sh", "-c", "tr a-z A-Z; echo bad >&2; exit 7"]}`)
		say(t, socket, websocket.BinaryMessage, "\x02hello")
		say(t, socket, websocket.BinaryMessage, "\x02")
		frames, closed := heard(socket)
		if frames[frameStdout] != "HELLO" || frames[frameStderr] != "bad\n" || closed.Text != "exit 7" || closed.Code != websocket.CloseNormalClosure {
			t.Errorf("it said %q and closed with %v", frames, closed)
		}
		if code := frames[frameExit]; len(code) != 4 || binary.BigEndian.Uint32([]byte(code)) != 7 {
			t.Errorf("its exit code is %q", code)
		}
		for spec, why := range map[string]string{
			`{"argv": ["forbidden"]}`: "no node of that name", `{"argv": `: "read command", `{"argv": ["cat"], "tty": true, "rows": 99999}`: "read command",
		} {
			socket := openSocket(t, dial)
			say(t, socket, websocket.TextMessage, spec)
			frames, closed := heard(socket)
			if !strings.Contains(frames[frameFailure], why) || !strings.Contains(closed.Text, why) || closed.Code != websocket.CloseInternalServerErr {
				t.Errorf("%s: it said %q and closed with %v", spec, frames, closed)
			}
		}
	})
}

// TestSocketThatGoesAwayEndsItsCommand: goleak sees what would be left. What is no
// frame, or too large, is the same.
func TestSocketThatGoesAwayEndsItsCommand(t *testing.T) {
	both(t, func(t *testing.T, dial func() net.Conn) {
		for name, message := range map[string]string{
			"nothing": "", "no type": "-", "unknown type": "\xffx", "too large": "\x02" + strings.Repeat("x", maxPayload+1),
		} {
			socket := openSocket(t, dial)
			say(t, socket, websocket.TextMessage, `{"argv": ["sh", "-c", "echo begun; exec sleep 600"]}`)
			if _, begun, err := socket.ReadMessage(); err != nil || string(begun) != "\x03begun\n" {
				t.Fatalf("it begins with %q, %v", begun, err)
			}
			switch message {
			case "":
				socket.Close()
				continue
			case "-":
				message = ""
			}
			say(t, socket, websocket.BinaryMessage, message)
			if frames, _ := heard(socket); frames[frameExit] != "" {
				t.Errorf("%s: the command ended by itself: %q", name, frames)
			}
		}
	})
}

// TestStreamsOverWebSocket: captures and logs.
func TestStreamsOverWebSocket(t *testing.T) {
	for name, dial := range serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ServeStream(w, r, func(_ context.Context, w io.Writer) error {
			fmt.Fprint(w, strings.Repeat("x", 3*maxPayload))
			return errors.New("device went away")
		})
	})) {
		frames, closed := heard(openSocket(t, dial))
		if len(frames[frameStdout]) != 3*maxPayload || frames[frameFailure] != "device went away" || closed.Text != "device went away" {
			t.Errorf("%s: %d bytes, %q, closed with %v", name, len(frames[frameStdout]), frames[frameFailure], closed)
		}
	}
}
