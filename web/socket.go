package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"sublet/lease/api"
)

// subprotocol of WebSocket that the page speaks. The secret comes behind bearer as
// another one, since browsers send no header of a page's choice with it.
const (
	subprotocol = "sublet.page"
	bearer      = "sublet.bearer."
)

// frameLimit bounds a message of the browser, in bytes: what somebody pastes.
const frameLimit = 1 << 20

// upgrade makes a WebSocket of a call; nil: it was refused, and answered.
func (h Handler) upgrade(w http.ResponseWriter, r *http.Request) *websocket.Conn {
	if !h.Known && !slices.ContainsFunc(websocket.Subprotocols(r), func(word string) bool {
		secret, ok := strings.CutPrefix(word, bearer)
		return ok && h.knows(secret)
	}) {
		problem(w, http.StatusUnauthorized, noSecret)
		return nil
	}
	// The upgrader refuses pages of other origins by itself.
	upgrader := websocket.Upgrader{Subprotocols: []string{subprotocol}}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil
	}
	socket.SetReadLimit(frameLimit)
	return socket
}

// bye says why a WebSocket ends, as far as a close message has room for it
// (RFC 6455, section 5.5).
func bye(socket *websocket.Conn, why string) {
	const room = 123
	if len(why) > room {
		why = strings.ToValidUTF8(why[:room], "")
	}
	text := websocket.FormatCloseMessage(websocket.CloseNormalClosure, why)
	_ = socket.WriteControl(websocket.CloseMessage, text, time.Now().Add(time.Second)) // it may have gone away
}

// watch passes on the server's stream of events, a message for each. A browser
// has six connections to an address for all its tabs, unless they are WebSockets:
// streams would take them all.
func (h Handler) watch(w http.ResponseWriter, r *http.Request) {
	socket := h.upgrade(w, r)
	if socket == nil {
		return
	}
	defer socket.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		defer cancel()
		for { // nothing is wanted of the browser but that it stays
			if _, _, err := socket.ReadMessage(); err != nil {
				return
			}
		}
	}()
	bye(socket, end(h.passEvents(ctx, socket, r.URL.Query().Get("after"))))
}

func (h Handler) passEvents(ctx context.Context, socket *websocket.Conn, after string) error {
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, h.Server.BaseURL().JoinPath("v1", "watch").String(), nil)
	if err != nil {
		return err
	}
	if after != "" {
		call.Header.Set("Last-Event-ID", after)
	}
	response, err := h.Server.RoundTrip(call)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return api.ReadProblem(response.StatusCode, response.Status)
	}
	return api.Events(response.Body, func(e api.Event) error {
		return socket.WriteJSON(message{e.Name, e.ID, e.Data})
	})
}

// message is an event of the server.
type message struct {
	Name string          `json:"name"`
	ID   string          `json:"id,omitempty"`
	Data json.RawMessage `json:"data"`
}
