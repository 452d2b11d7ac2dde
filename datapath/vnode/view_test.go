package vnode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/plan"
	"sublet/vnet"
)

// hostFiles makes a directory that nodes see, with what they must not have.
func hostFiles(t *testing.T) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "vnode")
	check(t, err)
	t.Cleanup(func() {
		_ = unix.Unmount(dir+"/later", unix.MNT_DETACH)
		os.RemoveAll(dir)
	})
	check(t, os.Chmod(dir, 0o755))
	for _, d := range []string{"closed", "target", "later"} {
		check(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	check(t, os.WriteFile(dir+"/open", []byte("open"), 0o644))
	check(t, os.WriteFile(dir+"/secret", []byte("secret"), 0o600))
	check(t, os.WriteFile(dir+"/closed/open", []byte("secret"), 0o644))
	check(t, os.Chmod(dir+"/closed", 0o700))
	cat, err := exec.LookPath("cat")
	check(t, err)
	program, err := os.ReadFile(cat)
	check(t, err)
	check(t, os.WriteFile(dir+"/cat", program, 0o755))
	check(t, os.Chmod(dir+"/cat", 0o755|os.ModeSetuid))
	check(t, unix.Mknod(dir+"/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	check(t, os.Chmod(dir+"/null", 0o666))
	return dir
}

// What a node without an image writes is its own, of all the host's files; what
// its tenant may not read there, it does not read.
func TestHostsFilesAreTheNodesOwn(t *testing.T) {
	for _, owner := range tenants() {
		t.Run(fmt.Sprint(owner), func(t *testing.T) {
			p, h := newPart(t)
			dir := hostFiles(t)
			n, other := node("n0", owner), node("n1", owner)
			do(t, p, plan.Add, names(), n, other)
			for _, c := range []struct {
				command string
				others  bool // only a tenant who is not root of the host is kept from it
			}{
				{"cat /etc/shadow", true}, {"cat " + dir + "/secret", true}, {dir + "/cat " + dir + "/secret", true}, {"cat " + dir + "/closed/open", true},
				{"ls " + dir + "/closed", true}, {"ls -A /root | grep .", true},
				{"echo >>/etc/passwd", true}, {"touch /usr/bin/x", true}, {"touch " + dir + "/x", true}, {"mv /etc/shadow /etc/x && cat /etc/x", true},
				{"echo x >" + dir + "/null", false}, {"ls /dev | grep -E 'vda|sda|mem|kmsg|kvm'", false},
				{"ls /run | grep -v lock", false},
				{"umount /etc", false}, {"umount " + h.Run, false}, {"mv /etc /x", false}, {"mount -o remount,suid,dev /", false},
				{"cat /proc/1/root/etc/shadow", true}, {"chroot /proc/1/root true", true},
			} {
				if out, code := run(t, p, n, "sh", "-c", c.command); code == 0 && (owner != 0 || !c.others) {
					t.Errorf("%s: %q", c.command, out)
				}
			}
			if out, code := run(t, p, n, "sh", "-c", `cat `+dir+`/open && for d in / /etc /opt /root /usr/local/bin /var/log /run /home; do echo mine >$d/vnode || exit; done &&
				cp /etc/group /etc/group2 && sed -i s/root/other/ /etc/group && head -c5 /etc/group && rm /etc/nsswitch.conf && mkdir -p /var/lib/new/deep && cat /etc/resolv.conf`); out != "openother" || code != 0 {
				t.Errorf("a node writes its own files: %d, %s", code, out)
			}
			check(t, unix.Mount("x", dir+"/later", "tmpfs", 0, ""))
			check(t, os.WriteFile(dir+"/later/file", nil, 0o644))
			if out, _ := run(t, p, n, "ls", dir+"/later"); out != "" {
				t.Errorf("a node sees what the host mounts later: %s", out)
			}
			for _, file := range []string{"/vnode", "/etc/vnode", "/etc/group2", "/opt/vnode", "/root/vnode", "/run/vnode", "/home/vnode", "/usr/local/bin/vnode", "/var/lib/new"} {
				if _, err := os.Lstat(file); err == nil {
					t.Errorf("the host has %s", file)
				}
				if out, code := run(t, p, other, "ls", "-d", file); code == 0 {
					t.Errorf("another node has %s", out)
				}
			}
			if _, err := os.Stat("/etc/nsswitch.conf"); err != nil {
				t.Error(err)
			}
			if table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid(t, p, n))); err != nil || strings.Count(string(table), "\n") > 40 {
				t.Errorf("the node has mounts of the host's: %v\n%s", err, table)
			}
		})
	}
}

// A node that begins again has what it wrote, and its files as they were given.
// No link that it left leads to the host's.
func TestLayerOutlivesThePauseProcess(t *testing.T) {
	p, _ := newPart(t)
	dir := hostFiles(t)
	n := node("n0", 4242)
	s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{Files: []vnet.File{
		{Path: "/opt/app/conf", Text: "given"}, {Path: "/etc/ssl/private/key", Text: "k"}, {Path: "/usr/share/vnode", Text: "u", Mode: "0600"},
	}}}
	do(t, p, plan.Add, names(), n, s)
	if out, code := run(t, p, n, "sh", "-c", `cat /opt/app/conf /usr/share/vnode && echo mine >/etc/mine && rm -r /opt/app && mv /var/log /var/log2 2>/dev/null; rm -rf /srv/* && rmdir /srv && ln -s `+dir+`/target /srv; ln -s `+dir+`/target /opt/app && readlink /opt/app`); out != "givenu"+dir+"/target" || code != 0 {
		t.Fatalf("%d, %s", code, out)
	}
	check(t, unix.Kill(pid(t, p, n), unix.SIGKILL))
	wait(t, "its end", func() bool { _, err := p.paused(n.Key()); return err != nil })
	if out, code := run(t, p, n, "sh", "-c", "cat /etc/mine /opt/app/conf && ls "+dir+"/target"); out != "mine\ngivenconf" || code != 0 {
		t.Errorf("%d, %s", code, out)
	}
	if left, _ := os.ReadDir(dir + "/target"); len(left) > 0 {
		t.Errorf("the host has %v", left)
	}
}

