package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Users of this machine who are the tenants.
const (
	mallory = 20001
	alice   = 20002
)

// server is a process of `sublet serve` without agents.
type server struct {
	socket string
	stop   func()
}

func serve(ctx context.Context, exe, substrate string) (*server, error) {
	dir, err := os.MkdirTemp("/run", "slb")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	run := filepath.Join(dir, "run")
	process := exec.Command(exe, "--run", run, "serve", "--data", filepath.Join(dir, "data"), "--substrate", substrate)
	process.Stderr = io.Discard
	if err := process.Start(); err != nil {
		return nil, err
	}
	s := &server{socket: filepath.Join(run, "api.sock"), stop: func() {
		process.Process.Signal(os.Interrupt)
		process.Wait()
		os.RemoveAll(dir)
	}}
	if err := s.await(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// await waits for the server to answer.
func (s *server) await(ctx context.Context) error {
	client := api.NewClient(s.socket)
	defer client.Close()
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, err := client.Hosts(ctx)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// as is a connection of a user.
func (s *server) as(uid int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: 1,
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return dialAs(uid, s.socket) },
	}}
}

// dialAs connects with another effective user: of this thread only, which is
// not used again.
func dialAs(uid int, socket string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		keep := ^uintptr(0)
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep); e != 0 {
			err = e
			return
		}
		conn, err = net.Dial("unix", socket)
	}()
	<-done
	return conn, err
}

// call sends a body, nil for none, and reads the answer; its time is the result.
func call(ctx context.Context, c *http.Client, method, path string, body any) (ms float64, status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, 0, err
	}
	if body == nil {
		text = nil
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://sublet"+path, bytes.NewReader(text))
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	began := time.Now()
	answer, err := c.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if answer.StatusCode >= 500 {
		err = errors.Join(err, fmt.Errorf("%s %s: %s", method, path, said))
	}
	return time.Since(began).Seconds() * 1000, answer.StatusCode, err
}

// obey is a host's agent that does what it is told at once, and notes how late
// it is told of stages.
func (s *server) obey(ctx context.Context, host vnet.HostID, begun time.Time, late *harness.Samples) {
	c := api.NewClient(s.socket)
	defer c.Close()
	last, was := 0, ""
	for after := (plan.Origin{}); ctx.Err() == nil; {
		p, err := c.Plan(ctx, host, after)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		since := time.Since(begun)
		if now := staged(p); now != was {
			if stage := int(since / time.Second); stage > last {
				last = stage
				*late = append(*late, (since%time.Second).Seconds()*1000)
			}
			was = now
		}
		after = p.Origin()
		c.Report(ctx, report.Report{Host: host, Revision: p.Revision, Tried: p.Revision})
	}
}

// staged is what a plan says of the network with stages.
func staged(p plan.Host) string {
	var text strings.Builder
	for _, item := range p.Items() {
		if strings.Contains(item.Key(), ".staged") {
			line, err := json.Marshal(item)
			if err != nil {
				panic(err) // of a plan that came as JSON
			}
			text.Write(line)
		}
	}
	return text.String()
}
