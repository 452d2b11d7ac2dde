package vnode

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/plan"
	"sublet/vnet"
)

// runAs runs argv in a node as a user.
func runAs(t *testing.T, p *Part, n plan.VNode, user string, argv ...string) (string, int) {
	t.Helper()
	cmd, err := p.Command(n.Key(), argv, Options{User: user})
	check(t, err)
	defer cmd.Done()
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

// Commands run as users that the node's own files name; those that there are not, or
// whose files have no end, do not run.
func TestUsers(t *testing.T) {
	for _, owner := range tenants() {
		t.Run(fmt.Sprint(owner), func(t *testing.T) {
			p, _ := newPart(t)
			n := node("n0", owner)
			s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{User: "worker", Workdir: "/tmp", Files: []vnet.File{
				{Path: "/etc/passwd", Text: "root:x:0:0::/root:/bin/sh\nworker:x:1500:1600::/home/worker:/bin/sh\nfar:x:70000:1::/:/bin/sh\n"},
				{Path: "/etc/group", Text: "root:x:0:\nworkers:x:1600:\nextra:x:1700:worker\n"},
				{Path: "/opt/theirs", Text: "secret", Mode: "0600", Owner: "worker"},
				{Path: "/opt/others", Text: "secret", Mode: "0600", Owner: "7:1700"},
			}, Run: []vnet.Program{
				{Cmd: []string{"sh", "-c", "echo program $(id -u) >/dev/stdout; sleep 1000"}, Ready: vnet.Ready{Line: "program 1500"}},
				{Cmd: []string{"sh", "-c", "echo other $(id -u):$(id -g); sleep 1000"}, User: "33:44", Ready: vnet.Ready{Line: "other 33:44"}},
			}}}
			do(t, p, plan.Add, names(), n, s)
			wait(t, "the programs", func() bool { return len(p.Problems()) == 0 })
			for _, c := range []struct{ user, command, want string }{
				{"", "id -u; id -g; id -G; echo $HOME $USER", "1500\n1600\n1600 1700\n/home/worker worker"},
				{"0", "id -u; id -G", "0\n0"},
				{"root", "id -u", "0"},
				{"1500:1700", "id -u; id -g", "1500\n1700"},
				{"12", "id -u; touch /tmp/a && stat -c %u:%g /tmp/a", "12\n12:0"},
				{"worker", "cat /opt/theirs; stat -c %u:%g /opt/theirs", "secret1500:1600"},
				{"worker", "cat /opt/others 2>/dev/null || echo no", "no"},
				{"7", "cat /opt/others; stat -c %u:%g /opt/others", "secret7:1700"},
				{"7", "kill -0 1 2>/dev/null || echo no; mount -t tmpfs x /mnt 2>/dev/null || echo no; chown 0 /tmp/a 2>/dev/null || echo no", "no\nno\nno"},
				{"65535", "id -u", "65535"},
				{"12", "ping -q -c 1 127.0.0.1 >/dev/null && ping -q -c 1 ::1 >/dev/null && echo both", "both"},
				{"worker", "ping -q -c 1 127.0.0.1 >/dev/null && echo one", "one"},
				{"root", "cat /opt/theirs /opt/others; chown 5:6 /opt/theirs; stat -c %u:%g /opt/theirs", "secretsecret5:6"},
			} {
				if out, code := runAs(t, p, n, c.user, "sh", "-c", c.command); out != c.want || code != 0 {
					t.Errorf("%q: %s: %d, %q, want %q", c.user, c.command, code, out, c.want)
				}
			}
			for user, want := range map[string]string{"nobody-here": "no matching entries in passwd file", "far": "number 70000", "worker:nobody": "no matching entries in group file"} {
				if out, code := runAs(t, p, n, user, "true"); code != exitNotStarted || !strings.Contains(out, want) {
					t.Errorf("%s: %d, %q", user, code, out)
				}
			}
			if out, code := runAs(t, p, n, "0", "sh", "-c", "rm /etc/passwd && ln -s /dev/zero /etc/passwd"); code != 0 {
				t.Fatal(out)
			}
			if out, code := runAs(t, p, n, "worker", "true"); code != exitNotStarted || !strings.Contains(out, "/etc/passwd is no file of at most") {
				t.Errorf("users without end: %d, %q", code, out)
			}
			if out, code := runAs(t, p, n, "0", "sh", "-c", "id -u; rm /etc/passwd && mkfifo /etc/passwd"); code != 0 || out != "0" {
				t.Errorf("a number beside users without end: %d, %q", code, out)
			}
			if out, code := runAs(t, p, n, "12:13", "sh", "-c", "echo $(($$ > 0)); grep ^[UG]id: /proc/self/status | cut -f2"); code != 0 || out != "1\n12\n13" {
				t.Errorf("numbers beside users that are no file: %d, %q", code, out)
			}
		})
	}
}

