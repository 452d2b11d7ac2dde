package iplbd

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"
)

// vty speaks to a daemon of FRR over the socket that vtysh uses: a command
// ends with a zero byte; an answer with three, and the command's status.
type vty struct {
	conn net.Conn
	in   *bufio.Reader
}

// maxAnswer bounds an answer: 2,000 switches say less than a tenth of it.
const maxAnswer = 64 << 20

func dialVTY(dir, daemon string) (*vty, error) {
	conn, err := net.DialTimeout("unix", filepath.Join(dir, daemon+".vty"), patience)
	if err != nil {
		return nil, fmt.Errorf("reach %s of FRR: %w", daemon, err)
	}
	v := &vty{conn, bufio.NewReader(conn)}
	if _, err := v.ask("enable"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return v, nil
}

func (v *vty) close() { _ = v.conn.Close() }

// ask runs a command.
func (v *vty) ask(command string) ([]byte, error) {
	_ = v.conn.SetDeadline(time.Now().Add(patience))
	if _, err := v.conn.Write(append([]byte(command), 0)); err != nil {
		return nil, fmt.Errorf("ask FRR %q: %w", command, err)
	}
	var answer []byte
	for zeros := 0; zeros < 3; {
		b, err := v.in.ReadByte()
		if err != nil {
			return nil, fmt.Errorf("ask FRR %q: %w", command, err)
		}
		if b == 0 {
			zeros++
			continue
		}
		zeros = 0
		if answer = append(answer, b); len(answer) > maxAnswer {
			return nil, fmt.Errorf("ask FRR %q: more than %d MiB of answer", command, maxAnswer>>20)
		}
	}
	status, err := v.in.ReadByte()
	if err != nil || status != 0 {
		return nil, fmt.Errorf("ask FRR %q: status %d: %w", command, status, err)
	}
	return answer, nil
}
