package iplbd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"sublet/datapath/kernel"
)

// patience is how long a daemon may take to answer.
const patience = 5 * time.Second

// maxAnswer bounds one of FRR in bytes: 2,000 switches say less than a tenth of it.
const maxAnswer = 64 << 20

// asked is who answers at a socket.
type asked interface {
	Ask(ctx context.Context) (Status, error)
	Obey(ctx context.Context, o Order) error
}

// reply is a status, and what is wrong with the order that came before it.
type reply struct {
	Status
	Problem string `json:"problem,omitempty"`
}

// Serve answers each connection to a socket with a status, as JSON, after an order, if
// one comes. Only root can connect.
func Serve(ctx context.Context, socket string, who asked, log *slog.Logger) (stop func(), err error) {
	l, err := kernel.ListenForRoot(socket)
	if err != nil {
		return nil, fmt.Errorf("listen for questions: %w", err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			answer(ctx, conn, who, log)
		}
	}()
	return func() { l.Close() }, nil
}

// answer tells one caller; one that does not read is left after a while.
func answer(ctx context.Context, conn net.Conn, who asked, log *slog.Logger) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	var r reply
	var o Order
	err := json.NewDecoder(io.LimitReader(conn, maxOrder)).Decode(&o)
	if err == nil {
		if wrong := who.Obey(ctx, o); wrong != nil {
			r.Problem = wrong.Error()
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		if r.Status, err = who.Ask(ctx); err == nil {
			err = json.NewEncoder(conn).Encode(r)
		}
	}
	if err != nil {
		log.Debug("question not answered", "err", err)
	}
}

// maxOrder bounds an order, in bytes.
const maxOrder = 1 << 16

// Refused is an order that a daemon does not obey.
type Refused struct{ Problem string }

func (r Refused) Error() string { return r.Problem }

// Fetch asks the daemon at a socket.
func Fetch(ctx context.Context, socket string) (Status, error) { return exchange(ctx, socket, nil) }

// Send gives the daemon at a socket an order.
func Send(ctx context.Context, socket string, o Order) (Status, error) {
	return exchange(ctx, socket, &o)
}

func exchange(ctx context.Context, socket string, o *Order) (Status, error) {
	var r reply
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return r.Status, fmt.Errorf("ask for paths: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if o != nil {
		err = json.NewEncoder(conn).Encode(o)
	}
	if err == nil {
		err = conn.(*net.UnixConn).CloseWrite()
	}
	if err == nil {
		err = json.NewDecoder(conn).Decode(&r)
	}
	if err != nil {
		return r.Status, fmt.Errorf("ask %s for paths: %w", socket, err)
	}
	if r.Problem != "" {
		return r.Status, Refused{r.Problem}
	}
	return r.Status, nil
}