// The user of an image runs its program, and owners of its files are users of the
// node, also where the host cannot show them as others'.
func TestUserOfAnImage(t *testing.T) {
	p, _ := newPart(t)
	offered := images(t, p)
	rewriteImage(t, filepath.Join(offered, "busybox.tar"), func(config map[string]any) {
		c := config["config"].(map[string]any)
		c["User"], c["Cmd"] = "1234:99", []string{"id -u; id -g; exec sleep 1000"}
	})
	n := node("n0", 4242)
	s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{Image: "busybox.tar"}}
	do(t, p, plan.Add, names(), n)
	give(t, p, s)
	wait(t, "the program", func() bool { return logOf(t, p, n) == "1234\n99\n" })
	if out, _ := runAs(t, p, n, "", "/bin/id", "-u"); out != "1234" {
		t.Errorf("a command runs as %q", out)
	}
	if out, _ := runAs(t, p, n, "0", "/bin/sh", "-c", "id -u; ls -ln /etc/mine"); !strings.HasPrefix(out, "0\n") || !strings.Contains(out, " 0 ") {
		t.Errorf("root: %q", out)
	}
}

// rewriteImage changes the configuration of an image as "docker save" writes it.
func rewriteImage(t *testing.T, path string, change func(map[string]any)) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", path, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	check(t, err)
	var config map[string]any
	check(t, json.Unmarshal(text, &config))
	change(config)
	text, err = json.Marshal(config)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o755))
	if out, err := exec.Command("tar", "-cf", path, "-C", dir, "config.json", "layer.tar", "manifest.json").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// Each user with nodes has a range that no other has, the same one as long as they
// have nodes, also when its note is lost and by the next agent; then it is free.
func TestRanges(t *testing.T) {
	p, h := newPart(t)
	const other = 4242 + mostRanges // looks at the same place first
	do(t, p, plan.Add, names(), node("n0", 4242), node("n1", other), node("n2", 0))
	of := func(uid uint32) uint32 {
		t.Helper()
		o, err := rootOwner(h, uid)
		check(t, err)
		return o.Base
	}
	first, second := of(4242), of(other)
	if first != firstRange+4242%mostRanges*rangeSize || second != first+rangeSize || of(0) != 0 {
		t.Errorf("ranges %#x, %#x, %#x", first, second, of(0))
	}
	want := fmt.Sprintf("0 4242 1\n1 %d 65535", first+1)
	if out, _ := run(t, p, node("n0", 4242), "sh", "-c", "cat /proc/self/uid_map | tr -s ' ' | sed 's/^ //'"); out != "0 0 65536" && out != want {
		t.Errorf("mapped are %q, want %q", out, want)
	}
	check(t, os.Remove(rangePath(h, 4242)))
	p.Close()
	next := partOn(h)
	t.Cleanup(next.Close)
	do(t, next, plan.Add, node("n3", 4242))
	if got := of(4242); got != first {
		t.Errorf("another range after the note was lost: %#x, not %#x", got, first)
	}
	do(t, next, plan.Delete, node("n0", 4242), node("n3", 4242))
	observe(t, next)
	if _, err := os.Stat(rangePath(h, 4242)); !os.IsNotExist(err) {
		t.Errorf("the range of a user without nodes: %v", err)
	}
	if of(other) != second {
		t.Error("the other user lost theirs")
	}
}

// Ranges keep off users that the host knows.
func TestRangesOfSubordinates(t *testing.T) {
	for base, want := range map[uint32]bool{firstRange: false, 0: true} {
		known, err := someoneIn(base)
		check(t, err)
		if known != want {
			t.Errorf("someone in %#x: %v", base, known)
		}
	}
}

