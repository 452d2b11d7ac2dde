package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
)

// bed is a namespace with links and the processes of nodes.
type bed struct {
	namespace, self string
	running         []*exec.Cmd
}

// begin makes the links of a topology and starts its nodes.
func begin(ctx context.Context, t topology) (_ *ran, err error) {
	b := &bed{namespace: fmt.Sprint("pinning", os.Getpid())}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	inside := "ip -n " + b.namespace + " link "
	lines := []string{"ip netns add " + b.namespace, "ip netns exec " + b.namespace + " sysctl -qw net.ipv6.conf.default.disable_ipv6=1"}
	for _, link := range []string{"in", "out", "f1", "f2", "s12", "s23"} {
		lines = append(lines, inside+"add "+link+" type veth peer name "+link+"-", inside+"set "+link+" up", inside+"set "+link+"- up")
	}
	r := &ran{b, t}
	if err := harness.Commands(lines...); err != nil {
		return nil, errors.Join(err, r.close())
	}
	for _, hops := range t.hops {
		c := b.command(ctx, append([]string{nodeCommand}, hops...)...)
		c.Env = append(os.Environ(), "GOMAXPROCS=1")
		if err := c.Start(); err != nil {
			return nil, errors.Join(err, r.close())
		}
		b.running = append(b.running, c)
	}
	time.Sleep(500 * time.Millisecond) // sockets are bound
	return r, nil
}

func (b *bed) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", b.namespace, b.self}, args...)...) // ip becomes the program
	c.Stderr = os.Stderr
	return c
}

func (b *bed) close() error {
	for _, c := range b.running {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	return harness.Commands("ip netns del " + b.namespace)
}

// free measures under the kernel's scheduler: the rate, and what nodes use of a core.
func (r *ran) free(ctx context.Context) (float64, []float64, error) {
	for _, c := range r.running {
		if err := pin(c.Process.Pid, 1<<runtime.NumCPU()-1); err != nil {
			return 0, nil, err
		}
	}
	return r.load(ctx, 1514, 0)
}

// pinned measures with each node on the core that its bit says.
func (r *ran) pinned(ctx context.Context, cores int) (float64, error) {
	for i, c := range r.running {
		if err := pin(c.Process.Pid, 1<<(cores>>i&1)); err != nil {
			return 0, err
		}
	}
	rate, _, err := r.load(ctx, 1514, 0)
	return rate, err
}

// at is what nodes use of a core at a rate.
func (r *ran) at(ctx context.Context, size int, mbit float64) ([]float64, error) {
	_, used, err := r.load(ctx, size, mbit)
	return used, err
}

// load sends frames through the nodes, as fast as they come out or at a rate in Mbit/s.
func (r *ran) load(ctx context.Context, size int, mbit float64) (rate float64, used []float64, err error) {
	before, began := r.times(), time.Now()
	out, err := r.command(ctx, loadCommand, strconv.Itoa(size), fmt.Sprint(mbit), window.String()).Output()
	if err != nil {
		return 0, nil, err
	}
	seconds := time.Since(began).Seconds()
	for i, now := range r.times() {
		used = append(used, (now-before[i]).Seconds()/min(seconds, window.Seconds()))
	}
	_, err = fmt.Sscan(string(out), &rate)
	return rate, used, err
}

// times are the processor times of the nodes.
func (r *ran) times() (list []time.Duration) {
	for _, c := range r.running {
		var sum time.Duration
		for _, task := range tasks(c.Process.Pid) {
			text, err := os.ReadFile(filepath.Join(task, "schedstat"))
			if words := strings.Fields(string(text)); err == nil && len(words) > 0 {
				ns, _ := strconv.ParseInt(words[0], 10, 64)
				sum += time.Duration(ns)
			}
		}
		list = append(list, sum)
	}
	return list
}

// tasks are the directories of a process's threads.
func tasks(pid int) []string {
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the pattern is sound
	return list
}

// pin lets a process run on the cores of a mask.
func pin(pid int, mask int) error {
	var set unix.CPUSet
	for core := range runtime.NumCPU() {
		if mask>>core&1 == 1 {
			set.Set(core)
		}
	}
	for _, task := range tasks(pid) {
		thread, err := strconv.Atoi(filepath.Base(task))
		if err == nil {
			err = unix.SchedSetaffinity(thread, &set)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
