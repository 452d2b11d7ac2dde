// Package guest boots, for tests, a Debian kernel in a virtual machine beside a
// namespace: it has the tunnels that the machine's own kernel may lack.
package guest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Machine is a virtual machine with a Debian cloud kernel and a shell on its
// serial line.
type Machine struct {
	T   testing.TB // that fails with it
	in  io.Writer
	out *bufio.Reader
	log bytes.Buffer
}

// Needs skips a test that has nothing to boot.
func Needs(t testing.TB) {
	t.Helper()
	needs(t)
}

// needs finds what the machine is made of, below the directory that has the kernel,
// or says what lacks.
func needs(t testing.TB) (root, release string) {
	t.Helper()
	for _, program := range []string{"qemu-system-x86_64", "busybox", "ip", "modprobe", "depmod"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: tools/install-deps installs it", program)
		}
	}
	var images []string
	for _, dir := range kernels {
		if images, _ = filepath.Glob(filepath.Join(dir, "boot/vmlinuz-*-cloud-amd64")); len(images) > 0 {
			root = dir
			break
		}
	}
	if len(images) == 0 {
		t.Skip("no Debian cloud kernel: tools/install-deps unpacks one")
	}
	version, err := exec.Command("qemu-system-x86_64", "--version").Output()
	must(t, err)
	release = fitting(images, string(version))
	if release == "" {
		t.Skip("none of the Debian cloud kernels here runs in this QEMU: before QEMU 10 the kernel must be older than 6.12")
	}
	if _, err := os.Stat(filepath.Join(root, "lib/modules", release, "modules.dep")); err != nil { // it was unpacked only
		out, err := exec.Command("depmod", "-b", root, release).CombinedOutput()
		if err != nil {
			t.Fatalf("depmod: %v: %s", err, out)
		}
	}
	return root, release
}

// fitting is the newest release of kernel images that a QEMU boots: in software,
// 7.2 crashes Linux 6.12 (cmpxchg16b), and 10.0 is known not to. "" if none.
func fitting(images []string, qemu string) (release string) {
	var major int
	if _, text, ok := strings.Cut(qemu, "version "); ok {
		fmt.Sscanf(text, "%d", &major)
	}
	var newest [2]int
	for _, image := range images {
		r := strings.TrimPrefix(filepath.Base(image), "vmlinuz-")
		var v [2]int
		fmt.Sscanf(r, "%d.%d", &v[0], &v[1])
		if major < 10 && slices.Compare(v[:], []int{6, 12}) >= 0 || slices.Compare(v[:], newest[:]) < 0 {
			continue
		}
		release, newest = r, v
	}
	return release
}

// Modules that the machine loads, with what they need.
var tunnelModules = []string{"virtio_pci", "virtio_net", "ip_gre", "ipip", "geneve", "vxlan"}

// modules lists the files to load, in order.
func modules(t testing.TB, root, release string) (files []string) {
	t.Helper()
	seen := make(map[string]bool)
	for _, name := range tunnelModules {
		out, err := exec.Command("modprobe", "-d", root, "-S", release, "--show-depends", name).CombinedOutput()
		if err != nil {
			t.Fatalf("modprobe %s: %v: %s", name, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if words := strings.Fields(line); len(words) > 1 && words[0] == "insmod" && !seen[words[1]] {
				seen[words[1]] = true
				files = append(files, words[1])
			}
		}
	}
	return files
}

// serialShell runs each line that comes by the serial line, and says how it ended.
const serialShell = `ip() { /bin/ip "$@"; }
ip link set lo up
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo
echo done:0:
while read -r line; do eval "$line"; echo "done:$?:"; done
`

// archive is files for a kernel to begin with (newc of cpio(5)).
type archive struct{ bytes.Buffer }

func (a *archive) add(name string, mode uint32, data []byte) {
	fmt.Fprintf(a, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.Len(), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
	a.Write(make([]byte, -a.Len()&3))
	a.Write(data)
	a.Write(make([]byte, -a.Len()&3))
}

// copy adds a file of this machine.
func (a *archive) copy(name, from string) error {
	data, err := os.ReadFile(from)
	if err == nil {
		a.add(name, 0o100755, data)
	}
	return err
}

// program adds a program of this machine as bin/NAME, with its libraries.
func (a *archive) program(name string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return &LackError{name + " is not installed"}
	}
	libraries, _ := exec.Command("ldd", path).Output() // it fails for a static one
	for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
		if err := a.copy(strings.TrimPrefix(library, "/"), library); err != nil {
			return err
		}
	}
	return a.copy("bin/"+name, path)
}

