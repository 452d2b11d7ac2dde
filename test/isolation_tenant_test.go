package test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sublet/datapath/kernel"
)

// tenant is a user of this machine whom it does not even know by name.
type tenant struct {
	*lab
	uid uint32
}

// Two strangers to each other, and to the machine.
const alice, bob = 12345, 12346

// insideCommand makes this test program an attacker: it runs in nodes, through
// sublet exec, with what insides has under the next argument.
const insideCommand = "__inside"

var insides = map[string]func(args []string) error{
	"blast":    blastInside,
	"burst":    burstInside,
	"call":     callInside,
	"churn":    churnInside,
	"dial":     dialInside,
	"escape":   escapeInside,
	"fill":     fillInside,
	"flood":    floodInside,
	"forks":    forksInside,
	"hostile":  hostileInside,
	"inject":   injectInside,
	"segments": segmentsInside,
	"settings": settingsInside,
	"slow":     slowInside,
	"unread":   unreadInside,
}

func init() {
	if len(os.Args) < 3 || os.Args[1] != insideCommand {
		return
	}
	if err := insides[os.Args[2]](os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// tenants lets some users in: the lab's directory is opened to them, with
// a copy of the program beside it, and one of this test.
func (l *lab) tenants(uids ...uint32) []*tenant {
	l.t.Helper()
	dir := filepath.Dir(l.run)
	if err := os.Chmod(dir, 0o755); err != nil {
		l.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { os.Remove(l.attackProgram()) })
	for copied, source := range map[string]string{filepath.Join(dir, "sublet"): program, l.attackProgram(): self} {
		if err := copyFile(source, copied); err != nil {
			l.t.Fatal(err)
		}
	}
	list := make([]*tenant, len(uids))
	for i, uid := range uids {
		list[i] = &tenant{lab: l, uid: uid}
	}
	return list
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

func (c *tenant) name() string { return fmt.Sprintf("uid%d", c.uid) }

// command is the program, run by the tenant.
func (c *tenant) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(c.run), "sublet"), append([]string{"--run", c.run}, args...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
	return cmd
}

func (c *tenant) sublet(args ...string) result {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	return runCommand(c.command(ctx, args...))
}

func (c *tenant) must(args ...string) string {
	c.t.Helper()
	r := c.sublet(args...)
	if r.code != 0 {
		c.t.Fatalf("%s: sublet %s: exit code %d\n%s%s", c.name(), strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

func (c *tenant) up(text string) {
	c.t.Helper()
	c.must("up", c.file("request-"+c.name()+".yaml", text))
}

// attack runs one of insides in a node, named NETWORK/NODE.
func (c *tenant) attack(node string, args ...string) result {
	c.t.Helper()
	return c.sublet(append([]string{"exec", node, "--", c.attackProgram(), insideCommand}, args...)...)
}

// attackProgram is this test where tenants can run it, also in nodes, which see
// nothing of /run.
func (l *lab) attackProgram() string { return "/var/lib/" + labName(l.run) + "-attack" }

// shell runs a script in a node.
func (c *tenant) shell(node, script string) result {
	c.t.Helper()
	return c.sublet("exec", node, "--", "sh", "-c", script)
}

// node is the file of a node's namespace on a host, fabric that of a lease.
func (c *tenant) node(host, network, node string) string {
	return filepath.Join(c.run, "netns", host, c.name()+"."+network+"."+node)
}

func (c *tenant) fabric(host, network string) string {
	return filepath.Join(c.run, "netns", host, c.name()+"."+network)
}

// host is the file of a lab host's own namespace.
func (l *lab) host(name string) string { return "/run/netns/" + labName(l.run) + "-" + name }

// here is the file of the namespace in which server and tests run.
const here = "/proc/self/ns/net"

// within runs f on a thread in the namespace of a file.
func within(t *testing.T, path string, f func() error) {
	t.Helper()
	ns, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := kernel.In(ns, f); err != nil {
		t.Fatalf("in %s: %v", path, err)
	}
}
