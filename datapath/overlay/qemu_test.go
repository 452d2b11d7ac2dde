package overlay

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
	"strings"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// machine is a virtual machine with a Debian cloud kernel, which has tunnels
// that this machine's kernel may lack, and a shell on its serial line.
type machine struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
	log bytes.Buffer
}

// needs finds what the machine is made of, or says what lacks.
func needs(t *testing.T) (image, release string) {
	t.Helper()
	for _, program := range []string{"qemu-system-x86_64", "busybox", "ip", "modprobe"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: apt-get install qemu-system-x86 busybox-static linux-image-cloud-amd64", program)
		}
	}
	images, _ := filepath.Glob("/boot/vmlinuz-*-cloud-amd64")
	if len(images) == 0 {
		t.Skip("no Debian cloud kernel: apt-get install linux-image-cloud-amd64")
	}
	image = images[len(images)-1]
	return image, strings.TrimPrefix(filepath.Base(image), "vmlinuz-")
}

// Modules that the machine loads, with what they need.
var tunnelModules = []string{"virtio_pci", "virtio_net", "ip_gre", "ipip", "geneve", "vxlan"}

// modules lists the files to load, in order.
func modules(t *testing.T, release string) (files []string) {
	t.Helper()
	seen := make(map[string]bool)
	for _, name := range tunnelModules {
		out, err := exec.Command("modprobe", "-S", release, "--show-depends", name).CombinedOutput()
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
const serialShell = `ip() { /real/ip "$@"; }
ip link set lo up
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo
echo done:0:
while read -r line; do eval "$line"; echo "done:$?:"; done
`

// initramfs is a file system of a shell, ip, and modules (newc of cpio(5)).
func initramfs(t *testing.T, release string) []byte {
	t.Helper()
	var b bytes.Buffer
	add := func(name string, mode uint32, data []byte) {
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
			b.Len(), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
		b.Write(make([]byte, -b.Len()&3))
		b.Write(data)
		b.Write(make([]byte, -b.Len()&3))
	}
	file := func(name, from string) {
		data, err := os.ReadFile(from)
		check1(t, err)
		add(name, 0o100755, data)
	}
	for _, dir := range []string{"bin", "real", "dev", "proc", "sys", "modules", "lib", "lib64", "lib/x86_64-linux-gnu"} {
		add(dir, 0o40755, nil)
	}
	busybox, _ := exec.LookPath("busybox")
	file("bin/busybox", busybox)
	ip, _ := exec.LookPath("ip")
	file("real/ip", ip) // the shell has one of its own, which knows few devices
	libraries, err := exec.Command("ldd", ip).Output()
	check1(t, err)
	for _, path := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
		file(strings.TrimPrefix(path, "/"), path)
	}
	script := "#!/bin/busybox sh\n/bin/busybox --install -s /bin\nmount -t devtmpfs d /dev\nmount -t proc p /proc\nmount -t sysfs s /sys\n"
	for i, path := range modules(t, release) {
		name := fmt.Sprintf("modules/%02d.ko", i)
		file(name, path)
		script += "insmod /" + name + "\n"
	}
	add("init", 0o100755, []byte(script+serialShell))
	add("TRAILER!!!", 0, nil)
	return b.Bytes()
}

// boot starts a machine on a TAP device of a namespace.
func boot(t *testing.T, namespace, tap string) *machine {
	t.Helper()
	image, release := needs(t)
	disk := filepath.Join(t.TempDir(), "initrd")
	check1(t, os.WriteFile(disk, initramfs(t, release), 0o600))
	cmd := exec.Command("nsenter", "--net="+namespace, "--", "qemu-system-x86_64", "-accel", "tcg", "-m", "256", "-nographic", "-no-reboot", "-nodefaults",
		"-kernel", image, "-initrd", disk, "-append", "console=ttyS0 panic=-1", "-serial", "stdio",
		"-netdev", "tap,id=n,ifname="+tap+",script=no,downscript=no", "-device", "virtio-net-pci,netdev=n,mac="+machineMAC)
	m := &machine{t: t}
	in, err := cmd.StdinPipe()
	check1(t, err)
	out, err := cmd.StdoutPipe()
	check1(t, err)
	cmd.Stderr = &m.log
	m.in, m.out = in, bufio.NewReader(out)
	check1(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	m.answer()
	return m
}

const machineMAC = "02:99:00:00:00:02"

// sh runs a command in the machine, and returns what it prints.
func (m *machine) sh(command string) string {
	m.t.Helper()
	if _, err := fmt.Fprintln(m.in, command); err != nil {
		m.t.Fatalf("the machine ended: %v\n%s", err, m.log.String())
	}
	text, code := m.answer()
	if code != "0" {
		m.t.Fatalf("%s: %s", command, text)
	}
	return text
}

// answer reads until a command has ended.
func (m *machine) answer() (text, code string) {
	m.t.Helper()
	for {
		line, err := m.out.ReadString('\n')
		text += line
		if err != nil {
			m.t.Fatalf("the machine ended: %v\n%s%s", err, text, m.log.String())
		}
		if _, rest, ended := strings.Cut(line, "done:"); ended {
			code, _, _ = strings.Cut(rest, ":")
			return text, code
		}
	}
}

// The tunnels of a Debian kernel and entries understand each other, both ways.
func TestDebianKernelBothWays(t *testing.T) {
	needs(t)
	l := newLab(t)
	h := l.hosts[0]
	l.ip(h.Namespace, "link", "del", wire)
	l.ip(h.Namespace, "tuntap", "add", "dev", wire, "mode", "tap")
	l.ip(h.Namespace, "addr", "add", under4(0).String()+"/24", "dev", wire)
	l.ip(h.Namespace, "link", "set", wire, "up")
	m := boot(t, h.Namespace, wire)
	m.sh("ip addr add " + under4(1).String() + "/24 dev eth0 && ip link set eth0 up")
	l.ip(h.node, "neigh", "replace", inner(1), "lladdr", mac(1), "dev", "eth0", "nud", "permanent")
	l.ip(h.node, "link", "set", "eth0", "mtu", "1400")
	ends := fmt.Sprintf(" local %s remote %s ", under4(1), under4(0))
	for protocol, device := range map[plan.Encapsulation]string{
		plan.GRE: "type gre" + ends, plan.IPIP: "type ipip" + ends, plan.GRETAP: "address " + mac(1) + " type gretap" + ends,
		plan.Geneve: fmt.Sprintf("address %s type geneve id %d remote %s", mac(1), number, under4(0)),
		plan.VXLAN:  fmt.Sprintf("address %s type vxlan id %d dstport 4789 srcport 768 832", mac(1), number) + ends,
	} {
		t.Run(string(protocol), func(t *testing.T) {
			l.t, m.t = t, t
			o := item(0, protocol, under4)
			o.MTU = 1400
			check1(t, h.part.Do(t.Context(), plan.Step{Op: plan.Add, Item: o}))
			m.sh("ip link add name far0 " + device + " && ip link set far0 mtu 1400 up && ip addr add " + inner(1) + "/24 dev far0")
			defer m.sh("ip link del far0")
			l.ping(inner(1))
			m.sh("ping -c 1 -W 5 " + inner(0))
			l.toMachine(m, 1<<20)
			l.fromMachine(m, 1<<20)
		})
	}
}

// toMachine sends bytes by TCP, which the machine sums up.
func (l *lab) toMachine(m *machine, size int64) {
	l.t.Helper()
	m.sh("nc -l -p 7000 > /got & sleep 0.2")
	var c io.WriteCloser
	for range 20 {
		if c = l.tryDial(l.hosts[0].node, inner(1)+":7000"); c != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if c == nil {
		l.t.Fatalf("the machine does not listen\n%s", l.tell())
	}
	h := sha256.New()
	_, err := io.Copy(io.MultiWriter(c, h), io.LimitReader(rand.NewChaCha8([32]byte{3}), size))
	check1(l.t, err)
	c.Close()
	if got := m.sh("wait; sha256sum /got"); !strings.Contains(got, fmt.Sprintf("%x", h.Sum(nil))) {
		l.t.Errorf("the machine got something else: %s", got)
	}
}

func (l *lab) tryDial(namespace, to string) io.WriteCloser {
	ns, err := kernel.OpenNamespace(namespace)
	check1(l.t, err)
	defer ns.Close()
	var c io.WriteCloser
	_ = kernel.In(ns, func() error {
		made, err := dialTimeout(to)
		if err == nil {
			c = made
		}
		return err
	})
	return c
}

// fromMachine reads bytes by TCP that the machine made and summed up.
func (l *lab) fromMachine(m *machine, size int64) {
	l.t.Helper()
	listener := l.listen(l.hosts[0].node, inner(0))
	defer listener.Close()
	sum := make(chan []byte, 1)
	go func() {
		h := sha256.New()
		if c, err := listener.Accept(); err == nil {
			_ = c.SetDeadline(time.Now().Add(30 * time.Second))
			_, _ = io.Copy(h, c)
			c.Close()
		}
		sum <- h.Sum(nil)
	}()
	_, port, _ := strings.Cut(listener.Addr().String(), ":")
	want := m.sh(fmt.Sprintf("head -c %d /dev/urandom > /sent; nc %s %s < /sent; sha256sum /sent", size, inner(0), port))
	if got := fmt.Sprintf("%x", <-sum); !strings.Contains(want, got) {
		l.t.Errorf("from the machine came something else: %s, not %s", got, want)
	}
}

func dialTimeout(to string) (net.Conn, error) { return net.DialTimeout("tcp", to, time.Second) }
