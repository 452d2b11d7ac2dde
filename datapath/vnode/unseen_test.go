package vnode

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// identify is the number of a node's namespace: another one if it was made anew.
func identify(t *testing.T, h *kernel.Host, n plan.VNode) uint64 {
	t.Helper()
	var st unix.Stat_t
	check(t, unix.Stat(h.Path(n.Key()), &st))
	return st.Ino
}

// A user namespace that lost its file is asked whose it is: nodes in it stay,
// and the file comes back.
func TestLostOwnerFileComesBack(t *testing.T) {
	p, h := newPart(t)
	tenant, root := node("n0", 1000), node("n1", 0)
	do(t, p, plan.Add, tenant, root)
	before := [2]uint64{identify(t, h, tenant), identify(t, h, root)}
	for _, uid := range []uint32{1000, 0} {
		check(t, kernel.Unbind(h.OwnerFile(uid)))
	}
	p.Close()
	again := partOn(h)
	defer again.Close()
	has(t, again, tenant, root)
	do(t, again, plan.Set, tenant, root)
	if now := [2]uint64{identify(t, h, tenant), identify(t, h, root)}; now != before {
		t.Error("nodes were made anew")
	}
	for _, uid := range []uint32{1000, 0} {
		if _, err := kernel.OpenNamespace(h.OwnerFile(uid)); err != nil {
			t.Error(err)
		}
	}
}

// unseen is what an observation says is unknown.
func unseen(t *testing.T, p *Part) string {
	t.Helper()
	var h plan.Host
	check(t, p.Observe(context.Background(), &h))
	var said []string
	for _, u := range h.Unknown {
		said = append(said, string(u.Kind)+": "+u.Why)
	}
	return strings.Join(said, "; ")
}

// What is covered by another file system is neither there nor gone.
func TestCoveredDirectoriesAreUnknown(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, names(), n)
	has(t, p, names(), n)
	for kind, says := range map[string]string{"netns": "vnode", "userns": "vnode", "hosts": "names"} {
		check(t, unix.Mount("none", h.Dir(kind), "tmpfs", 0, ""))
		said := unseen(t, p)
		check(t, unix.Unmount(h.Dir(kind), 0))
		if !strings.HasPrefix(said, says+": ") || !strings.Contains(said, h.Dir(kind)+" cannot be looked at: another file system is mounted on it") {
			t.Errorf("%s covered: %q", kind, said)
		}
		has(t, p, names(), n)
	}
	away := h.Dir("hosts") + ".away"
	check(t, os.Rename(h.Dir("hosts"), away))
	said := unseen(t, p)
	check(t, os.Rename(away, h.Dir("hosts")))
	if !strings.Contains(said, "it is missing, and something was in it") {
		t.Errorf("moved away: %q", said)
	}
	has(t, p, names(), n)
}

// With the last node the directories that hosts have for them go.
func TestEmptyDirectoriesGo(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, names(), n)
	has(t, p, names(), n)
	do(t, p, plan.Delete, n, names())
	has(t, p)
	left, err := os.ReadDir(h.Run)
	check(t, err)
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	do(t, p, plan.Add, names(), n)
	has(t, p, names(), n)
}

// On a host without a file of names a node still has its own.
func TestNamesWithoutHostsFile(t *testing.T) {
	if os.Getenv("SUBLET_TEST_NO_HOSTS") == "" {
		if os.Geteuid() != 0 {
			t.Skip("needs root for a mount namespace")
		}
		etc := filepath.Join(t.TempDir(), "etc")
		check(t, os.Mkdir(etc, 0o755))
		check(t, os.WriteFile(filepath.Join(etc, "nsswitch.conf"), []byte("hosts: files\n"), 0o644))
		cmd := exec.Command("unshare", "--mount", "sh", "-ec", `mount --bind "$1" /etc; exec "$0" -test.run=^TestNamesWithoutHostsFile$`, os.Args[0], etc)
		cmd.Env = append(os.Environ(), "SUBLET_TEST_NO_HOSTS=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, names(), n)
	if out, code := run(t, p, n, "getent", "hosts", "n1"); code != 0 || !strings.Contains(out, "10.0.0.2") {
		t.Errorf("exit %d: %s", code, out)
	}
	if _, err := os.Stat("/etc/hosts"); err == nil {
		t.Error("the host has a file of names now")
	}
}
