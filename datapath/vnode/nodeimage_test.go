package vnode

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/datapath/image"
	"sublet/plan"
	"sublet/vnet"
)

// images gives a part a store, and a directory that offers busybox.tar: an image
// of Debian's package busybox-static as "docker save" writes it.
func images(t *testing.T, p *Part) (offered string) {
	t.Helper()
	needStatic(t)
	dir, offered := t.TempDir(), t.TempDir()
	get := exec.Command("sh", "-c", "apt-get -q download busybox-static && dpkg-deb -x *.deb .")
	get.Dir = dir
	if out, err := get.CombinedOutput(); err != nil {
		t.Skipf("no package of Debian's: %v: %s", err, out)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*", "busybox"))
	if len(found) == 0 {
		found, _ = filepath.Glob(filepath.Join(dir, "usr", "*", "busybox"))
	}
	program, err := os.ReadFile(found[0])
	check(t, err)
	layer := archive(t, map[string]string{"bin/busybox": string(program), "etc/mine": "image", "data/old": "x"}, "sh", "cat", "sleep", "id", "touch", "ls", "httpd", "rm", "mv", "mkdir", "ln")
	config, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH,
		"config": map[string]any{"Entrypoint": []string{"/bin/sh", "-c"}, "Cmd": []string{"echo $GREETING in $(pwd); exec sleep 1000"}, "Env": []string{"PATH=/bin", "GREETING=hello"}, "WorkingDir": "/srv/made"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	check(t, err)
	saved := archive(t, map[string]string{"config.json": string(config), "layer.tar": string(layer), "manifest.json": `[{"Config":"config.json","Layers":["layer.tar"]}]`})
	check(t, os.WriteFile(filepath.Join(offered, "busybox.tar"), saved, 0o644))
	store := filepath.Join(t.TempDir(), "store")
	p.Images, err = image.New(image.Config{Dir: store, Offered: offered, Changed: p.Fetched, Apart: Unpacker})
	check(t, err)
	return offered
}

// needStatic skips where this program could not run in an image, as what the race
// detector makes.
func needStatic(t *testing.T) {
	t.Helper()
	if err := isStatic("/proc/self/exe"); err != nil {
		t.Skip(err)
	}
}

func archive(t *testing.T, files map[string]string, links ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		check(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		check(t, err)
	}
	for _, name := range links {
		check(t, w.WriteHeader(&tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}))
	}
	check(t, w.Close())
	return b.Bytes()
}

// settle gives the setup until the image is there.
func give(t *testing.T, p *Part, s plan.Setup) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		do(t, p, plan.Set, s)
		if n, err := p.imageOf(s.Key()); err == nil && n.Name == s.Image {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the image does not come")
		}
	}
}

func TestImage(t *testing.T) {
	for _, owner := range tenants() {
		t.Run(fmt.Sprint(owner), func(t *testing.T) {
			p, h := newPart(t)
			images(t, p)
			n := node("n0", owner)
			s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{Image: "busybox.tar"}}
			do(t, p, plan.Add, names(), n)
			give(t, p, s)
			has(t, p, names(), n, s)
			for _, c := range []struct{ command, want string }{
				{"cat /etc/mine", "image"},
				{"cat /etc/hosts", "127.0.0.1 localhost\n::1 localhost\n10.0.0.1 n0\n10.0.0.2 n1"},
				{"echo $GREETING in $(pwd)", "hello in /srv/made"},
				{"id -u", "0"},
				{"ls /", "bin\ndata\ndev\netc\nproc\nsrv\nsys\ntmp\nvar" + top(h.Run)},
				{"ls /dev", "fd\nfull\nnet\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero"},
				{"echo text > /etc/mine && rm -r /data && cat /etc/mine && ls -d /data 2>/dev/null", "text"},
				{"echo x > /dev/null && echo x > /tmp/a && echo x > /dev/shm/b && cat /tmp/a /dev/shm/b", "x\nx"},
				{"ls " + h.Run, "sublet"},
			} {
				if out, _ := run(t, p, n, "sh", "-c", c.command); out != c.want {
					t.Errorf("%s: %q, want %q", c.command, out, c.want)
				}
			}
			if out, code := run(t, p, n, "nothing"); code != 127 {
				t.Errorf("a program that is not there: %d, %s", code, out)
			}
			waitLog(t, p, n, "hello in /srv/made")
			do(t, p, plan.Delete, s, n)
			if left, _ := h.Names("setup"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// top is the first part of a path, if it is none of the image's directories.
func top(run string) string {
	if first, _, _ := strings.Cut(strings.TrimPrefix(run, "/"), "/"); first != "tmp" {
		return "\n" + first
	}
	return ""
}

func waitLog(t *testing.T, p *Part, n plan.VNode, want string) {
	t.Helper()
	var b bytes.Buffer
	for end := time.Now().Add(10 * time.Second); !strings.Contains(b.String(), want); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log says %q, %v", b.String(), p.Problems())
		}
		b.Reset()
		check(t, p.Log(t.Context(), n.Key(), false, &b))
	}
}

// Root in a node with an image reaches nothing of the host's.
func TestImageHolds(t *testing.T) {
	p, h := newPart(t)
	offered := images(t, p)
	n := node("n0", 4242)
	s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{Image: "busybox.tar", Run: []vnet.Program{{Cmd: []string{"/bin/sleep", "1000"}}}}}
	do(t, p, plan.Add, names(), n)
	give(t, p, s)
	for _, command := range []string{
		"cat /proc/1/root" + offered + "/busybox.tar", "cat /proc/1/environ", "ls /proc/1/fd", "cat " + offered + "/busybox.tar",
		"mv /etc /etc2", "rm /etc/hosts", "mv /tmp /tmp2", "rm " + h.Run + "/sublet", "echo x > " + h.Run + "/sublet",
		"busybox mount -t tmpfs x /srv", "busybox umount /proc", "busybox mknod /srv/sda b 254 0", "busybox chroot /proc/1/root true",
		"echo 1 > /proc/sys/kernel/hostname", "echo b > /proc/sysrq-trigger", "echo x > /sys/kernel/uevent_seqnum",
		"busybox chown 65536 /bin/busybox", "busybox nsenter -t 1 -m true", "busybox pivot_root / /srv", "busybox mount -o remount,suid /",
	} {
		if out, code := run(t, p, n, "/bin/sh", "-c", command); code == 0 {
			t.Errorf("%s: %q", command, out)
		}
	}
	if out, code := run(t, p, n, "/bin/sh", "-c", "busybox dd if=/dev/zero of=/big bs=1M count=1100 2>&1"); code == 0 {
		t.Errorf("a node writes more than its layer may have: %s", out)
	}
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid(t, p, n)))
	check(t, err)
	if strings.Contains(string(table), " "+h.Run+"/tmp") {
		t.Errorf("the node has mounts of the host:\n%s", table)
	}
}

