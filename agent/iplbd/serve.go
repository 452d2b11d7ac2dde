package iplbd

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"time"

	"sublet/datapath/kernel"
)

// patience is how long a daemon may take to answer.
const patience = 5 * time.Second

// maxAnswer bounds one of FRR in bytes: 2,000 switches say less than a tenth of it.
const maxAnswer = 64 << 20

// Serve answers each connection to a socket with a status, as JSON. Only root
// can connect.
func Serve(ctx context.Context, socket string, ask func(context.Context) (Status, error), log *slog.Logger) (stop func(), err error) {
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
			answer(ctx, conn, ask, log)
		}
	}()
	return func() { l.Close() }, nil
}

// answer tells one caller; one that does not read is left after a while.
func answer(ctx context.Context, conn net.Conn, ask func(context.Context) (Status, error), log *slog.Logger) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	status, err := ask(ctx)
	if err == nil {
		err = json.NewEncoder(conn).Encode(status)
	}
	if err != nil {
		log.Debug("question not answered", "err", err)
	}
}

// Fetch asks the daemon at a socket.
func Fetch(ctx context.Context, socket string) (Status, error) {
	var s Status
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return s, fmt.Errorf("ask for paths: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if err := json.NewDecoder(conn).Decode(&s); err != nil {
		return s, fmt.Errorf("ask %s for paths: %w", socket, err)
	}
	return s, nil
}