// A node cannot take memory by the kernel's keys, which no limit of it counts.
func TestNoKeys(t *testing.T) {
	p, _ := newPart(t)
	do(t, p, plan.Add, names(), node("n0", 4242))
	python := `import ctypes; c = ctypes.CDLL(None, use_errno=True)
for n in (248, 249, 250, 248 | 0x40000000):
    ctypes.set_errno(0); r = c.syscall(n, b"user", b"x", b"y", 1, -3); print(r, ctypes.get_errno())`
	out, code := run(t, p, node("n0", 4242), "python3", "-c", python)
	if code != 0 || out != strings.TrimSpace(strings.Repeat("-1 1\n", 4)) {
		t.Errorf("%d, %q", code, out)
	}
}

// A node makes sockets of networks only: those of virtual machines, among others, are in
// no network namespace. Programs of 32 bits and of the other numbering make no others.
func TestNoSocketsBesideNetworks(t *testing.T) {
	p, _ := newPart(t)
	do(t, p, plan.Add, names(), node("n0", 4242))
	python := `import ctypes, socket; c = ctypes.CDLL(None, use_errno=True)
made = []
for family in range(64):
    for call in (41, 41 | 0x40000000, 53, 53 | 0x40000000):
        for kind in (1, 2, 3, 5):
            ctypes.set_errno(0)
            if c.syscall(call, family, kind, 0, (ctypes.c_int*2)()) >= 0 or ctypes.get_errno() not in (38, 97):
                made.append(family)
print(sorted(set(made)))
print(c.syscall(425, 1, ctypes.create_string_buffer(256)), ctypes.get_errno())`
	out, code := run(t, p, node("n0", 4242), "python3", "-c", python)
	if want := "[1, 2, 10, 16, 17]\n-1 38"; code != 0 || out != want {
		t.Errorf("%d, %q, want %q", code, out, want)
	}
}

// Programs of 32 bits have a call for all that concerns sockets, whose arguments no filter sees.
func TestSocketsOf32Bits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other architectures have no such call")
	}
	p, _ := newPart(t)
	do(t, p, plan.Add, names(), node("n0", 4242))
	// int 0x80 with the number and up to three arguments, in memory of the lower 4 GiB.
	python := `import ctypes, mmap
c = ctypes.CDLL(None); c.mmap.restype = ctypes.c_void_p
at = c.mmap(ctypes.c_void_p(0), 4096, 7, 0x62, -1, 0)
code = bytes.fromhex("53 89f8 89f3 87d1 cd80 5b c3".replace(" ", ""))
ctypes.memmove(at, code, len(code))
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(at)
args = at + 2048; ctypes.memmove(args, (ctypes.c_uint32*3)(40, 1, 0), 12)
print(call(20, 0, 0, 0) > 0, call(102, 1, args, 0), call(359, 40, 1, 0), call(360, 40, 1, 0), call(425, 1, args, 0), call(286, 0, 0, 0), call(359, 2, 1, 0) > 2)`
	out, code := run(t, p, node("n0", 4242), "python3", "-c", python)
	if strings.HasPrefix(out, "False") || code == 128+int(unix.SIGSEGV) {
		t.Skip("this kernel runs no programs of 32 bits")
	}
	if want := "True -38 -97 -97 -38 -1 True"; code != 0 || out != want {
		t.Errorf("%d, %q, want %q", code, out, want)
	}
}

// Outside is who they are where nothing shows files as another's: nobody gets root's.
func TestOutside(t *testing.T) {
	for _, c := range []struct {
		of       image.Owner
		uid, gid int
		want     [2]int
	}{
		{image.Owner{}, 5, 70000, [2]int{5, 65534}},
		{image.Owner{UID: 7, GID: 8, Base: firstRange}, 0, 0, [2]int{7, 8}},
		{image.Owner{UID: 7, GID: 8, Base: firstRange}, 1, 65535, [2]int{firstRange + 1, firstRange + 65535}},
		{image.Owner{UID: 7, GID: 8, Base: firstRange}, -1, 1 << 31, [2]int{firstRange + 65534, firstRange + 65534}},
		{image.Owner{UID: 7, GID: 8}, 33, 0, [2]int{7, 8}},
	} {
		if uid, gid := c.of.Outside(c.uid, c.gid); [2]int{uid, gid} != c.want {
			t.Errorf("%+v: %d:%d is %d:%d, want %v", c.of, c.uid, c.gid, uid, gid, c.want)
		}
	}
}

