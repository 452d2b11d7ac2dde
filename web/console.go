package web

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"sublet/agent/session"
	"sublet/lease/api"
	"sublet/vnet"
)

// Dialer opens connections to the server for sessions.
type Dialer interface {
	Dial(context.Context) (net.Conn, error)
}

// console joins a browser with the console of a node: binary messages are what
// is typed and shown, a text message is the terminal's size as JSON.
func (h Handler) console(w http.ResponseWriter, r *http.Request) {
	if h.ReadOnly {
		problem(w, http.StatusForbidden, onlyShows)
		return
	}
	socket := h.upgrade(w, r)
	if socket == nil {
		return
	}
	defer socket.Close()
	pipe, err := h.openConsole(r.Context(), leaseOf(r), r.URL.Query().Get("node"))
	if err != nil {
		bye(socket, err.Error())
		return
	}
	defer pipe.Close()
	go typed(socket, pipe)
	_, err = io.Copy(screen{socket}, pipe)
	bye(socket, end(err))
}

func end(err error) string {
	if err != nil {
		return err.Error()
	}
	return "it has ended"
}

func (h Handler) openConsole(ctx context.Context, id vnet.LeaseID, node string) (*session.Pipe, error) {
	conn, err := h.Server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	spec := session.Spec{Argv: []string{"attach"}, TTY: true, Term: "xterm-256color", Rows: 24, Cols: 80}
	return session.OpenPipe(ctx, conn, api.NodePath(id, node, "attach"), spec)
}

func leaseOf(r *http.Request) vnet.LeaseID {
	query := r.URL.Query()
	return vnet.LeaseID{Tenant: vnet.TenantID(query.Get("tenant")), Network: vnet.VNetID(query.Get("network"))}
}

// typed passes on what the browser sends until it goes away, which ends the session.
func typed(socket *websocket.Conn, pipe *session.Pipe) {
	defer pipe.Close()
	for {
		kind, data, err := socket.ReadMessage()
		if err != nil {
			return
		}
		if kind == websocket.TextMessage {
			err = resize(pipe, data)
		} else {
			_, err = pipe.Write(data)
		}
		if err != nil {
			return
		}
	}
}

func resize(pipe *session.Pipe, data []byte) error {
	var size struct{ Rows, Cols uint16 }
	if json.Unmarshal(data, &size) != nil || size.Rows == 0 || size.Cols == 0 {
		return nil // no size: nothing to do
	}
	return pipe.Resize(int(size.Rows), int(size.Cols))
}

// screen writes to a browser's terminal.
type screen struct{ socket *websocket.Conn }

func (s screen) Write(p []byte) (int, error) {
	return len(p), s.socket.WriteMessage(websocket.BinaryMessage, p)
}

// Bounds of a capture of the page: it is held by the browser.
const (
	mostPackets = 10_000
	longest     = time.Minute
)

// capture answers with the packets of a link as pcapng.
func (h Handler) capture(w http.ResponseWriter, r *http.Request) {
	if h.ReadOnly {
		problem(w, http.StatusForbidden, onlyShows)
		return
	}
	query := r.URL.Query()
	count, err := strconv.Atoi(query.Get("count"))
	span, err2 := time.ParseDuration(query.Get("for"))
	if err != nil || err2 != nil || count < 1 || count > mostPackets || span <= 0 || span > longest {
		problem(w, http.StatusBadRequest, "state count, 1 to 10000, and for, up to 1m")
		return
	}
	conn, err := h.Server.Dial(r.Context())
	if err != nil {
		problem(w, http.StatusBadGateway, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), span)
	defer cancel()
	path := api.CapturePath(leaseOf(r), query.Get("link")) + "?count=" + strconv.Itoa(count) + "&for=" + span.String()
	stream, err := session.OpenStream(ctx, conn, path)
	if err != nil {
		problem(w, http.StatusBadGateway, err.Error())
		return
	}
	defer stream.Close()
	w.Header().Set("Content-Type", "application/x-pcapng")
	_, _ = io.Copy(w, stream) // the time is over, or the browser went away: that is how captures end
}
