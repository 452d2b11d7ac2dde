package test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/internal/stall"
)

// Servers whose stores are one cluster find each other, and need no etcd: one that is
// killed, stands still or is cut off is replaced within three seconds, and what was
// acknowledged before is there, once.
func TestServersOfAStoreOfTheirOwn(t *testing.T) {
	if !secluded(t) {
		return
	}
	c := newOwnControl(t, 3, twoHosts)
	history := c.record(4)
	for n, fault := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		leader := c.leader()
		watch := stall.Start()
		took := c.lost(n, fault)
		if starved := watch.Stop().Lost(); took > takeover+starved {
			t.Errorf("after %v of %s nobody answered for %s (processors were short for %s)", fault, leader.name, took, starved)
		}
		t.Logf("%v: %s", fault, took)
	}
	history.check()
	c.refusesMembers(t)
	for _, m := range c.members { // as when power fails
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
	}
	for _, m := range c.members { // none of which can do without another one
		c.launch(m)
	}
	c.leader()
}

// refusesMembers: who has no server's certificate is no member of the store.
func (c *control) refusesMembers(t *testing.T) {
	t.Helper()
	flags := c.ca.flags("bin")
	pair, err := tls.LoadX509KeyPair(flags[1], flags[3])
	if err != nil {
		t.Fatal(err)
	}
	for what, certificates := range map[string][]tls.Certificate{"no certificate": nil, "a tenant's certificate": {pair}} {
		conn, err := tls.Dial("tcp", c.members[0].store, &tls.Config{InsecureSkipVerify: true, Certificates: certificates})
		if err == nil {
			_, err = conn.Write([]byte("GET /members HTTP/1.0\r\n\r\n"))
			if err == nil {
				_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				_, err = conn.Read(make([]byte, 1))
			}
			conn.Close()
		}
		if err == nil || errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("%s was let in as a member of the store: %v", what, err)
		}
	}
}

// Members of the store come and go with their servers: one that was not added is
// refused, the last one stays, and one more that is lost afterwards is no loss.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	if !secluded(t) {
		return
	}
	c := newOwnControl(t, 2, twoHosts)
	first, second := c.members[0], c.members[1]
	stranger := c.namespace()
	c.refuses(t, stranger, "sublet servers add s3 "+stranger.address+" --member "+stranger.store)
	if r := c.operator(t, []string{second.address}, "servers", "add", "s9", stranger.address); r.code != 2 || !strings.Contains(r.err, "--member") {
		t.Errorf("a server without a member: exit code %d, %s", r.code, r.err)
	}
	c.must(t, []string{second.address}, "servers", "remove", c.leader().name)
	gone, stays := first, second
	if err := c.ended(first); err != nil {
		gone, stays = second, first
		if err := c.ended(second); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(gone.log.String(), gone.name+" was removed from the servers") {
		t.Errorf("the removed server says:\n%s", gone.log)
	}
	c.members = []*member{stays}
	if leader := c.leader(); leader != stays {
		t.Errorf("%s leads", leader.name)
	}
	if r := c.operator(t, []string{stays.address}, "servers", "remove", stays.name); r.code != 5 || !strings.Contains(r.err, "the only server") {
		t.Errorf("removing the last server: exit code %d, %s", r.code, r.err)
	}
	c.refuses(t, gone, gone.name) // its directory is of one that was removed
	for range 2 {
		c.add()
	}
	c.must(t, c.addresses(), "servers", "replace", stays.name, "s6", c.host(7)+":7443", "--member", c.host(7)+":7444")
	if err := c.ended(stays); err != nil {
		t.Error(err)
	}
	c.members = c.members[1:]
	c.members = append(c.members, c.namespace())
	c.start(c.members[2])
	_ = c.leader().cmd.Process.Kill() // the rest are a majority
	c.silence(0, func() {})
}

// refuses starts a server that must end by itself, with one line that has words.
func (c *control) refuses(t *testing.T, m *member, words string) {
	t.Helper()
	path := func(file string) string { return c.dir + "/" + file }
	args := append([]string{"netns", "exec", m.ns, program, "--run", m.run, "--cert", path(m.name + ".pem"), "--key", path(m.name + ".key"), "--ca", path("ca.pem"),
		"serve", "--name", m.name, "--listen", m.address, "--data", m.data, "--member", m.store}, "--join", strings.Join(c.addresses(), ","))
	cmd := exec.CommandContext(t.Context(), "ip", args...)
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), words) || strings.Contains(string(out), "panic") {
		t.Errorf("%s: %v\n%s\nwant %q", m.name, err, out, words)
	}
}

// ended waits until a server's process is over, with an error.
func (c *control) ended(m *member) error {
	over := make(chan error, 1)
	go func() { over <- m.cmd.Wait() }()
	select {
	case err := <-over:
		if err == nil {
			return fmt.Errorf("%s ended without an error", m.name)
		}
		return nil
	case <-time.After(90 * time.Second):
		return fmt.Errorf("%s goes on:\n%s", m.name, m.log)
	}
}
