package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// busybox is the program of Debian's package busybox-static, from the archive.
func busybox(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	get := exec.Command("apt-get", "download", "busybox-static")
	get.Dir = dir
	if out, err := get.CombinedOutput(); err != nil {
		t.Skipf("no package of Debian's: %v: %s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(found) != 1 {
		t.Skip("no package of Debian's: ", found, err)
	}
	files, err := exec.Command("dpkg-deb", "--fsys-tarfile", found[0]).Output()
	check(t, err)
	for r := tar.NewReader(bytes.NewReader(files)); ; {
		h, err := r.Next()
		check(t, err)
		if strings.HasSuffix(h.Name, "bin/busybox") {
			program, err := io.ReadAll(r)
			check(t, err)
			return program
		}
	}
}

// An image made of a package runs, with its files shown as another user's on one
// mount and as they are on the disk.
func TestImageOfDebian(t *testing.T) {
	s := store(t, Config{})
	build(t, pack(t, entry{name: "bin/busybox", text: string(busybox(t))}, entry{name: "bin/sh", kind: tar.TypeSymlink, text: "busybox"}, entry{name: "mine", text: "x"})).
		seal(t).archive(t, filepath.Join(s.Offered, "busybox.tar"))
	image, err := s.Get(t.Context(), "busybox.tar", Owner{})
	check(t, err)
	out, err := exec.Command("chroot", image.Root, "/bin/sh", "-c", "echo from $(/bin/busybox cat /mine)").CombinedOutput()
	if err != nil || string(out) != "from x\n" {
		t.Fatalf("it says %q, %v", out, err)
	}
	userns := userNamespace(t, 4242)
	if !Maps(s.Dir, userns) {
		t.Skip("the file system here shows no file as another's")
	}
	tree, err := OpenTree(image.Root, userns)
	check(t, err)
	defer tree.Close()
	var st unix.Stat_t
	check(t, unix.Fstatat(int(tree.Fd()), "mine", &st, 0))
	if st.Uid != others+33 || st.Gid != others+33 {
		t.Errorf("a file is shown as %d's", st.Uid)
	}
	check(t, unix.Fstatat(int(tree.Fd()), "", &st, unix.AT_EMPTY_PATH))
	if st.Uid != 4242 || st.Gid != 4242 {
		t.Errorf("its root directory is shown as %d's", st.Uid)
	}
	if fd, err := unix.Openat(int(tree.Fd()), "mine", unix.O_WRONLY, 0); err == nil {
		unix.Close(fd)
		t.Error("the files of an image can be written")
	}
	info, err := os.Stat(filepath.Join(image.Root, "mine"))
	check(t, err)
	if ownerOf(info) != (Owner{UID: 33, GID: 33}) || info.Mode()&fs.ModeSetuid != 0 {
		t.Errorf("on disk it is %v's", ownerOf(info))
	}
}

// others are who users of userNamespace are outside, but for its root.
const others = 1 << 20

// userNamespace has uid as its root.
func userNamespace(t *testing.T, uid int) *os.File {
	t.Helper()
	cmd := exec.Command("sleep", "infinity")
	one := []syscall.SysProcIDMap{{HostID: uid, Size: 1}, {ContainerID: 1, HostID: others + 1, Size: MostID}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one, GidMappings: one, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	check(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); runtime.UnlockOSThread() })
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	check(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}
