package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	product "sublet/lab"
)

// shortly is how long what serves tenants may be away until it is back.
const shortly = 3 * time.Second

// longest is the longest time in which nothing came through.
func (f *flow) longest() time.Duration {
	gap, most, last := 0, 0, int64(0)
	for _, number := range f.lost() {
		if gap++; number != last+1 {
			gap = 1
		}
		last, most = number, max(most, gap)
	}
	return time.Duration(most) * flowEvery
}

// back fails the test if a flow was interrupted for longer than shortly, or does
// not flow now.
func (b *blind) back(after string) {
	b.t.Helper()
	for _, f := range b.flows {
		before := f.received.Load()
		eventually(b.t, shortly, func() error {
			if f.received.Load() <= before+10 {
				return errors.New(after + ": " + f.name + " does not flow")
			}
			return nil
		})
		gap := f.longest()
		if gap > shortly {
			b.t.Errorf("%s: %s was away for %s", after, f.name, gap)
		}
		b.t.Logf("%s: %s was away for %s", after, f.name, gap)
	}
}

// The file system that holds the programs of a host is unmounted behind its
// agent's back. The programs go with it, unless another process has it in mounts
// of its own, as FRR's daemons have; the same agent loads them again. So does one
// that starts then.
//
// It runs alone: what other tests start may have the file system too.
func TestUnmountedProgramsComeBack(t *testing.T) {
	for _, protocol := range []string{"static", "ospf"} {
		t.Run(protocol, func(t *testing.T) { unmountPrograms(t, protocol) })
	}
}

func unmountPrograms(t *testing.T, protocol string) {
	b := newBlind(t, protocol)
	path, pid := filepath.Join(b.run, "bpf", "h1"), b.get(agentOf("h1")).pid
	for round := range 2 {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		b.back(fmt.Sprintf("unmounted %d", round))
		b.well("unmounted")
	}
	if now := b.get(agentOf("h1")).pid; now != pid || syscall.Kill(pid, 0) != nil {
		t.Error("it was not the same agent that repaired it")
	}
	request := parseRequest(t, strings.Replace(crashNetwork, "crash", "later", 1))
	b.admit(request)
	b.ready(idOf(request))
	b.kill(agentOf("h1"))
	b.start(agentOf("h1"))
	b.asPlanned(b.hosts...)
	b.back("the next agent")
	if lost := len(b.flows[0].lost()); lost == 0 && protocol == "static" {
		t.Errorf("no packet was lost: the programs stayed")
	}
}

// An agent whose machine shows it no control groups leaves everything alone, and
// says so; ip netns exec, which mounts /sys anew, is the usual way into that.
func TestAgentWithoutControlGroups(t *testing.T) {
	t.Parallel()
	b := newBlind(t, "ospf")
	b.kill(agentOf("h1"))
	from := b.logged()
	b.startApart("umount -l /sys; mount -t sysfs none /sys")
	eventually(t, 5*time.Second, func() error { return b.said(from, "control groups cannot be looked at at /sys/fs/cgroup") })
	time.Sleep(4 * dwell)
	b.unharmed("without control groups")
	eventually(t, 5*time.Second, func() error {
		if b.reported() == 0 {
			return errors.New("the host is not reported")
		}
		return nil
	})
	b.kill(agentOf("h1"))
	b.start(agentOf("h1"))
	b.well("with control groups again")
	endLossless(b.flows...)
}

// running finds a process of h1 by its program and its control group; 0: there
// is none.
func (b *blind) running(program, group string) int {
	group = filepath.Join(product.Cgroup(b.run), "h1", group, "cgroup.procs")
	for _, file := range matches("/sys/fs/cgroup/"+group, "/sys/fs/cgroup/*/"+group) {
		text, _ := os.ReadFile(file)
		for _, pid := range strings.Fields(string(text)) {
			if exe, _ := os.Readlink("/proc/" + pid + "/exe"); filepath.Base(exe) == program {
				number, _ := strconv.Atoi(pid)
				return number
			}
		}
	}
	return 0
}

// A process that serves tenants and stands still is replaced.
func TestStoppedServersAreReplaced(t *testing.T) {
	t.Parallel()
	b := newBlind(t, "ospf")
	victims := map[string]string{filepath.Base(program): "vxswitch"}
	if haveFRR() {
		victims["ospfd"], victims["zebra"] = "root.plain.r", "root.plain.r"
	}
	for name, group := range victims {
		pid := b.running(name, group)
		if pid == 0 {
			t.Fatalf("%s does not run", name)
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		stopped := time.Now()
		eventually(t, shortly, func() error {
			if now := b.running(name, group); now == 0 || now == pid {
				return fmt.Errorf("%s is %d, and was %d", name, now, pid)
			}
			return nil
		})
		t.Logf("%s was replaced after %s", name, time.Since(stopped).Round(time.Millisecond))
		b.back(name + " stopped")
		b.well(name + " stopped")
	}
}