// Root of one tenant's nodes, who may become any user there, has no right to files of
// another's users of the same numbers, and no user of theirs is anybody of the host's.
func TestUsersOfTwoTenants(t *testing.T) {
	p, h := newPart(t)
	do(t, p, plan.Add, names(), node("n0", 4242), node("n1", 4243))
	dir, err := os.MkdirTemp("/tmp", "users")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	of := make(map[uint32]string)
	for _, tenant := range []uint32{4242, 4243} {
		owner, err := rootOwner(h, tenant)
		check(t, err)
		of[tenant] = filepath.Join(dir, fmt.Sprint(tenant))
		check(t, os.WriteFile(of[tenant], []byte("theirs"), 0o600))
		uid, gid := owner.Outside(1500, 1500)
		check(t, os.Chown(of[tenant], uid, gid))
	}
	for _, tenant := range []uint32{4242, 4243} {
		for whose, file := range of {
			for _, as := range []string{"0", "1500"} {
				out, err := exec.Command("nsenter", "--user="+h.OwnerFile(tenant), "setpriv", "--reuid="+as, "--regid="+as, "--clear-groups", "cat", file).CombinedOutput()
				if mine := whose == tenant; (err == nil) != mine || mine && string(out) != "theirs" || !mine && !strings.Contains(string(out), "Permission denied") {
					t.Errorf("user %s of %d reads the file of %d: %v, %s", as, tenant, whose, err, out)
				}
			}
		}
	}
}

// No program of a node gives its user the rights of another: not one of an image, of a
// directory that the operator offers, or one that the node's root makes.
func TestSetUID(t *testing.T) {
	p, _ := newPart(t)
	offered := images(t, p)
	unpacked, err := p.Images.Get(t.Context(), "busybox.tar", image.Owner{})
	check(t, err)
	check(t, os.CopyFS(filepath.Join(offered, "plain"), os.DirFS(unpacked.Root)))
	for _, name := range []string{"busybox-set-uid", "busybox-set-gid"} {
		program := filepath.Join(offered, "plain/bin", name)
		check(t, os.Link(filepath.Join(offered, "plain/bin/busybox"), program+".tmp"))
		text, err := os.ReadFile(program + ".tmp")
		check(t, err)
		check(t, os.WriteFile(program, text, 0o755))
		check(t, os.Chmod(program, 0o755|map[string]os.FileMode{"busybox-set-uid": os.ModeSetuid, "busybox-set-gid": os.ModeSetgid}[name]))
	}
	saveWith(t, filepath.Join(offered, "set.tar"), filepath.Join(offered, "busybox.tar"), 0o6755)
	for name, programs := range map[string][]string{
		"plain": {"/bin/busybox-set-uid", "/bin/busybox-set-gid", "/tmp/busybox-own"}, "set.tar": {"/bin/busybox", "/tmp/busybox-own"},
	} {
		n := node("n-"+strings.TrimSuffix(name, ".tar"), 4242)
		s := plan.Setup{Lease: demo, Node: n.Node, Setup: vnet.Setup{Image: name, Run: []vnet.Program{{Cmd: []string{"/bin/sleep", "1000"}}}}}
		do(t, p, plan.Add, names(), n)
		give(t, p, s)
		if out, code := runAs(t, p, n, "0", "/bin/busybox", "sh", "-c", "busybox cp /bin/busybox /tmp/busybox-own && busybox chmod 6755 /tmp/busybox-own"); code != 0 {
			t.Fatalf("%s: %s", name, out)
		}
		for _, program := range programs {
			out, code := runAs(t, p, n, "1500:1500", "/bin/sh", "-c", program+" id -u; "+program+" id -g")
			if code != 0 || out != "1500\n1500" {
				t.Errorf("%s: %s: %d, %q", name, program, code, out)
			}
		}
	}
}

// saveWith writes an image like another, whose files have other permissions.
func saveWith(t *testing.T, path, like string, mode int64) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf(`tar -xf %s -C %s && cd %s && mkdir l && tar -xf layer.tar -C l && chmod %o l/bin/busybox && tar -cf layer.tar -C l . && sum=$(sha256sum layer.tar | cut -d' ' -f1) &&
		sed -i "s/sha256:[0-9a-f]*/sha256:$sum/" config.json && tar -cf %s config.json layer.tar manifest.json`, like, dir, dir, mode, path)
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