func pid(t *testing.T, p *Part, n plan.VNode) int {
	t.Helper()
	pid, err := p.paused(n.Key())
	check(t, err)
	return pid
}

// A node whose image cannot be had says why; one with an image that is there
// comes up after that.
// Programs that ask for the entry point of the image run behind it, with the
// image's arguments or their own.
func TestEntrypointOfAnImage(t *testing.T) {
	p, _ := newPart(t)
	images(t, p)
	n := node("n0", 0)
	s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{Image: "busybox.tar", Run: []vnet.Program{
		{Entrypoint: true}, {Entrypoint: true, Cmd: []string{"echo entered $((40+2))"}}, {Cmd: []string{"/bin/sh", "-c", "echo $1", "", "as it is"}},
	}}}
	do(t, p, plan.Add, names(), n)
	give(t, p, s)
	for _, want := range []string{"hello in /srv/made", "entered 42", "as it is"} {
		waitLog(t, p, n, want)
	}
	do(t, p, plan.Delete, s, n)
	if _, err := (nodeImage{Name: "x"}).over(plan.Setup{Setup: vnet.Setup{Image: "x", Run: []vnet.Program{{Entrypoint: true}}}}); err == nil {
		t.Error("an image without a command is run")
	}
}

func TestImageThatIsNotThere(t *testing.T) {
	p, _ := newPart(t)
	offered := images(t, p)
	n := node("n0", 4242)
	s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{Image: "none.tar"}}
	do(t, p, plan.Add, names(), n)
	err := p.Do(t.Context(), plan.Step{Op: plan.Add, Item: s})
	if err == nil || !strings.Contains(err.Error(), "it is not there: ") {
		t.Fatal(err)
	}
	if _, err := p.Command(n.Key(), []string{"/bin/sh"}, Options{}); err == nil || !strings.Contains(err.Error(), "not here yet") {
		t.Errorf("a command runs in a node without its image: %v", err)
	}
	s.Image = "broken"
	check(t, os.WriteFile(filepath.Join(offered, s.Image), []byte("x"), 0o644))
	if err := p.Do(t.Context(), plan.Step{Op: plan.Set, Item: s}); err == nil {
		t.Error("a broken image is taken")
	}
	s.Image = "busybox.tar"
	give(t, p, s)
	if out, _ := run(t, p, n, "/bin/cat", "/etc/mine"); out != "image" {
		t.Errorf("the node has %q", out)
	}
}

// A directory that the operator offers is used where it is, and not changed.
func TestImageOfADirectory(t *testing.T) {
	p, _ := newPart(t)
	offered := images(t, p)
	unpacked, err := p.Images.Get(t.Context(), "busybox.tar", image.Owner{})
	check(t, err)
	check(t, os.CopyFS(filepath.Join(offered, "plain"), os.DirFS(unpacked.Root)))
	n := node("n0", 4242)
	s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{Image: "plain"}}
	do(t, p, plan.Add, names(), n)
	give(t, p, s)
	if out, code := run(t, p, n, "/bin/sh", "-c", "echo mine > /etc/mine && cat /etc/mine"); out != "mine" || code != 0 {
		t.Errorf("%d, %s", code, out)
	}
	text, err := fs.ReadFile(os.DirFS(offered), "plain/etc/mine")
	if err != nil || string(text) != "image" {
		t.Errorf("the directory has changed: %q, %v", text, err)
	}
}

// Of what an image says of its ports, ports count.
func TestPortsOfAnImage(t *testing.T) {
	var found image.Image
	found.Config.ExposedPorts = map[string]struct{}{"443/tcp": {}, "80": {}, "80/tcp": {}, "53/udp": {}, "0/tcp": {}, "65536/tcp": {}, "x/tcp": {}, "22/\x1b[2J": {}, "": {}}
	if got, want := exposed(found), []string{"53/udp", "80/tcp", "443/tcp"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
