package vnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// keeper is a node that keeps what it writes, on a small disk.
func keeper(serial uint64) plan.Setup {
	return plan.Setup{Lease: demo, Node: "n0", Serial: serial, Setup: vnet.Setup{State: vnet.StateKeep, Disk: vnet.MinKeptDisk}}
}

func newKeeper(t *testing.T) (*Part, *kernel.Host) {
	p, h := newPart(t)
	if why := Keeping(); why != "" {
		t.Skip(why)
	}
	p.Kept = filepath.Join(t.TempDir(), "kept")
	return p, h
}

// reboot ends all that runs on a host, and takes away what a boot takes away.
func reboot(t *testing.T, p *Part, h *kernel.Host, n plan.VNode) {
	t.Helper()
	check(t, h.Group(n.Key()).Remove())
	check(t, kernel.Unbind(h.Path(n.Key())))
	for _, path := range []string{p.scratchPath(n.Key()), p.keptPath(n.Key())} {
		check(t, kernel.Unbind(path))
	}
	for _, file := range []string{p.setupPath(n.Key()), p.imagePath(n.Key()), rangePath(h, n.Owner)} {
		check(t, gone(os.Remove(file)))
	}
	p.owners.close()
	check(t, kernel.Unbind(h.OwnerFile(n.Owner)))
}

// What a node keeps, with its owners, outlives its first process, the agent and the
// host; it goes with the lease, and is nothing to another lease of the same name.
func TestKeptFiles(t *testing.T) {
	for _, owner := range tenants() {
		t.Run(fmt.Sprint(owner), func(t *testing.T) {
			p, h := newKeeper(t)
			n, s := node("n0", owner), keeper(7)
			do(t, p, plan.Add, names(), n, s)
			has(t, p, names(), n, s)
			if out, code := run(t, p, n, "sh", "-c", "echo mine >/srv/a && chown 33:44 /srv/a && chmod 640 /srv/a && mkdir /etc/d && ln -s /srv/a /etc/d/l && rm /etc/hostname; rm -rf /media; sync"); code != 0 {
				t.Fatal(out)
			}
			look := "cat /etc/d/l; stat -c %u:%g:%a /srv/a; ls -d /media 2>/dev/null"
			const want = "mine\n33:44:640"
			for what, damage := range map[string]func(){
				"its first process killed": func() { check(t, h.Group(n.Key()).Sub(pauseGroup).Remove()) },
				"a boot":                   func() { reboot(t, p, h, n) },
				"another agent": func() {
					again := partOn(h)
					again.Kept = p.Kept
					p.Close()
					*p = Part{host: h, owners: again.owners, program: again.program, fetched: again.fetched, Changed: again.Changed, Kept: again.Kept}
					reboot(t, p, h, n)
				},
			} {
				damage()
				do(t, p, plan.Set, n, s)
				has(t, p, names(), n, s)
				if out, _ := run(t, p, n, "sh", "-c", look); out != want {
					t.Errorf("%s: %q, want %q", what, out, want)
				}
			}
			s.Serial++
			do(t, p, plan.Set, s)
			if out, _ := run(t, p, n, "sh", "-c", "ls /srv/a /etc/d 2>/dev/null"); out != "" {
				t.Errorf("another lease finds %q", out)
			}
			reboot(t, p, h, n)
			if got := plan.Of[plan.Setup](observe(t, p)); len(got) != 1 || got[0].Key() != s.Key() {
				t.Errorf("what was kept is not seen: %v", got)
			}
			do(t, p, plan.Delete, plan.Setup{Lease: demo, Node: "n0"})
			leftNothing(t, p, h)
		})
	}
}

// leftNothing checks that no file, mount or device is left of what was kept.
func leftNothing(t *testing.T, p *Part, h *kernel.Host) {
	t.Helper()
	if left, err := os.ReadDir(p.Kept); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	mounts, err := kernel.Mounts(kernel.OwnMounts)
	check(t, err)
	for _, m := range mounts {
		if m.Within(h.Dir(keptKind)) {
			t.Errorf("%s is still mounted", m.Point)
		}
	}
	wait(t, "the device to go", func() bool {
		files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
		for _, file := range files {
			if text, _ := os.ReadFile(file); strings.HasPrefix(string(text), p.Kept) {
				return false
			}
		}
		return true
	})
}

// What a node keeps is bounded by its disk, tells no names on the host, and does not
// count against the node's memory for good.
func TestKeptFilesAreBounded(t *testing.T) {
	p, h := newKeeper(t)
	n, s := node("n0", 4242), keeper(7)
	n.Memory = 64 * vnet.MiB
	do(t, p, plan.Add, names(), n, s)
	if out, code := run(t, p, n, "sh", "-c", "dd if=/dev/zero of=/srv/big bs=1M count=200 2>&1"); code == 0 || !strings.Contains(out, "No space left") {
		t.Errorf("%d, %s", code, out)
	}
	if out, code := run(t, p, n, "sh", "-c", "cd /srv && rm big && mknod disk b 7 0 2>&1; cp /bin/sleep s && chmod 4755 s && echo fine"); !strings.HasSuffix(out, "fine") || code != 0 {
		t.Errorf("after the disk was full: %d, %s", code, out)
	}
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.HasPrefix(string(text), p.Kept) && strings.Contains(string(text), string(demo.Network)) {
			t.Errorf("%s says %s", file, text)
		}
	}
	var st unix.Statfs_t
	check(t, unix.Statfs(p.keptPath(n.Key()), &st))
	if st.Flags&unix.ST_NOSUID == 0 || st.Flags&unix.ST_NODEV == 0 || int64(st.Blocks)*st.Bsize > int64(s.Disk) {
		t.Errorf("mounted with flags %#x, %d blocks of %d", st.Flags, st.Blocks, st.Bsize)
	}
	do(t, p, plan.Delete, s, n)
	leftNothing(t, p, h)
}

