package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Starter starts a probe (a process that calls Main) inside a node and gives
// its standard input and output. Close ends the process and makes a blocked
// Read or Write return.
type Starter func(ctx context.Context, node string) (io.ReadWriteCloser, error)

// session is the coordinator's end of one probe.
type session struct {
	node  string
	pipe  io.ReadWriteCloser
	lines *bufio.Scanner
	err   error // why it can no longer be used
}

func newSession(ctx context.Context, node string, start Starter) (*session, error) {
	pipe, err := start(ctx, node)
	if err != nil {
		return nil, fmt.Errorf("start probe in node %s: %w", node, err)
	}
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, lineLimit)
	return &session{node: node, pipe: pipe, lines: lines}, nil
}

// call sends a command and waits for its reply, at most limit. After an error
// the session is closed: late replies would be taken for others.
func (s *session) call(ctx context.Context, c command, limit time.Duration) (reply, error) {
	if s.err != nil {
		return reply{}, s.err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer in %s", limit))
	defer cancel()
	type outcome struct {
		reply reply
		err   error
	}
	done := make(chan outcome, 1) // the exchange ends even if nobody waits
	go func() {
		r, err := s.exchange(c)
		done <- outcome{r, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		o.err = context.Cause(ctx)
	}
	if o.err != nil {
		s.err = fmt.Errorf("probe in node %s, %s: %w", s.node, c.Op, o.err)
		s.pipe.Close()
	}
	return o.reply, s.err
}

// exchange writes one line and reads one.
func (s *session) exchange(c command) (r reply, err error) {
	line, err := json.Marshal(c)
	if err != nil {
		return r, err
	}
	if _, err := s.pipe.Write(append(line, '\n')); err != nil {
		return r, err
	}
	if !s.lines.Scan() {
		return r, errors.Join(errors.New("it ended"), s.lines.Err())
	}
	if err := json.Unmarshal(s.lines.Bytes(), &r); err != nil {
		return r, fmt.Errorf("not a reply: %w", err)
	}
	if r.Err != "" {
		return r, errors.New(r.Err)
	}
	return r, nil
}
