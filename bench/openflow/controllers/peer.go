package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// peer is a controller that is up.
type peer struct {
	name string
	port int
	most int // switches that it serves; 0: any
	cmd  *exec.Cmd
}

func (p *peer) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// pid is that of taskset, which becomes the controller.
func (p *peer) pid() int { return p.cmd.Process.Pid }

// ours is the name of Sublet's controller.
const ours = "sublet controller"

// servesAtOnce is how many switches ovs-testcontroller is given: it has places for 16,
// and lets go of those that left only after a while.
const servesAtOnce = 8

// osken listens where its constants say; its application is the learning switch of its
// documentation.
const osken = `import sys
from os_ken.ofproto import ofproto_common
ofproto_common.OFP_TCP_PORT = int(sys.argv[1])
sys.path.insert(0, sys.argv[2])
from os_ken.base.app_manager import AppManager
AppManager.run_apps(["osken_learning"])
`

// start starts all controllers that are installed here.
func (b *bench) start() error {
	if err := b.add(ours, 0, nil, b.exe, "controller", "--listen", "127.0.0.1:{port}", "--app", "learning"); err != nil {
		return err
	}
	if _, err := exec.LookPath("ovs-testcontroller"); err != nil {
		fmt.Fprintln(os.Stderr, "left out:", err)
	} else if err := b.add("ovs-testcontroller", servesAtOnce, nil, "ovs-testcontroller", "--unixctl=none", "ptcp:{port}:127.0.0.1"); err != nil {
		return err
	}
	python := os.Getenv("OSKEN_PYTHON")
	if _, err := os.Stat(python); err != nil {
		fmt.Fprintln(os.Stderr, "left out: os-ken: OSKEN_PYTHON names no Python that has it:", err)
		return nil
	}
	apps, err := filepath.Abs("test/testdata")
	if err != nil {
		return err
	}
	return b.add("os-ken", 0, nil, python, "-c", osken, "{port}", apps)
}

// add starts a controller on processor 1 and waits until it listens. {port} stands for
// its port.
func (b *bench) add(name string, most int, env []string, argv ...string) error {
	p, err := b.begin(name, "1", env, argv...)
	if err != nil {
		return err
	}
	p.most = most
	b.peers = append(b.peers, p)
	return nil
}

// begin starts a controller on processors, and waits until it listens.
func (b *bench) begin(name, processors string, env []string, argv ...string) (*peer, error) {
	p := &peer{name: name, port: 6700 + len(b.peers)}
	args := []string{"-c", processors}
	for _, word := range argv {
		args = append(args, strings.ReplaceAll(word, "{port}", strconv.Itoa(p.port)))
	}
	p.cmd = exec.Command("taskset", args...)
	p.cmd.Env = append(os.Environ(), env...)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.address())
		if err == nil {
			conn.Close()
			return p, nil
		}
		if ctx.Err() != nil {
			p.stop()
			return nil, fmt.Errorf("%s does not listen at %s: %w", name, p.address(), err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *peer) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (b *bench) stop() {
	for _, p := range b.peers {
		p.stop()
	}
}