// What routing daemons have is shown in their node, also when it was made anew,
// and no link that the node has in the way leads elsewhere.
func TestNodeSeesItsRoutingDaemons(t *testing.T) {
	for _, image := range []string{"", "busybox.tar"} {
		t.Run(image, func(t *testing.T) {
			p, h := newPart(t)
			n := node("n0", 4242)
			do(t, p, plan.Add, names(), n)
			if image != "" {
				images(t, p)
				give(t, p, plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{Image: image}})
			}
			told := func(text string) {
				t.Helper()
				for _, dir := range h.FRRDirs(n.Key()) {
					check(t, os.RemoveAll(dir))
					check(t, os.MkdirAll(dir, 0o755))
					check(t, os.WriteFile(dir+"/file", []byte(text), 0o644))
				}
			}
			sees := func(when, want, command string) {
				t.Helper()
				if out, code := run(t, p, n, "sh", "-c", command); out != want || code != 0 {
					t.Errorf("%s: %d, %q, want %q", when, code, out, want)
				}
			}
			both := "cat /run/frr/file /etc/frr/file"
			sees("a node without daemons", "", "mkdir -p /own/frr /run; ! ls /run/frr 2>/dev/null && mv /run /was && ln -s /own /run")
			told("1")
			sees("with a link on the way", "1", "cat /etc/frr/file; ls /own/frr")
			sees("with a file in the way", "", "rm /run && mkdir /run && echo >/run/frr")
			sees("which stays", "", "cat /run/frr")
			sees("with a link in the way", "", "rm /run/frr && ln -s /own /run/frr")
			sees("which covers nothing", "frr", "ls /own")
			sees("with nothing in the way", "", "rm /run/frr")
			sees("shown", "11", both)
			sees("which it cannot write", "", "exec 2>/dev/null; ! echo >/run/frr/other && ! rm /etc/frr/file && ! mv /run/frr /run/x")
			told("2")
			sees("made anew", "22", both)
			if at, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid(t, p, n))); err != nil || strings.Count(string(at), "/frr ") != 2 {
				t.Errorf("mounts: %v\n%s", err, at)
			}
		})
	}
}
