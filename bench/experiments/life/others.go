package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// imageFile is what nodes run, and imageName what podman calls it.
const (
	imageFile = "box.tar"
	imageName = "localhost/sublet-life"
	bridge    = "slt-life"
)

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func command(ctx context.Context, name string, args ...string) error {
	_, err := output(ctx, name, args...)
	return err
}

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var said, told bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &said, &told
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, told.Bytes(), said.Bytes())
	}
	return said.Bytes(), nil
}

// makeImage puts busybox into an image that both can run; without podman into a
// directory, which is one for Sublet.
func makeImage(ctx context.Context, dir string) error {
	root, images := filepath.Join(dir, "root"), filepath.Join(dir, "images")
	script := `set -e; umask 022; mkdir -p "$1/bin" "$1/dev" "$1/etc" "$1/proc" "$1/sys" "$1/tmp" "$2"
cp "$(command -v busybox)" "$1/bin/"; ln -s busybox "$1/bin/sh"; ln -s busybox "$1/bin/sleep"; chmod 755 "$3" "$2"`
	if err := command(ctx, "sh", "-c", script, "sh", root, images, dir); err != nil {
		return err
	}
	if !installed("podman") {
		return os.Rename(root, filepath.Join(images, imageFile))
	}
	return command(ctx, "sh", "-c", `tar -C "$1" -c . | podman import -q -c 'CMD ["/bin/sleep", "infinity"]' - "$3" >&2 && podman save -q --format oci-archive -o "$2" "$3"`,
		"sh", root, filepath.Join(images, imageFile), imageName)
}

// script starts the network that Mininet is compared with. It tells how long that
// took, waits for a line while its memory is looked at, and ends it.
const script = `import sys, time
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
from mininet.topo import LinearTopo
began = time.time()
net = Mininet(topo=LinearTopo(int(sys.argv[1]), int(sys.argv[2])), switch=LinuxBridge, controller=None)
net.start()
for host in net.hosts: host.sendCmd("sleep infinity &")
for host in net.hosts: host.waitOutput()
print(time.time() - began, flush=True)
sys.stdin.readline()
began = time.time()
net.stop()
print(time.time() - began, flush=True)
`

// mininet times it from within: without the start of Python.
func mininet(ctx context.Context, _ string, count int) (f figures, err error) {
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", "-c", script, fmt.Sprint(switches(count)), fmt.Sprint(count/switches(count)))
	in, err := cmd.StdinPipe()
	if err != nil {
		return f, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return f, err
	}
	if err := cmd.Start(); err != nil {
		return f, err
	}
	if _, err = fmt.Fscan(out, &f.start); err == nil {
		f.memory = proportional(below(cmd.Process.Pid))
		fmt.Fprintln(in)
		_, err = fmt.Fscan(out, &f.stop)
	}
	return f, errors.Join(err, cmd.Wait())
}

// podman starts a container for each node, some at a time as containerlab does,
// and gives it an interface at a bridge.
func podman(ctx context.Context, _ string, count int) (f figures, err error) {
	if f.start, err = timed(func() error {
		if err := command(ctx, "ip", "link", "add", bridge, "up", "type", "bridge"); err != nil {
			return err
		}
		return atOnce(count, func(i int) error { return container(ctx, i) })
	}); err == nil {
		f.memory = proportional(commanded("conmon"))
	}
	var failed error
	f.stop, failed = timed(func() error {
		var names []string
		for i := range count {
			names = append(names, containerName(i))
		}
		return errors.Join(command(ctx, "podman", append([]string{"--runtime", "runc", "rm", "-f", "-i", "-t", "0"}, names...)...), command(ctx, "ip", "link", "del", bridge))
	})
	return f, errors.Join(err, failed)
}

func containerName(i int) string { return fmt.Sprintf("slt-life-%d", i) }

func container(ctx context.Context, i int) error {
	// By runc, since crun 1.8 refuses to run where both versions of control groups are
	// mounted, and with limits that root without CAP_SYS_RESOURCE may set.
	if err := command(ctx, "podman", "--runtime", "runc", "run", "-d", "-q", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
		"--name", containerName(i), imageName); err != nil {
		return err
	}
	pid, err := exec.CommandContext(ctx, "podman", "inspect", "-f", "{{.State.Pid}}", containerName(i)).Output()
	if err != nil {
		return err
	}
	return command(ctx, "ip", "link", "add", fmt.Sprintf("slt-life%d", i), "master", bridge, "up", "type", "veth", "peer", "name", "eth1", "netns", strings.TrimSpace(string(pid)))
}

// atOnce does something for each number, four of them at a time.
func atOnce(count int, do func(i int) error) error {
	var all sync.WaitGroup
	failed := make([]error, count)
	turn := make(chan bool, 4)
	for i := range count {
		turn <- true
		all.Go(func() {
			failed[i] = do(i)
			<-turn
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err // the first one says enough
		}
	}
	return nil
}