// Files whose owners would be other users now, or a disk of another image, are neither
// used nor removed; the range that files belong to is given to nobody else.
func TestKeptFilesOfOthers(t *testing.T) {
	p, h := newKeeper(t)
	n, s := node("n0", 4242), keeper(7)
	do(t, p, plan.Add, names(), n, s)
	if out, code := run(t, p, n, "touch", "/srv/a"); code != 0 {
		t.Fatal(out)
	}
	mine, err := readRange(rangePath(h, n.Owner))
	check(t, err)
	reboot(t, p, h, n)
	next := n.Owner + mostRanges // begins to look where the first did
	check(t, p.owners.reserve(next))
	if base, err := readRange(rangePath(h, next)); err != nil || base == mine {
		t.Errorf("user %d has range %d, %v", next, base, err)
	}
	check(t, p.owners.keep(n.Owner, mine+rangeSize*17))
	do(t, p, plan.Set, n)
	err = p.Do(t.Context(), plan.Step{Op: plan.Set, Item: s})
	if err == nil {
		_, err = p.Command(n.Key(), []string{"true"}, Options{})
	}
	if err == nil || !strings.Contains(err.Error(), "what it kept belongs to user 4242") {
		t.Errorf("files of other users: %v", err)
	}
	was := note{Serial: 1, Image: "a.raw", Machine: true, Below: "before", Owner: image.Owner{}}
	now := was
	now.Below = "after"
	if err := was.fits(now); !was.same(now) || err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a disk of another image: %v", err)
	}
	do(t, p, plan.Delete, s, n)
	leftNothing(t, p, h)
}

// A disk that a node which was killed still has is waited for, and not mounted twice.
func TestKeptDiskIsMountedOnce(t *testing.T) {
	p, h := newKeeper(t)
	n, s := node("n0", 4242), keeper(7)
	do(t, p, plan.Add, names(), n, s)
	if out, code := run(t, p, n, "touch", "/srv/a"); code != 0 {
		t.Fatal(out)
	}
	check(t, kernel.Unbind(p.keptPath(n.Key()))) // its namespace still has it
	if _, err := openShort(p, n); err == nil {
		t.Fatal("the disk is taken twice")
	}
	holder := exec.Command("sleep", "0.2")
	check(t, holder.Start())
	check(t, h.Group(n.Key()).Sub(pauseGroup).Remove())
	check(t, holder.Wait())
	if out, code := run(t, p, n, "ls", "/srv/a"); code != 0 {
		t.Error(out)
	}
	do(t, p, plan.Delete, s, n)
	leftNothing(t, p, h)
}

// openShort tries for a moment to lock a node's disk.
func openShort(p *Part, n plan.VNode) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(p.keptDir(n.Key()), diskFile), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	time.Sleep(50 * time.Millisecond)
	return f, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// What a machine has written is there when it begins again, unless its image is
// another one since; a disk that makes QEMU open other files is refused.
func TestKeptDisk(t *testing.T) {
	p, _ := newKeeper(t)
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip(err)
	}
	offered := t.TempDir()
	base := filepath.Join(offered, "small.raw")
	check(t, os.WriteFile(base, make([]byte, 1<<20), 0o644))
	store, err := image.New(image.Config{Dir: filepath.Join(t.TempDir(), "store"), Offered: offered})
	check(t, err)
	p.Images = store
	s := plan.Setup{Lease: demo, Node: "n0", Serial: 7, Setup: vnet.Setup{Kind: vnet.KindVM, Image: "small.raw", State: vnet.StateKeep}}
	open := func() (*os.File, error) {
		disk, err := store.OpenDisk(s.Image, s.DiskFormat())
		check(t, err)
		defer disk.File.Close()
		return p.machineLayer(s, disk, 4<<20)
	}
	const far = 3 << 20
	layer, err := open()
	check(t, err)
	_, err = layer.WriteAt([]byte("mine"), far)
	check(t, err)
	check(t, layer.Close())
	again, err := open()
	check(t, err)
	text := make([]byte, 4)
	if _, err := again.ReadAt(text, far); err != nil || string(text) != "mine" {
		t.Errorf("kept %q, %v", text, err)
	}
	_, err = again.WriteAt([]byte{0, 0, 0, 0, 0, 0, 0, 104, 0, 0, 0, 9}, 8) // a backing file
	check(t, errors.Join(err, again.Close()))
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "the disk that it kept: it has a backing file") {
		t.Errorf("a disk with a backing file: %v", err)
	}
	check(t, os.Chtimes(base, time.Unix(1, 0), time.Unix(1, 0)))
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a disk of another image: %v", err)
	}
	s.Serial++
	fresh, err := open()
	check(t, err)
	defer fresh.Close()
	if _, err := fresh.ReadAt(text, far); err == nil && string(text) == "mine" {
		t.Error("another lease finds the disk")
	}
	check(t, p.dropKept(s.Key()))
}
