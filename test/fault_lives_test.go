package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	product "sublet/lab"
	"sublet/lab/guest"
	"sublet/vnet"
)

// livesRequest has a life of each kind: programs in an image whose files are kept,
// programs on the host's files, and a machine that keeps its disk.
const livesRequest = `network: lives
nodes:
  - name: box
    image: box
    state: keep
    disk: 64MiB
    run: [{cmd: [/bin/sh, -c, "exec sleep 98765"], restart: always}]
  - name: plain
    run: [{cmd: [sh, -c, "exec sleep 98765"], restart: always}]
  - {name: m1, kind: vm, image: small.raw, memory: 256MiB, disk: 64MiB, state: keep}
links:
  - {ends: [box, plain], rate: 10Mbit}
  - {ends: [plain, m1], rate: 10Mbit}
`

// lives are those of a request under kills.
type lives struct {
	*supervisor
	rand   *rand.Rand
	hosts  map[string]string // by node
	rounds []string          // what box has kept
	done   map[string]int
}

// Agents, the server, first processes, supervisors, programs and emulators are killed
// at random: each life goes on or begins anew, there is one of each, what is kept is
// whole, and nothing is left when the lease has ended. The seed replays a run.
func TestSoakRandomLives(t *testing.T) {
	t.Parallel()
	n := seed(t)
	images := t.TempDir()
	guest.Disk(t, filepath.Join(images, "small.raw"))
	boxOf(t, filepath.Join(images, "box"))
	l := &lives{supervisor: newSupervisor(t, "demo", "--images", images), rand: rand.New(rand.NewPCG(n, 3)), hosts: make(map[string]string), done: make(map[string]int)}
	hosts := l.hostNames()
	l.settled()
	before := l.machine(hosts...)
	l.must("up", l.file("lives.yaml", livesRequest))
	for node, host := range l.leases()[0].Mapping.Nodes {
		l.hosts[node] = string(host)
	}
	for end := time.Now().Add(soakTime(t) / 2); time.Now().Before(end) && !t.Failed(); {
		l.round()
	}
	t.Logf("%d rounds; killed: %v", len(l.rounds), l.done)
	l.must("down", "lives")
	l.gone(vnet.LeaseID{Tenant: "root", Network: "lives"})
	eventually(t, 20*time.Second, func() error {
		after := l.machine(hosts...)
		for _, seen := range after {
			if !slices.Contains(before, seen) {
				return fmt.Errorf("left: %s", seen)
			}
		}
		for _, host := range hosts {
			if left, _ := os.ReadDir(filepath.Join(l.run, "agent", "kept", host)); len(left) > 0 {
				return fmt.Errorf("left of what was kept on %s: %v", host, left)
			}
		}
		return nil
	})
}

// boxOf makes a directory that is an image with busybox.
func boxOf(t *testing.T, dir string) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed: tools/install-deps installs it")
	}
	program, err := os.ReadFile(busybox)
	bin := filepath.Join(dir, "bin")
	err = errors.Join(err, os.MkdirAll(bin, 0o755), os.WriteFile(filepath.Join(bin, "busybox"), program, 0o755))
	for _, name := range []string{"sh", "sleep", "cat", "ping"} {
		err = errors.Join(err, os.Symlink("busybox", filepath.Join(bin, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// round writes down its number, kills one or two at once, and waits until all is as it
// should be.
func (l *lives) round() {
	l.t.Helper()
	number := strconv.Itoa(len(l.rounds))
	l.rounds = append(l.rounds, number)
	l.must("exec", "lives/box", "--", "/bin/sh", "-c", "echo "+number+" >>/kept && /bin/busybox sync")
	victims := l.victims()
	for range 1 + l.rand.IntN(2) {
		name := victims[l.rand.IntN(len(victims))]
		l.done[name]++
		l.strike(name)
	}
	eventually(l.t, patience, l.whole)
}

// victims are a kind and where it is, sorted.
func (l *lives) victims() []string {
	list := []string{"server", "qemu m1", "init m1"}
	for node, host := range l.hosts {
		list = append(list, "agent "+host)
		if node != "m1" {
			list = append(list, "pause "+node, "init "+node, "run-0 "+node)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (l *lives) strike(name string) {
	l.t.Helper()
	what, of, _ := strings.Cut(name, " ")
	rest := time.Duration(l.rand.IntN(300)) * time.Millisecond
	switch what {
	case "server":
		l.restart(server, rest)
	case "agent":
		l.restart(agentOf(of), rest)
	case "qemu":
		what = "run-0"
		fallthrough
	default:
		for _, pid := range l.pids(of, what) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended is fine
		}
	}
}

// pids are the processes of a node in one of its groups.
func (l *lives) pids(node, group string) []int {
	return l.pidsIn(l.hosts[node], "root.lives."+node, group)
}

// pidsIn are the processes of a node of a host in one of its groups.
func (l *lab) pidsIn(host, node, group string) (pids []int) {
	at := filepath.Join(product.Cgroup(l.run), host, node, group)
	for _, name := range matches("/proc/[0-9]*/cgroup") {
		text, _ := os.ReadFile(name) // of one that has ended: none
		for line := range strings.Lines(string(text)) {
			if strings.HasSuffix(strings.TrimSpace(line), at) {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// whole says what is not as it should be.
func (l *lives) whole() error {
	r := l.sublet("leases", "-o", "json")
	if r.code != 0 {
		return fmt.Errorf("the server: %s", r.err)
	}
	for _, v := range decode[[]leaseView](l.t, r.out) {
		if v.State != vnet.Running {
			return fmt.Errorf("%s is %s", v.Network, v.State)
		}
	}
	if r := l.sublet("exec", "lives/box", "--", "/bin/cat", "/kept"); r.out != strings.Join(l.rounds, "\n")+"\n" {
		return fmt.Errorf("what box kept: %q, %s, of %d rounds", r.out, r.err, len(l.rounds))
	}
	for node := range l.hosts {
		for _, group := range []string{"pause", "init", "run-0"} {
			if n := len(l.pids(node, group)); n != 1 {
				return fmt.Errorf("%s has %d processes in %s", node, n, group)
			}
		}
	}
	for _, to := range []string{"box", "m1"} {
		if err := l.pinged("lives", "plain", to); err != nil {
			return err
		}
	}
	return nil
}
