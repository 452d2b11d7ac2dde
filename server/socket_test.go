package server

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

func TestSocketComesBack(t *testing.T) {
	r := newRig(t)
	ctx := within(t)
	if err := os.Remove(r.socket()); err != nil {
		t.Fatal(err)
	}
	for {
		c := r.as(os.Geteuid())
		_, err := c.Hosts(ctx)
		c.Close()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the socket was taken away and never made again: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.stop()
	if _, err := os.Stat(r.socket()); !os.IsNotExist(err) {
		t.Errorf("the server that stopped left its socket: %v", err)
	}
}

// TestIdleConnectionsTakeNothingAway opens more connections than the server
// may open files, without a certificate and as a user: it lives, writes, and
// answers others.
func TestIdleConnectionsTakeNothingAway(t *testing.T) {
	const idle, limit = 700, 400
	r, ours := newRig(t), newAuthority(t)
	r.stop()
	ours.sign("operator", ours.cert, ours.key)
	at, ended := limitedServer(t, r, ours, limit)
	ctx, c := within(t), r.as(os.Geteuid())
	for _, err := c.Hosts(ctx); err != nil; _, err = c.Hosts(ctx) {
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for i := range idle {
		for _, dial := range []func() (net.Conn, error){
			func() (net.Conn, error) { return net.DialTimeout("tcp", at, 5*time.Second) },
			func() (net.Conn, error) { return dialAs(20001, r.socket()) },
		} {
			if conn, err := dial(); err == nil { // a refusal is an answer
				defer conn.Close()
			}
		}
		if i%100 == 0 {
			must[api.Admission](t)(c.Admit(ctx, pair(fmt.Sprint("n", i), vnet.Mbit), false))
		}
	}
	must[[]api.Host](t)(ours.client(at, "operator", ours).Hosts(ctx))
	must[[]vnet.Lease](t)(r.as(20002).Leases(ctx))
	select {
	case err := <-ended:
		t.Fatalf("the server ended: %v", err)
	default:
	}
}

// limitedServer runs a server that may open only so many files, and returns
// the address of its port.
func limitedServer(t *testing.T, r *rig, ours *authority, files int) (at string, ended <-chan error) {
	t.Helper()
	child := exec.Command("sh", "-c", fmt.Sprintf("ulimit -n %d; exec %s", files, os.Args[0]))
	child.Env = append(os.Environ(), "SUBLET_TEST_SERVER="+r.dir, "SUBLET_TEST_CERTS="+ours.dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	return strings.TrimSpace(line), done
}