func (a *archive) end() []byte {
	a.add("TRAILER!!!", 0, nil)
	return a.Bytes()
}

// initramfs is a file system of a shell, ip, and modules.
func initramfs(t testing.TB, root, release string) []byte {
	t.Helper()
	var a archive
	for _, dir := range []string{"bin", "dev", "proc", "sys", "modules", "lib", "lib64", "lib/x86_64-linux-gnu"} {
		a.add(dir, 0o40755, nil)
	}
	must(t, a.program("busybox"))
	must(t, a.program("ip"))
	script := "#!/bin/busybox sh\n/bin/busybox --install -s /bin\nmount -t devtmpfs d /dev\nmount -t proc p /proc\nmount -t sysfs s /sys\n"
	for i, path := range modules(t, root, release) {
		name := fmt.Sprintf("modules/%02d.ko", i)
		must(t, a.copy(name, path))
		script += "insmod /" + name + "\n"
	}
	a.add("init", 0o100755, []byte(script+serialShell))
	return a.end()
}

// Boot starts a machine on a TAP device of a namespace, which it names by its file.
// It ends with the test, or after three minutes.
func Boot(t testing.TB, namespace, tap string) *Machine {
	t.Helper()
	root, release := needs(t)
	disk := filepath.Join(t.TempDir(), "initrd")
	must(t, os.WriteFile(disk, initramfs(t, root, release), 0o600))
	cmd := exec.Command("nsenter", "--net="+namespace, "--", "qemu-system-x86_64", "-accel", "tcg", "-m", "256", "-nographic", "-no-reboot", "-nodefaults",
		"-kernel", filepath.Join(root, "boot/vmlinuz-"+release), "-initrd", disk, "-append", "console=ttyS0 panic=-1", "-serial", "stdio",
		"-netdev", "tap,id=n,ifname="+tap+",script=no,downscript=no", "-device", "virtio-net-pci,netdev=n,mac="+MAC)
	m := &Machine{T: t}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = &m.log
	m.in, m.out = in, bufio.NewReader(out)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	m.answer()
	return m
}

// MAC of its only device, eth0.
const MAC = "02:99:00:00:00:02"

// Sh runs a command in the machine, and returns what it prints.
func (m *Machine) Sh(command string) string {
	m.T.Helper()
	if _, err := fmt.Fprintln(m.in, command); err != nil {
		m.T.Fatalf("the machine ended: %v\n%s", err, m.log.String())
	}
	text, code := m.answer()
	if code != "0" {
		m.T.Fatalf("%s: %s", command, text)
	}
	return text
}

// answer reads until a command has ended.
func (m *Machine) answer() (text, code string) {
	m.T.Helper()
	for {
		line, err := m.out.ReadString('\n')
		text += line
		if err != nil {
			m.T.Fatalf("the machine ended: %v\n%s%s", err, text, m.log.String())
		}
		if _, rest, ended := strings.Cut(line, "done:"); ended {
			code, _, _ = strings.Cut(rest, ":")
			return text, code
		}
	}
}

// Receive makes the machine take bytes by TCP at port 7000, over a connection that
// dial makes, and compares what it got.
func (m *Machine) Receive(dial func() (net.Conn, error), size int64) {
	m.T.Helper()
	m.Sh("nc -l -p 7000 > /got & sleep 0.2")
	c, err := dial()
	for range 20 {
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		c, err = dial()
	}
	if err != nil {
		m.T.Fatalf("the machine does not listen: %v", err)
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(c, h), io.LimitReader(rand.NewChaCha8([32]byte{3}), size))
	must(m.T, err)
	c.Close()
	if got := m.Sh("wait; sha256sum /got"); !strings.Contains(got, fmt.Sprintf("%x", h.Sum(nil))) {
		m.T.Errorf("the machine got something else: %s", got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
